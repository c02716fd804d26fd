-- Text of a template that a request was sent with, with the amount and payee of a payment: sealed JSON.
alter table otp_requests add column template text;
