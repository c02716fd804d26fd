-- expand
-- The ready page of an application. return_origins are separated by spaces; logo is a data URL.
create table application_pages (
  app_id text collate "C" primary key not null references applications (id) on delete cascade,
  enabled integer not null check (enabled in (0, 1)),
  name text collate "C",
  logo text collate "C",
  colour text collate "C",
  return_origins text collate "C"
);
-- Visits of end users to that page. Only a hash of the token of the link is kept; details are sealed. Kept for a day.
create table otp_sessions (
  id text collate "C" primary key not null,
  developer_id text collate "C" not null,
  app_id text collate "C" not null,
  token_hash text collate "C" not null,
  details text collate "C" not null,
  status text collate "C" not null check (status in ('created', 'sent', 'verified', 'canceled')),
  request_id text collate "C",
  created_at bigint not null,
  expires_at bigint not null
);
create unique index otp_sessions_by_token on otp_sessions (token_hash);
