-- Receipts of day partitions go with them.
alter table receipt detach partition receipt_default;
drop table receipt;
alter table receipt_default rename to receipt;
alter index receipt_default_pkey rename to receipt_pkey;
alter index receipt_default_of_source rename to receipt_of_source;
alter index receipt_default_of_event rename to receipt_of_event;
alter table receipt drop column event_id_signed;
alter table receipt_payload drop column context;
alter table event drop constraint event_data_check;
alter table event add constraint event_data_check check (octet_length(data) <= 262144) not valid;
drop index event_anomaly_age;
drop index event_dedup_age;
alter table event_dedup drop column window_us;
