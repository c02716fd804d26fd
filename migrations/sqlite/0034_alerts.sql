-- Alerts to the operator. They are pending until fired_at, and are deleted once the fault has been gone for a while.
create table alerts (
  kind text not null,
  subject text not null,
  severity text not null,
  message text not null,
  remedy text not null,
  source text not null,
  since integer not null,
  fired_at integer,
  notified_at integer,
  cleared_at integer,
  primary key (kind, subject)
) strict, without rowid;

-- Outbox of the notices about them: a row until its destination has taken it.
create table alert_notices (
  destination text not null,
  kind text not null,
  subject text not null,
  at integer not null,
  event text not null,
  severity text not null,
  message text not null,
  remedy text not null,
  since integer not null,
  due_at integer not null,
  attempts integer not null,
  failure text,
  primary key (destination, kind, subject, at)
) strict, without rowid;
