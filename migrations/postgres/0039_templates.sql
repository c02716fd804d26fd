-- expand
-- Message texts of an application by purpose, such as login or payment. texts is a JSON object of texts by locale.
create table application_templates (
  app_id text collate "C" not null references applications (id) on delete cascade,
  name text collate "C" not null,
  texts text collate "C" not null,
  created_at bigint not null,
  updated_at bigint not null,
  primary key (app_id, name)
);
