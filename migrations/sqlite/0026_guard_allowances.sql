-- The guard compares what leaves unverified with allowances that follow from verified phones. One kind of rows counts all
-- of it. Evidence is built from the phones when the server starts; unverified messages are counted anew.
drop table guard_countries;
drop table guard_counts;
drop table guard_contexts;
delete from guard_decisions;

-- Counts of one subject. subject: developer and country, 'pool' or a history; a keyed hash of a prefix, network or device;
-- or 'total' and a UTC day. windows: a JSON list of counters; until: the first UTC day on which the row is useless.
create table guard_usage (
  subject text not null primary key,
  windows text not null,
  alerted_at integer not null,
  until integer not null
) strict, without rowid;
create index guard_usage_by_end on guard_usage (until);
