-- What the guard against SMS pumping counts. A subject is an application with a country, a prefix or an address, the
-- latter two as keyed hashes. Every table is bounded: rows that no rule looks at any more are deleted.

-- Messages of a quarter of an hour. unverified are those whose code nobody gave back, verified the codes that somebody
-- did.
create table guard_windows (
  subject text not null,
  starts_at integer not null,
  unverified integer not null check (unverified >= 0),
  verified integer not null,
  primary key (subject, starts_at)
) strict, without rowid;
create index guard_windows_by_time on guard_windows (starts_at);

-- The countries that one address sent to, each with its last message and its last verification.
create table guard_address_countries (
  subject text not null,
  country text not null,
  sent_at integer not null,
  verified_at integer,
  primary key (subject, country)
) strict, without rowid;
create index guard_address_countries_by_time on guard_address_countries (sent_at);

-- Of one UTC day (days since the epoch): what the caps count for an application, or for all as 'total', and the codes
-- verified for a country.
create table guard_days (
  subject text not null,
  day integer not null,
  sent integer not null default 0,
  verified integer not null default 0,
  primary key (subject, day)
) strict, without rowid;
create index guard_days_by_day on guard_days (day);

-- How often a rule had its say in an hour (hours since the epoch).
create table guard_decisions (
  hour integer not null,
  rule text not null,
  country text not null,
  flagged integer not null,
  blocked integer not null,
  primary key (hour, rule, country)
) strict, without rowid;
