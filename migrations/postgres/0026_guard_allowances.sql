-- expand
-- The guard compares what leaves unverified with allowances that follow from verified phones. One kind of rows counts all
-- of it. Evidence is built from the phones when the server starts; unverified messages are counted anew. The tables of
-- before stay for nodes that are not upgraded yet: guard_countries, guard_counts, guard_contexts.

-- Counts of one subject. subject: developer and country, 'pool' or a history; a keyed hash of a prefix, network or device;
-- or 'total' and a UTC day. windows: a JSON list of counters; until: the first UTC day on which the row is useless.
create table guard_usage (
  subject text collate "C" not null primary key,
  windows text not null,
  alerted_at bigint not null,
  until integer not null
);
create index guard_usage_by_end on guard_usage (until);
