-- expand
-- When the provider of a message hears next how its request ended; null if it need not, or has heard it.
alter table otp_deliveries add column report_due_at bigint;
create index otp_deliveries_report_due on otp_deliveries (report_due_at) where report_due_at is not null;
