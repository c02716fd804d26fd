-- The admissions of applications, two or three for each code, prune themselves and are found by their application: only
-- the others are looked for by time.
drop index rate_admissions_by_time;
create index rate_admissions_by_time on rate_admissions (at) where policy not in ('otp-send', 'otp-verify');
