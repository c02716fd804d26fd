-- expand
-- Lists are ordinary indexes on PostgreSQL.
select 1;
