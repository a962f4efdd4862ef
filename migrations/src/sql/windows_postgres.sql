-- Windows of dedup, receipts by day, and events as large as an ingress takes.

-- How long an id is remembered. Rows of before, and of binaries of before, have the default window.
alter table event_dedup add column window_us bigint not null default 604800000000;
-- What the sweeper goes by; correctness hangs on the columns alone. New entries land at its end.
create index event_dedup_age on event_dedup ((accepted_at_us + window_us));
create index event_anomaly_age on event_anomaly (seen_at_us);

-- Publishing keeps its own, smaller bound. Not validated: what fitted the narrower one fits.
alter table event drop constraint event_data_check;
alter table event add constraint event_data_check check (octet_length(data) <= 4194304) not valid;

-- Whether a signature covers the id; null where there is none, or it was not noted.
alter table receipt add column event_id_signed boolean;
-- A JSON object: what the events of a kept body are made of besides it. Never signatures.
alter table receipt_payload add column context text check (length(context) <= 1048576);

-- Receipts by day, dropped when they are old. The table of before goes on as the default partition:
-- nothing is copied.
alter index receipt_pkey rename to receipt_default_pkey;
alter index receipt_of_source rename to receipt_default_of_source;
alter index receipt_of_event rename to receipt_default_of_event;
alter table receipt rename to receipt_default;
create table receipt (like receipt_default including defaults including constraints)
  partition by range (id);
alter table receipt add primary key (tenant_id, id);
create index receipt_of_source on receipt (tenant_id, source_id, id);
create index receipt_of_event on receipt (tenant_id, event_id, id) where event_id <> '';
-- receipt_age stays with the default partition, whose rows are taken away one by one.
alter table receipt attach partition receipt_default default;
