-- expand
-- What the caller of a message with a code of another system found out, and who asked for the code. client_ip is sealed.
alter table relayed_messages add column client_ip text collate "C";
alter table relayed_messages add column outcome text collate "C" check (outcome in ('verified', 'failed'));
