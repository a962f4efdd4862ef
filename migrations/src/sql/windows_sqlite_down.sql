alter table receipt_payload drop column context;
alter table receipt drop column event_id_signed;
drop index event_anomaly_age;
drop index event_dedup_age;
alter table event_dedup drop column window_us;
