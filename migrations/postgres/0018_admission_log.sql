-- Admissions stay rows on PostgreSQL, where several nodes write them. Only policies that are no longer stored go.
delete from rate_admissions where policy not in ('otp-send', 'otp-verify', 'webhook-test');
