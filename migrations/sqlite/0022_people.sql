-- What happened to a request: its log entries and delivery attempts, a line each. See request-history.ts.
alter table otp_requests add column history text not null default '';
create temp table old_entries as
  select request_id, seq, type, status, detail, at from events
    where request_id is not null
      and type in ('otp.sent', 'otp.delivered', 'otp.undelivered', 'otp.verified', 'otp.failed', 'otp.expired',
        'otp.canceled', 'otp.blocked', 'otp.attempt_failed', 'guard.flagged')
    order by request_id, seq;
create index temp.old_entries_by_request on old_entries (request_id, seq);
update otp_requests set history = coalesce((
  select group_concat(line, '') from (
    select
      case e.type
        when 'otp.sent' then 's' when 'otp.delivered' then 'd' when 'otp.undelivered' then 'u'
        when 'otp.verified' then 'v' when 'otp.failed' then 'f' when 'otp.expired' then 'e'
        when 'otp.canceled' then 'c' when 'otp.blocked' then 'b' when 'otp.attempt_failed' then 'w' else 'g'
      end || substr(e.status, 1, 1) || ',' || (e.at - otp_requests.created_at) || ',' || e.seq || ','
        || coalesce(e.detail, '') || char(10) as line
    from old_entries e where e.request_id = otp_requests.id order by e.seq
  )
), '');
drop table old_entries;

-- Environments of deleted applications, whose requests and log entries stay listed.
create table deleted_applications (
  id text primary key not null,
  developer_id text not null,
  environment text not null check (environment = 'live' or environment = 'test')
) strict, without rowid;
insert into deleted_applications
  select app.id, developer.id, min(r.environment)
  from (select distinct app_id, developer_id, environment from otp_requests) as r
  join short_ids as app on app.number = r.app_id
  join short_ids as developer on developer.number = r.developer_id
  where app.id not in (select id from applications)
  group by app.id, developer.id;

-- The part of the counts that is of test applications.
alter table daily_counts add column test_requests integer not null default 0;
alter table daily_counts add column test_sent integer not null default 0;
alter table daily_counts add column test_verified integer not null default 0;
alter table daily_counts add column test_failed integer not null default 0;
alter table daily_counts add column test_active integer not null default 0;

-- Deliveries of events that were skipped because the endpoint was disabled, and requests as they were sent (JSON).
create table new_webhook_deliveries (
  id text primary key not null,
  endpoint_id text not null references webhook_endpoints (id) on delete cascade,
  event_seq integer not null,
  type text not null,
  status text not null check (
    status = 'pending' or status = 'delivered' or status = 'failed' or status = 'skipped'
  ),
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
create index webhook_deliveries_ended on webhook_deliveries (endpoint_id, id)
  where (status = 'failed' or status = 'skipped');
alter table webhook_attempts add column request text;
