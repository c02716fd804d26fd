-- Lists by a filter. SQLite has a lagging index instead of these and of those by developer and application.
create index otp_requests_by_developer_and_status on otp_requests (developer_id, status, id);
create index otp_requests_by_application_and_status on otp_requests (app_id, status, id);
create index events_by_developer_and_type on events (developer_id, type, seq);
create index events_by_application_and_type on events (app_id, type, seq);
drop index webhook_deliveries_by_status;
create index webhook_deliveries_by_status on webhook_deliveries (endpoint_id, status, type, id);
create index webhook_deliveries_failed on webhook_deliveries (endpoint_id, id) where status = 'failed';
create index audit_entries_by_action on audit_entries (developer_id, action, id);
create index audit_entries_by_target on audit_entries (developer_id, target_id, id);
create index audit_entries_by_action_and_target on audit_entries (developer_id, action, target_id, id);

-- Counters of one UTC day. Empty texts stand for what a request has not: a country, a channel, a provider.
create table breakdown_counts (
  day integer not null,
  developer_id text not null,
  app_id text not null,
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
);

-- Keys are numbers in the order in which the records were made, and the hash finds a record.
create sequence phones_keys;
select setval('phones_keys', (select coalesce(max(key), 0) + 1 from phones), false);
alter table phones alter column key set default nextval('phones_keys');
create unique index phones_by_hash on phones (phone_hash);
