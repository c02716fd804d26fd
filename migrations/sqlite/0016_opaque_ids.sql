-- From here on the ids of log entries hide the entry's number, which would tell every tenant how much all of them send.
-- Ids that were given out before stay as they are. The key stands here, and is never replaced, because receivers of
-- webhooks keep the ids: whoever reads this database reads the numbers themselves.
insert into meta (name, value) values ('event_id_key', lower(hex(randomblob(32))));
insert into meta (name, value) select 'plain_event_ids_until', cast(value as text) from counters where name = 'event_seq';

-- Refusals are no longer replayed, except those of a call that made an OTP request.
delete from idempotency_keys
where answer like '{"refusal":{"code":"%'
  and answer not like '{"refusal":{"code":"DESTINATION\_BLOCKED"%' escape '\'
  and answer not like '{"refusal":{"code":"DELIVERY\_FAILED"%' escape '\';
