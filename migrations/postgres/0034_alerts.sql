-- expand
-- Alerts to the operator. They are pending until fired_at, and are deleted once the fault has been gone for a while.
create table alerts (
  kind text collate "C" not null,
  subject text collate "C" not null,
  severity text not null,
  message text not null,
  remedy text not null,
  source text collate "C" not null,
  since bigint not null,
  fired_at bigint,
  notified_at bigint,
  cleared_at bigint,
  primary key (kind, subject)
);

-- Outbox of the notices about them: a row until its destination has taken it.
create table alert_notices (
  destination text collate "C" not null,
  kind text collate "C" not null,
  subject text collate "C" not null,
  at bigint not null,
  event text not null,
  severity text not null,
  message text not null,
  remedy text not null,
  since bigint not null,
  due_at bigint not null,
  attempts integer not null,
  failure text,
  primary key (destination, kind, subject, at)
);
