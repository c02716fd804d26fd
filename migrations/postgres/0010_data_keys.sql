-- Keys that the database is encrypted and indexed with, encrypted themselves by the master key. master_key is the check
-- value of the one that wraps the row: while a master key is being replaced, there is a row for each of the two.
create table data_keys (
  master_key text not null,
  purpose text not null,
  version integer not null,
  wrapped text not null,
  created_at bigint not null,
  primary key (master_key, purpose, version)
);

-- How far the walks have come that bring rows to the newest version of a key. position is the last row that was seen,
-- null once the walk has ended.
create table key_walks (
  walk text primary key not null,
  version integer not null,
  position text
);
