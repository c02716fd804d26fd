-- Replaced by the migration of this number that another branch adds.
select 1;
