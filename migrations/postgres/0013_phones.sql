-- One row for each developer, environment and phone: the budgets of its two lanes, the contexts that verified it, the
-- identity, and the newest request. The key is the beginning of phone_hash, so that a call reads and writes one page.
-- last_sent_at is 0 before the first send.
create table phones (
  key bigint primary key not null,
  phone_hash text not null,
  developer_id text not null,
  environment text not null check (environment = 'live' or environment = 'test'),
  phone text not null,
  country text,
  known_sends text,
  known_refilled_at bigint,
  known_failures integer,
  known_locked_until bigint,
  stranger_sends text,
  stranger_refilled_at bigint,
  stranger_failures integer,
  stranger_locked_until bigint,
  contexts text,
  newest_request text,
  last_sent_at bigint not null,
  identity_id text collate "C",
  verification_count integer,
  first_verified_at bigint,
  last_verified_at bigint,
  applications text
);
create index phones_by_identity on phones (developer_id, identity_id) where identity_id is not null;

-- Requests of a phone are a list, linked from the newest. contexts has the hashes that the send was made with.
alter table otp_requests add column previous_request text;
alter table otp_requests add column lane text check (lane = 'known' or lane = 'stranger');
alter table otp_requests add column contexts text;

-- identities, identity_applications and phone_check_budgets hold what 0.1.0 wrote, until each row moves to phones.
create index phone_check_budgets_by_phone on phone_check_budgets (phone_hash);
