-- Leases that nodes hold, by name: the lead of the background walks, and `node/NAME` for each node that lives. `epoch` is the
-- fencing token: it grows whenever another owner takes the lease. Databases on SQLite have one process, which always leads.
create table leases (
  name text primary key not null,
  owner text not null,
  until integer not null,
  epoch integer not null
) strict, without rowid;

-- Open circuits of each node. The rows of before are of processes that have ended.
drop table resting_providers;
create table provider_circuits (
  node text not null,
  name text not null,
  failure text not null,
  open_until integer not null,
  primary key (node, name)
) strict, without rowid;

-- Delivery receipts that match no message yet, because they arrived before the provider's response to the send. A minute later
-- they are void. message_id, request_id: '' if the receipt has none; failure: JSON.
create table early_receipts (
  provider text not null,
  message_id text not null,
  request_id text not null,
  status text not null,
  failure text,
  received_at integer not null,
  primary key (provider, message_id, request_id)
) strict, without rowid;
create index early_receipts_by_request on early_receipts (request_id);
create index early_receipts_by_time on early_receipts (received_at);

-- The probe of readiness writes to the lease of its node.
delete from meta where name = 'readiness_probed_at';
