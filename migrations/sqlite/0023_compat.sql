-- Requests that a façade made: its name, and the channel and time of each message.
alter table otp_requests add column compat text;
