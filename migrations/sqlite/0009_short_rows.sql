-- Requests, log entries and identities, and their indexes, in half of the room.

-- The number that stands for a developer, a project or an application where there are many rows. It outlives what it
-- stands for, as requests do, and is never given again.
create table short_ids (
  number integer primary key not null,
  id text not null
) strict;
create unique index short_ids_by_id on short_ids (id);
insert into short_ids (id) select id from (
  select id from developers
  union select id from projects
  union select id from applications
  union select developer_id from otp_requests
  union select project_id from otp_requests
  union select app_id from otp_requests
  union select developer_id from events
  union select app_id from events
  union select app_id from identity_applications
) where id is not null order by id;
create trigger developers_numbered after insert on developers
  begin insert into short_ids (id) values (new.id); end;
create trigger projects_numbered after insert on projects
  begin insert into short_ids (id) values (new.id); end;
create trigger applications_numbered after insert on applications
  begin insert into short_ids (id) values (new.id); end;

-- What stands for a phone has 84 bits instead of 256, the hash of a code 96. 0 is the number of nobody.
create table new_otp_requests (
  id text primary key not null,
  developer_id integer not null check (developer_id > 0),
  project_id integer not null check (project_id > 0),
  app_id integer not null check (app_id > 0),
  environment text not null,
  phone text not null,
  country text,
  status text not null check (status in ('pending', 'verified', 'failed', 'expired', 'canceled')),
  failure_reason text check (failure_reason in ('max_attempts', 'delivery_failed', 'blocked')),
  channel text not null,
  provider text,
  delivery_status text,
  locale text,
  client_ip text,
  metadata text,
  code_salt text not null,
  code_hash text not null,
  attempts integer not null default 0 check (attempts between 0 and 5),
  resends integer not null default 0 check (resends between 0 and 3),
  created_at integer not null,
  sent_at integer not null,
  expires_at integer not null,
  verified_at integer,
  updated_at integer not null,
  check ((status = 'verified') = (verified_at is not null)),
  check ((status = 'failed') = (failure_reason is not null))
) strict, without rowid;
insert into new_otp_requests
  select id,
    (select number from short_ids where short_ids.id = developer_id),
    (select number from short_ids where short_ids.id = project_id),
    (select number from short_ids where short_ids.id = app_id),
    environment,
    case when phone like 'anon\_%' escape '\' then substr(phone, 1, 19) else phone end,
    country, status, failure_reason, channel, provider, delivery_status, locale, client_ip, metadata, code_salt,
    substr(code_hash, 1, 16), attempts, resends, created_at, sent_at, expires_at, verified_at, updated_at
  from otp_requests
  order by id;
drop table otp_requests;
alter table new_otp_requests rename to otp_requests;
create index otp_requests_by_developer on otp_requests (developer_id, id);
create index otp_requests_by_application on otp_requests (app_id, id);
create index otp_requests_pending on otp_requests (expires_at) where status = 'pending';

-- The inbox is numbered as the log is: with the number of the entry that put a message there.
create table new_inbox_messages (
  seq integer primary key not null,
  developer_id integer not null check (developer_id > 0),
  request_id text not null,
  request_visible integer not null check (request_visible in (0, 1)),
  sent_at integer not null
) strict;
insert into new_inbox_messages
  select
    (select seq from events where events.id = inbox_messages.id),
    (select number from short_ids where short_ids.id = developer_id),
    request_id, request_visible, sent_at
  from inbox_messages
  where id in (select id from events);
drop table inbox_messages;
alter table new_inbox_messages rename to inbox_messages;
create index inbox_messages_by_developer on inbox_messages (developer_id, seq);

-- The id of an entry is made of its time and its number. id holds those of before.
create table new_events (
  seq integer primary key not null,
  id text,
  type text not null,
  developer_id integer not null check (developer_id > 0),
  app_id integer check (app_id > 0),
  request_id text,
  phone text,
  status text,
  detail text,
  payload text,
  at integer not null
) strict;
insert into new_events
  select seq, id, type,
    (select number from short_ids where short_ids.id = developer_id),
    (select number from short_ids where short_ids.id = app_id),
    request_id,
    case when phone like 'anon\_%' escape '\' then substr(phone, 1, 19) else phone end,
    status, detail, payload, at
  from events
  order by seq;
drop table events;
alter table new_events rename to events;
create unique index events_by_id on events (id) where id is not null;
create index events_by_developer on events (developer_id, seq);
create index events_by_application on events (app_id, seq);

create table new_identities (
  id text primary key not null,
  developer_id integer not null check (developer_id > 0),
  phone text not null,
  country text,
  verification_count integer not null,
  first_verified_at integer not null,
  last_verified_at integer not null
) strict, without rowid;
insert into new_identities
  select id,
    (select number from short_ids where short_ids.id = developer_id),
    case when phone like 'anon\_%' escape '\' then substr(phone, 1, 19) else phone end,
    country, verification_count, first_verified_at, last_verified_at
  from identities
  order by id;
drop table identities;
alter table new_identities rename to identities;
create unique index identities_by_phone on identities (developer_id, phone);
create index identities_by_developer on identities (developer_id, id);

create table new_identity_applications (
  identity_id text not null references identities (id) on delete cascade,
  app_id integer not null check (app_id > 0),
  primary key (identity_id, app_id)
) strict, without rowid;
insert into new_identity_applications
  select identity_id, (select number from short_ids where short_ids.id = app_id)
  from identity_applications
  order by identity_id;
drop table identity_applications;
alter table new_identity_applications rename to identity_applications;

-- Messages are purged in the order of their requests, which is that of time.
drop index otp_deliveries_by_time;
