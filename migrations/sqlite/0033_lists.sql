-- Lists are rows: the number of a developer or an application, or the id of a webhook endpoint; the number of a list (see
-- list-numbers.ts); the sequence number or the id of a row. list_chunks had the same keys, encoded in texts. otpd fills them
-- in the same transaction: see list-fill.ts. list_changes has the changes of lists that may not be in the table yet, a row
-- for each transaction.
drop table list_chunks;
create table lists (
  owner any not null,
  list integer not null,
  key any not null,
  primary key (owner, list, key)
) strict, without rowid;

-- With a filter, a list of a developer merges those of its applications, also of deleted ones: see 0022.
insert into deleted_applications
  select app.id, developer.id, 'live'
  from (select distinct app_id, developer_id from events) as e
  join short_ids as app on app.number = e.app_id
  join short_ids as developer on developer.number = e.developer_id
  where app.id not in (select id from applications union all select id from deleted_applications);
