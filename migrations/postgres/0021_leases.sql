-- expand
-- Leases that nodes hold, by name: the lead of the background walks, and `node/NAME` for each node that lives. `epoch` is the
-- fencing token: it grows whenever another owner takes the lease.
create table leases (
  name text collate "C" primary key not null,
  owner text collate "C" not null,
  until bigint not null,
  epoch integer not null
);

-- Open circuits of each node. They end with the lease of their node.
drop table resting_providers;
create table provider_circuits (
  node text collate "C" not null,
  name text collate "C" not null,
  failure text not null,
  open_until bigint not null,
  primary key (node, name)
);

-- Delivery receipts that match no message yet, because they arrived before the provider's response to the send. A minute later
-- they are void. message_id, request_id: '' if the receipt has none; failure: JSON.
create table early_receipts (
  provider text collate "C" not null,
  message_id text collate "C" not null,
  request_id text collate "C" not null,
  status text not null,
  failure text,
  received_at bigint not null,
  primary key (provider, message_id, request_id)
);
create index early_receipts_by_request on early_receipts (request_id);
create index early_receipts_by_time on early_receipts (received_at);

-- The probe of readiness writes to the lease of its node.
delete from meta where name = 'readiness_probed_at';

-- Nodes that start at the same time must agree on one key. SQLite has one writer.
create unique index signing_keys_current on signing_keys ((retired_at is null)) where retired_at is null;
