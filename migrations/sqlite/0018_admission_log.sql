-- The admissions of the last minute are in memory; this is their redo log, one row for each batch of transactions. `at` is
-- the time of its newest admission and never falls from one row to the next. `entries` is described in
-- src/store/engine/admission-log.ts: [base, short id * 4 + policy, time - base].
create table admission_batches (
  seq integer primary key,
  at integer not null,
  entries text not null
) strict;

-- Limits stay as used as they were. Older admissions are outside every window.
insert into admission_batches (at, entries)
select r.at, '[' || r.at || ',' ||
  (s.number * 4 + case r.policy when 'otp-send' then 0 when 'otp-verify' then 1 else 2 end) || ',0]'
from rate_admissions r join short_ids s on s.id = r.subject
where r.policy in ('otp-send', 'otp-verify', 'webhook-test')
  and r.at > cast(strftime('%s', 'now') as integer) * 1000 - 60000
order by r.at, r.seq;
drop table rate_admissions;
