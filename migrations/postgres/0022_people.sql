-- expand
-- What happened to a request: its log entries and delivery attempts, a line each. See request-history.ts.
alter table otp_requests add column history text not null default '';
update otp_requests r set history = e.lines from (
  select e.request_id, string_agg(
    case e.type
      when 'otp.sent' then 's' when 'otp.delivered' then 'd' when 'otp.undelivered' then 'u'
      when 'otp.verified' then 'v' when 'otp.failed' then 'f' when 'otp.expired' then 'e'
      when 'otp.canceled' then 'c' when 'otp.blocked' then 'b' when 'otp.attempt_failed' then 'w' else 'g'
    end || left(e.status, 1) || ',' || (e.at - o.created_at) || ',' || e.seq || ',' || coalesce(e.detail, '') || chr(10),
    '' order by e.seq) as lines
  from events e join otp_requests o on o.id = e.request_id
  where e.type in ('otp.sent', 'otp.delivered', 'otp.undelivered', 'otp.verified', 'otp.failed', 'otp.expired',
    'otp.canceled', 'otp.blocked', 'otp.attempt_failed', 'guard.flagged')
  group by e.request_id
) e where e.request_id = r.id;

-- Environments of deleted applications, whose requests and log entries stay listed.
create table deleted_applications (
  id text collate "C" primary key not null,
  developer_id text collate "C" not null,
  environment text collate "C" not null check (environment in ('live', 'test'))
);
create index deleted_applications_by_developer on deleted_applications (developer_id, environment);
insert into deleted_applications
  select app_id, developer_id, min(environment) from otp_requests
  where app_id not in (select id from applications)
  group by app_id, developer_id;

-- The part of the counts that is of test applications.
alter table daily_counts add column test_requests integer not null default 0;
alter table daily_counts add column test_sent integer not null default 0;
alter table daily_counts add column test_verified integer not null default 0;
alter table daily_counts add column test_failed integer not null default 0;
alter table daily_counts add column test_active integer not null default 0;

-- Users are listed by environment.
drop index phones_by_identity;
create index phones_by_identity on phones (developer_id, environment, identity_id) where identity_id is not null;

-- Deliveries of events that were skipped because the endpoint was disabled, and requests as they were sent (JSON).
alter table webhook_deliveries drop constraint webhook_deliveries_status_check;
alter table webhook_deliveries add constraint webhook_deliveries_status_check
  check (status in ('pending', 'delivered', 'failed', 'skipped'));
drop index webhook_deliveries_failed;
create index webhook_deliveries_ended on webhook_deliveries (endpoint_id, id)
  where (status = 'failed' or status = 'skipped');
alter table webhook_attempts add column request text;
