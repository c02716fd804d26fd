-- How many codes of each provider, channel and country were verified, with exponential decay, in thousandths: the strategies of
-- routes learn from it. A cell is PROVIDER/CHANNEL/COUNTRY.
create table route_statistics (
  cell text not null primary key,
  outcomes integer not null,
  verified integer not null,
  counted_at integer not null,
  verified_sent_at integer not null,
  silent_since integer not null,
  updated_at integer not null
) strict;
