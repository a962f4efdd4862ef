-- Receipts of an ingress; see receipts_postgres.sql for the reasons.

create table receipt (
  tenant_id      blob    not null check (length(tenant_id) = 16),
  id             blob    not null check (length(id) = 16),
  source_id      blob    not null check (length(source_id) = 16),
  source_slug    text    not null,
  received_at_us integer not null,
  decision       text    not null check (decision in
    ('accepted', 'duplicate', 'anomaly', 'handshake', 'dead-letter', 'refused', 'unavailable')),
  reason         text    not null,
  status         integer not null check (status between 100 and 599),
  event_id       text    not null,
  event_uid      blob,
  events         integer not null check (events >= 0),
  key_id         blob,
  key_state      text,
  skew_ms        integer,
  body_bytes     integer not null check (body_bytes >= 0),
  body_hash      blob    not null check (length(body_hash) = 32),
  headers        text    not null,
  primary key (tenant_id, id),
  check ((key_id is null) = (key_state is null))
) strict, without rowid;
create index receipt_of_source on receipt (tenant_id, source_id, id);
create index receipt_of_event on receipt (tenant_id, event_id, id) where event_id <> '';
create index receipt_age on receipt (id);

create table receipt_payload (
  tenant_id blob    not null check (length(tenant_id) = 16),
  id        blob    not null check (length(id) = 16),
  data      blob    not null check (length(data) <= 4194304),
  until_us  integer not null,
  primary key (tenant_id, id)
) strict, without rowid;
create index receipt_payload_age on receipt_payload (until_us);
