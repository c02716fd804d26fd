-- Requests, log entries and identities in less room. Developers, projects and applications keep their whole ids here.

-- What stands for a phone has 84 bits instead of 256, the hash of a code 96.
update otp_requests set phone = substr(phone, 1, 19) where phone like 'anon\_%';
update events set phone = substr(phone, 1, 19) where phone like 'anon\_%';
update identities set phone = substr(phone, 1, 19) where phone like 'anon\_%';
update otp_requests set code_hash = substr(code_hash, 1, 16);

-- The inbox is numbered as the log is: with the number of the entry that put a message there.
create table new_inbox_messages (
  seq bigint primary key not null,
  developer_id text not null references developers (id) on delete cascade,
  request_id text not null,
  request_visible integer not null check (request_visible in (0, 1)),
  sent_at bigint not null
);
insert into new_inbox_messages
  select events.seq, i.developer_id, i.request_id, request_visible, sent_at
  from inbox_messages i
  join events on events.id = i.id;
drop table inbox_messages;
alter table new_inbox_messages rename to inbox_messages;
create index inbox_messages_by_developer on inbox_messages (developer_id, seq);

-- The id of an entry is made of its time and its number. id holds those of before.
alter table events alter column id drop not null;
drop index events_by_id;
create unique index events_by_id on events (id) where id is not null;

-- Messages are purged in the order of their requests, which is that of time.
drop index otp_deliveries_by_time;
