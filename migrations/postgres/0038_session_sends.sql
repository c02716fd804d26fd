-- expand
alter table otp_sessions add column sends integer not null default 0;
