-- expand
-- A third lane of a phone's budgets: that of the devices that verified it. The columns known_… are the lane of networks.
alter table phones add column device_sends text collate "C";
alter table phones add column device_refilled_at bigint;
alter table phones add column device_failures integer;
alter table phones add column device_locked_until bigint;
