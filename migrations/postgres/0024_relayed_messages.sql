-- expand
-- Messages with a code that another system made, so that receipts find them. Kept for a day. phone is sealed.
create table relayed_messages (
  id text collate "C" primary key not null,
  developer_id text collate "C" not null,
  project_id text collate "C" not null,
  app_id text collate "C" not null,
  environment text collate "C" not null check (environment in ('live', 'test')),
  phone text collate "C" not null,
  country text collate "C",
  channel text collate "C" not null,
  provider text collate "C" not null,
  message_id text collate "C",
  status text collate "C" not null check (status in ('sent', 'unknown', 'delivered', 'undelivered')),
  created_at bigint not null
);
create index relayed_messages_by_message on relayed_messages (provider, message_id) where message_id is not null;
