-- expand
-- What happened to a request: its log entries and delivery attempts, a line each. See request-history.ts.
alter table otp_requests add column history text not null default '';
update otp_requests r set history = e.lines from (
  select e.request_id, string_agg(
    case e.type
      when 'otp.sent' then 's' when 'otp.delivered' then 'd' when 'otp.undelivered' then 'u'
      when 'otp.verified' then 'v' when 'otp.failed' then 'f' when 'otp.expired' then 'e'
      when 'otp.canceled' then 'c' when 'otp.blocked' then 'b' when 'otp.attempt_failed' then 'w' else 'g'
    end || left(e.status, 1) || ',' || (e.at - o.created_at) || ',' || e.seq || ',' || coalesce(e.detail, '') || chr(10),
    '' order by e.seq) as lines
  from events e join otp_requests o on o.id = e.request_id
  where e.type in ('otp.sent', 'otp.delivered', 'otp.undelivered', 'otp.verified', 'otp.failed', 'otp.expired',
    'otp.canceled', 'otp.blocked', 'otp.attempt_failed', 'guard.flagged')
  group by e.request_id
) e where e.request_id = r.id;
