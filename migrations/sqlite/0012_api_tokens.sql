-- API tokens for machines, and ID tokens that end with their session.

create table api_tokens (
  id text primary key not null,
  developer_id text not null references developers (id),
  name text not null,
  scopes text not null,
  preview text not null,
  salt text not null,
  hash text not null,
  created_at integer not null,
  expires_at integer,
  last_used_at integer
) strict;
create unique index api_tokens_by_name on api_tokens (developer_id, name);
create index api_tokens_by_preview on api_tokens (preview);

alter table audit_entries add column token_id text;
alter table developers add column tokens_valid_from integer not null default 0;

-- Sessions end 90 days after the login; those that exist, 90 days after this upgrade.
alter table refresh_tokens add column session_ends_at integer not null default 0;
update refresh_tokens set session_ends_at = (unixepoch() + 90 * 86400) * 1000;
