-- expand
-- Rules with which a developer allows or denies destinations and networks. rules: a JSON list, sealed because it names
-- phones. version: increases with each change, so that nodes notice it. A row stays once there was a rule.
create table guard_rules (
  developer_id text collate "C" primary key not null references developers (id),
  rules text collate "C" not null,
  version integer not null,
  next_expiry_at bigint
);
create index guard_rules_by_expiry on guard_rules (next_expiry_at) where next_expiry_at is not null;
