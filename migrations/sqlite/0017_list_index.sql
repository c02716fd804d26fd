-- The lagging index, instead of indexes by developer, application and status, each of which was a page at a random
-- place for every row. A chunk is a row of neighboring keys of one list; first is the lowest. owner is the number of a
-- developer or an application, or the id of a webhook endpoint. otpd fills it in the same transaction: see list-fill.ts.
create table list_chunks (
  owner any not null,
  list text not null,
  first text not null,
  keys text not null,
  primary key (owner, list, first)
) strict, without rowid;

-- Changes of lists that are not in the chunks yet, a row for each transaction: see list-tail.ts. The last row is never
-- deleted, so that no number is used twice.
create table list_changes (
  seq integer primary key not null,
  changes text not null
) strict;

drop index events_by_developer;
drop index events_by_application;
drop index phones_by_identity;

-- Audit entries are few.
create index audit_entries_by_action on audit_entries (developer_id, action, id);
create index audit_entries_by_target on audit_entries (developer_id, target_id, id);
create index audit_entries_by_action_and_target on audit_entries (developer_id, action, target_id, id);

-- Rows of one day are neighbors, so that a batch of calls of many developers writes few pages.
create table new_daily_counts (
  day integer not null,
  developer_id text not null references developers (id) on delete cascade,
  requests integer not null default 0,
  sent integer not null default 0,
  verified integer not null default 0,
  failed integer not null default 0,
  active integer not null default 0,
  primary key (day, developer_id)
) strict, without rowid;
insert into new_daily_counts
  select day, developer_id, requests, sent, verified, failed, active from daily_counts order by day, developer_id;
drop table daily_counts;
alter table new_daily_counts rename to daily_counts;
create index daily_counts_by_developer on daily_counts (developer_id, day);

-- Counters of one UTC day. Empty texts stand for what a request has not: a country, a channel, a provider.
create table breakdown_counts (
  day integer not null,
  developer_id integer not null check (developer_id > 0),
  app_id integer not null check (app_id > 0),
  country text not null,
  channel text not null,
  provider text not null,
  requests integer not null default 0,
  sent integer not null default 0,
  delivered integer not null default 0,
  undelivered integer not null default 0,
  verified integer not null default 0,
  failed integer not null default 0,
  primary key (day, developer_id, app_id, country, channel, provider)
) strict, without rowid;

-- `in` builds a table of its values for each row that is written; `or` compares.
create table new_otp_requests (
  id text primary key not null,
  developer_id integer not null check (developer_id > 0),
  project_id integer not null check (project_id > 0),
  app_id integer not null check (app_id > 0),
  environment text not null,
  phone text not null,
  country text,
  status text not null check (
    status = 'pending' or status = 'verified' or status = 'failed' or status = 'expired' or status = 'canceled'
  ),
  failure_reason text check (
    failure_reason = 'max_attempts' or failure_reason = 'delivery_failed' or failure_reason = 'blocked'
  ),
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
  previous_request text,
  lane text check (lane = 'known' or lane = 'stranger'),
  contexts text,
  check ((status = 'verified') = (verified_at is not null)),
  check ((status = 'failed') = (failure_reason is not null))
) strict, without rowid;
insert into new_otp_requests
  select id, developer_id, project_id, app_id, environment, phone, country, status, failure_reason, channel, provider,
    delivery_status, locale, client_ip, metadata, code_salt, code_hash, attempts, resends, created_at, sent_at,
    expires_at, verified_at, updated_at, previous_request, lane, contexts
  from otp_requests
  order by id;
drop table otp_requests;
alter table new_otp_requests rename to otp_requests;
create index otp_requests_pending on otp_requests (expires_at) where status = 'pending';

create table new_otp_deliveries (
  request_id text not null references otp_requests (id) on delete cascade,
  message integer not null,
  channels text not null,
  status text not null check (
    status = 'pending' or status = 'sent' or status = 'unknown' or status = 'delivered' or status = 'undelivered'
    or status = 'refused' or status = 'void'
  ),
  provider text,
  message_id text,
  failure text,
  excluded text not null default '',
  attempts integer not null default 0,
  next_attempt_at integer,
  lease_owner text,
  lease_until integer,
  created_at integer not null,
  updated_at integer not null,
  primary key (request_id, message)
) strict, without rowid;
insert into new_otp_deliveries
  select request_id, message, channels, status, provider, message_id, failure, excluded, attempts, next_attempt_at,
    lease_owner, lease_until, created_at, updated_at
  from otp_deliveries
  order by request_id, message;
drop table otp_deliveries;
alter table new_otp_deliveries rename to otp_deliveries;
create index otp_deliveries_pending on otp_deliveries (next_attempt_at) where status = 'pending';
create index otp_deliveries_by_message_id on otp_deliveries (provider, message_id);

create table new_webhook_deliveries (
  id text primary key not null,
  endpoint_id text not null references webhook_endpoints (id) on delete cascade,
  event_seq integer not null,
  type text not null,
  status text not null check (status = 'pending' or status = 'delivered' or status = 'failed'),
  attempts integer not null default 0,
  claims integer not null default 0,
  failures integer not null default 0,
  last_status_code integer,
  last_error text,
  next_attempt_at integer,
  lease_owner text,
  lease_until integer,
  created_at integer not null,
  delivered_at integer
) strict, without rowid;
insert into new_webhook_deliveries
  select id, endpoint_id, event_seq, type, status, attempts, claims, failures, last_status_code, last_error,
    next_attempt_at, lease_owner, lease_until, created_at, delivered_at
  from webhook_deliveries
  order by id;
drop table webhook_deliveries;
alter table new_webhook_deliveries rename to webhook_deliveries;
create index webhook_deliveries_by_endpoint on webhook_deliveries (endpoint_id, id);
create index webhook_deliveries_waiting on webhook_deliveries (endpoint_id, next_attempt_at)
  where status = 'pending' and lease_owner is null;
create index webhook_deliveries_leased on webhook_deliveries (endpoint_id, lease_until) where lease_owner is not null;
create index webhook_deliveries_failed on webhook_deliveries (endpoint_id, id) where status = 'failed';

create table new_inbox_messages (
  seq integer primary key not null,
  developer_id integer not null check (developer_id > 0),
  request_id text not null,
  request_visible integer not null check (request_visible = 0 or request_visible = 1),
  sent_at integer not null
) strict;
insert into new_inbox_messages
  select seq, developer_id, request_id, request_visible, sent_at from inbox_messages order by seq;
drop table inbox_messages;
alter table new_inbox_messages rename to inbox_messages;

-- Records of phones in the order in which they were made: those of one batch of calls are neighbors, and a phone that is
-- verified soon after its send is on a page that was written a moment ago. phone_index finds them by the first 53 bits
-- of phone_hash; otpd fills it in bulk, see phone-index.ts.
create table new_phones (
  key integer primary key not null,
  phone_hash text not null,
  developer_id integer not null check (developer_id > 0),
  environment text not null check (environment = 'live' or environment = 'test'),
  phone text not null,
  country text,
  known_sends text,
  known_refilled_at integer,
  known_failures integer,
  known_locked_until integer,
  stranger_sends text,
  stranger_refilled_at integer,
  stranger_failures integer,
  stranger_locked_until integer,
  contexts text,
  newest_request text,
  last_sent_at integer not null,
  identity_id text,
  verification_count integer,
  first_verified_at integer,
  last_verified_at integer,
  applications text
) strict;
insert into new_phones
  select null, phone_hash, developer_id, environment, phone, country, known_sends, known_refilled_at, known_failures,
    known_locked_until, stranger_sends, stranger_refilled_at, stranger_failures, stranger_locked_until, contexts,
    newest_request, last_sent_at, identity_id, verification_count, first_verified_at, last_verified_at, applications
  from phones
  order by last_sent_at, key;
drop table phones;
alter table new_phones rename to phones;

create table phone_index (
  hash integer not null,
  key integer not null,
  primary key (hash, key)
) strict, without rowid;
