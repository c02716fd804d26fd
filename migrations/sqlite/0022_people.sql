-- What happened to a request: its log entries and delivery attempts, a line each. See request-history.ts.
alter table otp_requests add column history text not null default '';
create temp table old_entries as
  select request_id, seq, type, status, detail, at from events
    where request_id is not null
      and type in ('otp.sent', 'otp.delivered', 'otp.undelivered', 'otp.verified', 'otp.failed', 'otp.expired',
        'otp.canceled', 'otp.blocked', 'otp.attempt_failed', 'guard.flagged')
    order by request_id, seq;
create index temp.old_entries_by_request on old_entries (request_id, seq);
update otp_requests set history = coalesce((
  select group_concat(line, '') from (
    select
      case e.type
        when 'otp.sent' then 's' when 'otp.delivered' then 'd' when 'otp.undelivered' then 'u'
        when 'otp.verified' then 'v' when 'otp.failed' then 'f' when 'otp.expired' then 'e'
        when 'otp.canceled' then 'c' when 'otp.blocked' then 'b' when 'otp.attempt_failed' then 'w' else 'g'
      end || substr(e.status, 1, 1) || ',' || (e.at - otp_requests.created_at) || ',' || e.seq || ','
        || coalesce(e.detail, '') || char(10) as line
    from old_entries e where e.request_id = otp_requests.id order by e.seq
  )
), '');
drop table old_entries;
