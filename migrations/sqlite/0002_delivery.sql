-- One row for each message of an OTP request: 0 is the first, then its resends. Neither code nor text: both are derived
-- when the message is sent. channels are those that it may take, in order; provider and message_id say who has it,
-- excluded who never will (channel/provider, with commas).
create table otp_deliveries (
  request_id text not null references otp_requests (id) on delete cascade,
  message integer not null,
  channels text not null,
  status text not null check (status in ('pending', 'sent', 'unknown', 'delivered', 'undelivered', 'refused', 'void')),
  provider text,
  message_id text,
  failure text,
  excluded text not null default '',
  attempts integer not null default 0,
  next_attempt_at integer,
  lease_owner text,
  lease_until integer,
  created_at integer not null,
  updated_at integer not null,
  primary key (request_id, message)
) strict, without rowid;
create index otp_deliveries_pending on otp_deliveries (next_attempt_at) where status = 'pending';
create index otp_deliveries_by_message_id on otp_deliveries (provider, message_id);
create index otp_deliveries_by_time on otp_deliveries (created_at);

-- Providers that the running server rests, for the eyes of the operator.
create table resting_providers (
  name text primary key not null,
  failure text not null,
  resting_until integer not null
) strict, without rowid;
