-- Prices are millionths of the currency that `cost_currency` in meta names.
alter table relayed_messages add column estimated_price integer;
alter table relayed_messages add column charged_price integer;
-- Messages with a code of another system, and the part of the cost that is theirs.
alter table breakdown_counts add column relayed integer not null default 0;
alter table breakdown_counts add column relayed_cost integer not null default 0;
