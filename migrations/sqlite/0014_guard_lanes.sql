-- The guard counts for each developer instead of each application, and needs no history of its own rows: the sliding
-- windows of a country are in one row. Conversion is measured anew from the upgrade on.
drop table guard_windows;
drop table guard_address_countries;
drop table guard_days;
delete from guard_decisions;

-- Counts of one country of one developer. subject: developer and country; windows: a JSON list of counters; day: the UTC
-- day of the last message.
create table guard_countries (
  subject text not null primary key,
  windows text not null,
  alert_until integer not null,
  converts integer not null,
  day integer not null
) strict, without rowid;
create index guard_countries_by_day on guard_countries (day);

-- Messages to a prefix or from a network on one UTC day. subject: the day, then a keyed hash; or the day and 'total', the
-- messages of the whole installation. In the order of days, so that old rows are deleted as one range.
create table guard_counts (
  subject text not null primary key,
  unverified integer not null check (unverified >= 0),
  verified integer not null,
  slot integer not null,
  pending integer not null check (pending >= 0),
  pending_before integer not null check (pending_before >= 0),
  first_at integer not null
) strict, without rowid;

-- Contexts and networks (keyed hashes) that verified any phone of their developer, with the last UTC day.
create table guard_contexts (
  context text not null primary key,
  day integer not null
) strict, without rowid;
create index guard_contexts_by_day on guard_contexts (day);
