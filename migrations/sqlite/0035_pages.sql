-- The ready page of an application. return_origins are separated by spaces; logo is a data URL.
create table application_pages (
  app_id text primary key not null references applications (id) on delete cascade,
  enabled integer not null check (enabled in (0, 1)),
  name text,
  logo text,
  colour text,
  return_origins text
) without rowid;
-- Visits of end users to that page. Only a hash of the token of the link is kept; details are sealed. Kept for a day.
create table otp_sessions (
  id text primary key not null,
  developer_id text not null,
  app_id text not null,
  token_hash text not null,
  details text not null,
  status text not null check (status in ('created', 'sent', 'verified', 'canceled')),
  request_id text,
  created_at integer not null,
  expires_at integer not null
) without rowid;
create unique index otp_sessions_by_token on otp_sessions (token_hash);
