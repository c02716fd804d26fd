-- Hash chains of the audit trail, one for each developer and one for the installation ('host'). Each entry holds the
-- hash of its content and of the entry before it. witness names the newest entry of another chain at that time, as
-- chain/position/hash, so that no chain can be set back alone. SQLite cannot hash, so otpd numbers and hashes the
-- existing entries in the same transaction.
alter table audit_entries add column position integer not null default 0;
alter table audit_entries add column hash text not null default '';
alter table audit_entries add column witness text;
create index audit_entries_by_position on audit_entries (developer_id, position);

-- The head of a chain: number and hash of its last entry, and of the last one that retention deleted. chains is how
-- many chains were ever started, in the row of the installation only. mac authenticates the row.
create table audit_chains (
  chain text primary key not null,
  entries integer not null,
  last_hash text not null,
  deleted integer not null,
  deleted_hash text not null,
  chains integer not null,
  started_at integer not null,
  key_version integer not null,
  mac text not null
) strict, without rowid;
