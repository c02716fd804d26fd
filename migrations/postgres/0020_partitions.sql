-- expand

-- Bytewise, as in SQLite: two columns of different collations cannot be joined by an index.
do $$
declare
  c record;
begin
  for c in
    select a.attrelid::regclass as tbl, a.attname as col
    from pg_attribute a join pg_class r on r.oid = a.attrelid
    where r.relnamespace = current_schema()::regnamespace and r.relkind = 'r' and a.attnum > 0
      and not a.attisdropped and a.atttypid = 'text'::regtype and a.attcollation <> '"C"'::regcollation
    order by 1, a.attnum
  loop
    execute format('alter table %s alter column %I type text collate "C"', c.tbl, c.col);
  end loop;
end $$;

-- The largest tables in partitions of a month, which the ids of their rows tell; those of the log in ranges of about as
-- many entries. otpd makes partitions ahead of time and drops old ones: see src/store/engine/partitions.ts. Rows without
-- a partition of their own are in TABLE_rest.
--
-- Foreign keys between them are triggers from here on: dropping a partition would otherwise look for rows that reference
-- it in all of the other table.
alter table otp_deliveries drop constraint otp_deliveries_request_id_fkey;
alter table webhook_attempts drop constraint webhook_attempts_delivery_id_fkey;
-- Unique indexes of partitioned tables must have the key. Ids of 0.1.0 are unique, and no new ones are stored.
drop index events_by_id;
create index events_by_id on events (id) where id is not null;

do $$
declare
  t record;
  definitions text[];
  definition text;
begin
  for t in select * from (values
    ('otp_requests', 'id', 'id'),
    ('otp_deliveries', 'request_id', 'request_id, message'),
    ('events', 'seq', 'seq'),
    ('webhook_deliveries', 'id', 'id'),
    ('webhook_attempts', 'delivery_id', 'delivery_id, number')
  ) as v (name, key, primary_key)
  loop
    select coalesce(array_agg(indexdef), '{}') into definitions
      from pg_indexes
      where schemaname = current_schema() and tablename = t.name and indexname <> t.name || '_pkey';
    execute format('alter table %I rename to old_table', t.name);
    execute format('create table %I (like old_table including defaults including constraints) partition by range (%I)', t.name, t.key);
    execute format('create table %I partition of %I default', t.name || '_rest', t.name);
    execute format('insert into %I select * from old_table', t.name);
    drop table old_table;
    execute format('alter table %I add primary key (%s)', t.name, t.primary_key);
    foreach definition in array definitions loop
      execute definition;
    end loop;
  end loop;
end $$;

alter table webhook_deliveries
  add foreign key (endpoint_id) references webhook_endpoints (id) on delete cascade;

create function otpd_delete_messages() returns trigger language plpgsql as $$
begin
  delete from otp_deliveries where request_id = old.id;
  return null;
end $$;
create trigger delete_messages after delete on otp_requests
  for each row execute function otpd_delete_messages();

create function otpd_delete_attempts() returns trigger language plpgsql as $$
begin
  delete from webhook_attempts where delivery_id = old.id;
  return null;
end $$;
create trigger delete_attempts after delete on webhook_deliveries
  for each row execute function otpd_delete_attempts();

-- Nodes may have a role that must not change the schema. These functions run with the rights of the owner, and do no more
-- than their names say.

-- Makes a partition, with the rows that it is to have from TABLE_rest. False: others use the table, try again later.
create function otpd_make_partition(tbl text, suffix text, lower_bound text, upper_bound text) returns boolean
language plpgsql security definer as $$
declare
  key text := (select a.attname from pg_partitioned_table p
    join pg_attribute a on a.attrelid = p.partrelid and a.attnum = p.partattrs[0]
    where p.partrelid = to_regclass(quote_ident(tbl)));
  name text := tbl || '_' || suffix;
begin
  if key is null or suffix !~ '^[0-9]{1,19}$' then
    raise exception 'not a partition: %', name;
  end if;
  if to_regclass(quote_ident(name)) is not null then
    return true;
  end if;
  execute format('lock table %I in access exclusive mode', tbl || '_rest');
  execute format('create table %I (like %I including all)', name, tbl);
  -- These rows are moved, not deleted.
  execute format('alter table %I disable trigger user', tbl || '_rest');
  execute format('with moved as (delete from %1$I where %2$I >= %3$L and %2$I < %4$L returning *) insert into %5$I select * from moved',
    tbl || '_rest', key, lower_bound, upper_bound, name);
  execute format('alter table %I enable trigger user', tbl || '_rest');
  execute format('alter table %I attach partition %I for values from (%L) to (%L)', tbl, name, lower_bound, upper_bound);
  return true;
exception when lock_not_available then
  return false;
end $$;

-- Drops a partition, with its rows. False: others use the table, try again later.
create function otpd_drop_partition(tbl text, suffix text) returns boolean
language plpgsql security definer as $$
begin
  if suffix !~ '^[0-9]{1,19}$' or not exists (
    select 1 from pg_inherits i join pg_partitioned_table p on p.partrelid = i.inhparent
    where i.inhparent = to_regclass(quote_ident(tbl)) and i.inhrelid = to_regclass(quote_ident(tbl || '_' || suffix)))
  then
    raise exception 'not a partition: %', tbl || '_' || suffix;
  end if;
  execute format('drop table %I', tbl || '_' || suffix);
  return true;
exception when lock_not_available then
  return false;
end $$;

-- Deletes the oldest audit entries of a developer, or those of the installation. Nodes need no right to delete others.
create function otpd_delete_audit_entries(developer text, up_to integer) returns integer
language plpgsql security definer as $$
declare
  deleted integer;
begin
  delete from audit_entries where developer_id is not distinct from developer and position <= up_to;
  get diagnostics deleted = row_count;
  return deleted;
end $$;

-- The functions find our tables alone, whatever the caller's search path is.
do $$
declare
  f record;
begin
  for f in
    select p.oid::regprocedure as signature from pg_proc p
    where p.pronamespace = current_schema()::regnamespace and p.proname like 'otpd\_%'
  loop
    execute format('alter function %s set search_path = %I, pg_temp', f.signature, current_schema());
  end loop;
end $$;

alter function otpd_make_partition set lock_timeout = '1s';
alter function otpd_drop_partition set lock_timeout = '1s';
revoke execute on function otpd_make_partition, otpd_drop_partition, otpd_delete_audit_entries from public;
