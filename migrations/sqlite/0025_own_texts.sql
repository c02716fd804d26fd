-- Text of the caller's own for the messages of a request, sealed.
alter table otp_requests add column own_text text;
