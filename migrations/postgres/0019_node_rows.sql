-- expand
-- Nodes that serve this database, for otpd doctor. process tells two processes of one name apart. configuration is a keyed
-- hash of the settings that all nodes should share, settings their JSON without secrets.
create table nodes (
  name text collate "C" primary key not null,
  process text not null,
  version text not null,
  configuration text not null,
  settings text not null,
  started_at bigint not null,
  seen_at bigint not null
);
