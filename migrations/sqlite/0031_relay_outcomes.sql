-- What the caller of a message with a code of another system found out, and who asked for the code. client_ip is sealed.
alter table relayed_messages add column client_ip text;
alter table relayed_messages add column outcome text check (outcome in ('verified', 'failed'));
