-- Windows of dedup, and what receipts keep; see windows_postgres.sql for the reasons.
alter table event_dedup add column window_us integer not null default 604800000000;
create index event_dedup_age on event_dedup (accepted_at_us + window_us);
create index event_anomaly_age on event_anomaly (seen_at_us);
alter table receipt add column event_id_signed integer check (event_id_signed in (0, 1));
alter table receipt_payload add column context text check (length(context) <= 1048576);
