-- The ids of inbox messages are in the order of time: what is old is found by them.
drop index inbox_messages_by_time;
