-- A SQLite database has one node, which needs no row.
select 1;
