-- expand
-- How many codes of each provider, channel and country were verified, with exponential decay, in thousandths: the strategies of
-- routes learn from it. A cell is PROVIDER/CHANNEL/COUNTRY.
create table route_statistics (
  cell text collate "C" primary key,
  outcomes integer not null,
  verified integer not null,
  counted_at bigint not null,
  verified_sent_at bigint not null,
  silent_since bigint not null,
  updated_at bigint not null
);
