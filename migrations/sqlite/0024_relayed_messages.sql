-- Messages with a code that another system made, so that receipts find them. Kept for a day. phone is sealed.
create table relayed_messages (
  id text primary key not null,
  developer_id text not null,
  project_id text not null,
  app_id text not null,
  environment text not null check (environment in ('live', 'test')),
  phone text not null,
  country text,
  channel text not null,
  provider text not null,
  message_id text,
  status text not null check (status in ('sent', 'unknown', 'delivered', 'undelivered')),
  created_at integer not null
) without rowid;
create index relayed_messages_by_message on relayed_messages (provider, message_id) where message_id is not null;
