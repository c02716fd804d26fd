-- API tokens for machines, and ID tokens that end with their session.

create table api_tokens (
  id text collate "C" primary key not null,
  developer_id text collate "C" not null references developers (id),
  name text not null,
  scopes text not null,
  preview text not null,
  salt text not null,
  hash text not null,
  created_at bigint not null,
  expires_at bigint,
  last_used_at bigint
);
create unique index api_tokens_by_name on api_tokens (developer_id, name);
create index api_tokens_by_preview on api_tokens (preview);

alter table audit_entries add column token_id text;
alter table developers add column tokens_valid_from bigint not null default 0;

-- Sessions end 90 days after the login; those that exist, 90 days after this upgrade.
alter table refresh_tokens add column session_ends_at bigint not null default 0;
update refresh_tokens set session_ends_at = (floor(extract(epoch from now()))::bigint + 90 * 86400) * 1000;
