-- expand
-- Each count of the guard changed this index too, which cost more than the row itself. A daily scan by key finds the rows that
-- no rule uses any more.
drop index guard_usage_by_end;
