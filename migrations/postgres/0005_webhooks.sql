-- What an endpoint is for, and the headers that it wants: a JSON object of names and values, the latter encrypted under a
-- sub-key of the master key, since they are credentials of somebody else's system.
-- due_at is the earliest time at which there may be something to send to it, so that a worker finds the endpoints with
-- work without looking at those that wait.
alter table webhook_endpoints add column description text;
alter table webhook_endpoints add column headers text;
alter table webhook_endpoints add column due_at bigint;
create index webhook_endpoints_due on webhook_endpoints (due_at) where status = 'enabled' and due_at is not null;

-- claims counts the leases that were given out and fences what their holders write; failures counts those of the
-- schedule that runs, attempts all that were made.
alter table webhook_deliveries add column type text not null default '';
alter table webhook_deliveries add column claims integer not null default 0;
alter table webhook_deliveries add column failures integer not null default 0;
update webhook_deliveries set
  type = coalesce((select type from events where seq = event_seq), ''),
  lease_owner = null,
  lease_until = null;
update webhook_endpoints set due_at = 0
  where id in (select endpoint_id from webhook_deliveries where status = 'pending');
drop index webhook_deliveries_pending;
create index webhook_deliveries_waiting on webhook_deliveries (endpoint_id, next_attempt_at)
  where status = 'pending' and lease_owner is null;
create index webhook_deliveries_leased on webhook_deliveries (endpoint_id, lease_until) where lease_owner is not null;
create index webhook_deliveries_by_status on webhook_deliveries (endpoint_id, status, id);
create index webhook_deliveries_by_type on webhook_deliveries (endpoint_id, type, id);

-- Each attempt of a delivery. body is the beginning of what the receiver answered.
create table webhook_attempts (
  delivery_id text collate "C" not null references webhook_deliveries (id) on delete cascade,
  number integer not null,
  at bigint not null,
  status_code integer,
  error text,
  duration_ms integer not null,
  body text,
  primary key (delivery_id, number)
);
