-- Prices are millionths of the currency that `cost_currency` in meta names. A message that no provider has, has none.
alter table otp_deliveries add column estimated_price integer;
alter table otp_deliveries add column charged_price integer;
alter table early_receipts add column charge integer;

alter table breakdown_counts add column cost integer not null default 0;
alter table breakdown_counts add column estimated_cost integer not null default 0;
alter table breakdown_counts add column unpriced integer not null default 0;
alter table breakdown_counts add column blocked integer not null default 0;
-- Histogram of the seconds until a code was verified.
alter table breakdown_counts add column verified_5s integer not null default 0;
alter table breakdown_counts add column verified_10s integer not null default 0;
alter table breakdown_counts add column verified_20s integer not null default 0;
alter table breakdown_counts add column verified_30s integer not null default 0;
alter table breakdown_counts add column verified_60s integer not null default 0;
alter table breakdown_counts add column verified_120s integer not null default 0;
alter table breakdown_counts add column verified_later integer not null default 0;
