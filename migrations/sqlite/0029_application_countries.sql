-- default_country: of numbers that are written without their country code. countries: the only ones that get messages,
-- separated by spaces; null: all.
alter table applications add column default_country text;
alter table applications add column countries text;
