-- SQLite compares all text bytewise, and needs no partitions.
select 1;
