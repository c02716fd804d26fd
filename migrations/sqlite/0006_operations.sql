-- Who changed what, and from where. developer_id is whose account it concerns, null where it is the installation's; actor_id
-- the developer who did it, null where the operator or a stranger did. No foreign keys: the trail outlives what it tells of.
create table audit_entries (
  id text primary key not null,
  developer_id text,
  action text not null,
  actor_id text,
  target_id text,
  target_name text,
  detail text,
  source text not null check (source in ('api', 'host', 'server')),
  ip text,
  user_agent text,
  trace_id text,
  at integer not null
) strict, without rowid;
create index audit_entries_by_developer on audit_entries (developer_id, id);

-- How far the walks have come that take phone numbers out of old rows: the key of the last row that was seen.
create table retention_marks (
  walk text primary key not null,
  position text not null
) strict, without rowid;

-- What a purge looks for.
create index phone_check_budgets_by_time on phone_check_budgets (refilled_at);
create index refresh_tokens_by_expiry on refresh_tokens (expires_at);
