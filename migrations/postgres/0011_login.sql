-- Failed logins since the last one that succeeded, from all networks together.
alter table accounts add column failed_logins integer not null default 0;

-- Failed logins of the last 15 minutes. network and account are keyed hashes: most addresses have no account.
create table login_failures (
  network text not null,
  account text not null,
  seq bigint not null,
  at bigint not null,
  primary key (network, account, seq)
);
create index login_failures_by_time on login_failures (at);
delete from rate_admissions where policy = 'login';

-- One row per network, which locks it while its failures are counted, and per address without an account, with the
-- number of its failures. subject is a keyed hash.
create table login_counters (
  subject text primary key not null,
  failures integer not null,
  at bigint not null
);
create index login_counters_by_time on login_counters (at);

-- Networks that an account was logged in to from, as keyed hashes that differ between accounts.
create table login_networks (
  developer_id text not null references accounts (developer_id) on delete cascade,
  network text not null,
  at bigint not null,
  primary key (developer_id, network)
);

-- Second factors (RFC 6238). secret is encrypted; confirmed_at is null until the first code; last_step is the time step
-- of the last accepted code, so that each is accepted once.
create table totp_secrets (
  developer_id text primary key not null references accounts (developer_id) on delete cascade,
  secret text not null,
  last_step bigint not null default 0,
  created_at bigint not null,
  confirmed_at bigint
);

create table recovery_codes (
  developer_id text not null references totp_secrets (developer_id) on delete cascade,
  hash text not null,
  primary key (developer_id, hash)
);
