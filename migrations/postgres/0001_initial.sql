-- Times are milliseconds since the epoch. Ids are TypeIDs, so that the order of ids is the order of creation.
-- The same tables as for SQLite; a time or a sequence is a bigint.

-- One row for each fact about the installation, such as the check value of the master key.
create table meta (
  name text primary key not null,
  value text not null
);

-- The number of the last log entry. Taken inside the transaction that writes the entry, so that entries are
-- numbered in the order of commits.
create table counters (
  name text primary key not null,
  value bigint not null
);
insert into counters (name, value) values ('event_seq', 0);

-- issuer and subject are null while an account made by the operator waits for its first login.
create table developers (
  id text collate "C" primary key not null,
  issuer text,
  subject text,
  email text,
  name text,
  company text,
  plan text not null,
  virtual_phone text not null,
  status text not null check (status in ('active', 'disabled')),
  created_at bigint not null,
  updated_at bigint not null,
  check ((issuer is null) = (subject is null))
);
create unique index developers_by_subject on developers (issuer, subject);
create unique index developers_by_virtual_phone on developers (virtual_phone);
create unique index developers_awaited on developers (email) where issuer is null;

-- Passwords of the built-in provider. The e-mail is kept in lower case.
create table accounts (
  developer_id text primary key not null references developers (id) on delete cascade,
  email text not null,
  password_hash text not null,
  created_at bigint not null,
  updated_at bigint not null
);
create unique index accounts_by_email on accounts (email);

create table setup_tokens (
  hash text primary key not null,
  first integer not null check (first in (0, 1)),
  created_at bigint not null,
  expires_at bigint not null
);

-- The successor of a token is derived from it, never stored.
create table refresh_tokens (
  hash text primary key not null,
  family text not null,
  developer_id text not null references developers (id) on delete cascade,
  created_at bigint not null,
  expires_at bigint not null,
  used_at bigint
);
create index refresh_tokens_by_family on refresh_tokens (family);
create index refresh_tokens_by_developer on refresh_tokens (developer_id);

-- private_key is encrypted under the master key.
create table signing_keys (
  kid text primary key not null,
  public_jwk text not null,
  private_key text not null,
  created_at bigint not null,
  retired_at bigint
);

create table projects (
  id text collate "C" primary key not null,
  developer_id text not null references developers (id) on delete cascade,
  name text not null,
  description text,
  created_at bigint not null,
  updated_at bigint not null
);
create index projects_by_developer on projects (developer_id, id);
-- Target of the key below: an application can only be put into a project of its own developer.
create unique index projects_owned on projects (id, developer_id);

-- api_key_preview holds the eight characters that the API shows. They find the row; they are not unique.
-- credentials_version grows with each rotation, so that a request can tell that its credentials are of yesterday.
create table applications (
  id text collate "C" primary key not null,
  developer_id text not null,
  project_id text not null,
  name text not null,
  environment text not null check (environment in ('live', 'test')),
  status text not null check (status in ('active', 'disabled')),
  otp_ttl_seconds integer not null check (otp_ttl_seconds between 60 and 600),
  client_id_salt text not null,
  client_id_hash text not null,
  client_secret_salt text not null,
  client_secret_hash text not null,
  client_secret_preview text not null,
  client_secret_rotated_at bigint,
  api_key_salt text not null,
  api_key_hash text not null,
  api_key_preview text not null,
  api_key_rotated_at bigint,
  webhook_secret text not null,
  webhook_secret_rotated_at bigint,
  credentials_version integer not null default 1,
  created_at bigint not null,
  updated_at bigint not null,
  foreign key (project_id, developer_id) references projects (id, developer_id) on delete restrict
);
create index applications_by_developer on applications (developer_id, id);
create index applications_by_project on applications (project_id);
create index applications_by_api_key on applications (api_key_preview);

-- No foreign key to the application: requests outlive it.
create table otp_requests (
  id text collate "C" primary key not null,
  developer_id text not null,
  project_id text not null,
  app_id text not null,
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
  created_at bigint not null,
  sent_at bigint not null,
  expires_at bigint not null,
  verified_at bigint,
  updated_at bigint not null,
  check ((status = 'verified') = (verified_at is not null)),
  check ((status = 'failed') = (failure_reason is not null))
);
create index otp_requests_by_developer on otp_requests (developer_id, id);
create index otp_requests_by_application on otp_requests (app_id, id);
create index otp_requests_pending on otp_requests (expires_at) where status = 'pending';

-- What the inbox of a developer shows: which request, never its code or text. request_visible is 0 where
-- another developer sent it.
create table inbox_messages (
  id text collate "C" primary key not null,
  developer_id text not null references developers (id) on delete cascade,
  request_id text not null,
  request_visible integer not null check (request_visible in (0, 1)),
  sent_at bigint not null
);
create index inbox_messages_by_developer on inbox_messages (developer_id, id);
create index inbox_messages_by_time on inbox_messages (sent_at);

create table identities (
  id text collate "C" primary key not null,
  developer_id text not null references developers (id) on delete cascade,
  phone text not null,
  country text,
  verification_count integer not null,
  first_verified_at bigint not null,
  last_verified_at bigint not null
);
create unique index identities_by_phone on identities (developer_id, phone);
create index identities_by_developer on identities (developer_id, id);

create table identity_applications (
  identity_id text not null references identities (id) on delete cascade,
  app_id text not null,
  primary key (identity_id, app_id)
);

-- The log feed, and the source of webhook deliveries. payload is the body of the webhook event, kept only for
-- events that somebody subscribed to.
create table events (
  seq bigint primary key not null,
  id text not null,
  type text not null,
  developer_id text not null,
  app_id text,
  request_id text,
  phone text,
  status text,
  detail text,
  payload text,
  at bigint not null
);
create unique index events_by_id on events (id);
create index events_by_developer on events (developer_id, seq);
create index events_by_application on events (app_id, seq);

create table webhook_endpoints (
  id text collate "C" primary key not null,
  developer_id text not null,
  app_id text not null references applications (id) on delete cascade,
  url text not null,
  events text not null,
  status text not null check (status in ('enabled', 'disabled')),
  disabled_reason text,
  failing_since bigint,
  last_delivery_at bigint,
  created_at bigint not null,
  updated_at bigint not null
);
create index webhook_endpoints_by_developer on webhook_endpoints (developer_id, id);
create index webhook_endpoints_by_application on webhook_endpoints (app_id, id);

-- The outbox. next_attempt_at is null once the delivery has ended.
create table webhook_deliveries (
  id text collate "C" primary key not null,
  endpoint_id text not null references webhook_endpoints (id) on delete cascade,
  event_seq bigint not null,
  status text not null check (status in ('pending', 'delivered', 'failed')),
  attempts integer not null default 0,
  last_status_code integer,
  last_error text,
  next_attempt_at bigint,
  lease_owner text,
  lease_until bigint,
  created_at bigint not null,
  delivered_at bigint
);
create index webhook_deliveries_by_endpoint on webhook_deliveries (endpoint_id, id);
create index webhook_deliveries_pending on webhook_deliveries (endpoint_id, next_attempt_at) where status = 'pending';

-- The log of admissions of the last window, for each subject and policy. seq counts within the subject, so that the
-- number of admissions in a window is a difference and not a count.
create table rate_admissions (
  subject text not null,
  policy text not null,
  at bigint not null,
  seq bigint not null,
  primary key (subject, policy, at, seq)
);
create index rate_admissions_by_time on rate_admissions (at);

-- Failed checks of one phone in one application, over all its requests. refilled_at is the time at which the last of
-- them is forgiven.
create table phone_check_budgets (
  app_id text not null,
  phone_hash text not null,
  refilled_at bigint not null,
  consecutive_failures integer not null,
  locked_until bigint,
  primary key (app_id, phone_hash)
);

create table idempotency_keys (
  caller text not null,
  route text not null,
  key text not null,
  body_hash text not null,
  answer text,
  created_at bigint not null,
  primary key (caller, route, key)
);
create index idempotency_keys_by_time on idempotency_keys (created_at);

-- Counters of one UTC day (days since the epoch). active counts the identities whose last verification was on that
-- day, so that the active ones of a month are a sum of thirty rows.
create table daily_counts (
  developer_id text not null references developers (id) on delete cascade,
  day integer not null,
  requests integer not null default 0,
  sent integer not null default 0,
  verified integer not null default 0,
  failed integer not null default 0,
  active integer not null default 0,
  primary key (developer_id, day)
);
