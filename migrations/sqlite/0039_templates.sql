-- Message texts of an application by purpose, such as login or payment. texts is a JSON object of texts by locale.
create table application_templates (
  app_id text not null references applications (id) on delete cascade,
  name text not null,
  texts text not null,
  created_at integer not null,
  updated_at integer not null,
  primary key (app_id, name)
) strict;
