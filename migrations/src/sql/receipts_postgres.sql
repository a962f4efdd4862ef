-- What an ingress decided about requests that named a known source. Ids are UUIDv7 and carry their
-- time. Rows are written in groups after the answer and read by operators only; they are taken away by
-- age, oldest first, a bounded number at a time.

create table receipt (
  tenant_id      uuid     not null,
  id             uuid     not null,
  source_id      uuid     not null,
  source_slug    text     not null,
  received_at_us bigint   not null,
  decision       text     not null check (decision in
    ('accepted', 'duplicate', 'anomaly', 'handshake', 'dead-letter', 'refused', 'unavailable')),
  reason         text     not null,
  status         integer  not null check (status between 100 and 599),
  event_id       text     collate "C" not null,
  event_uid      uuid,
  events         bigint   not null check (events >= 0),
  key_id         uuid,
  key_state      text,
  skew_ms        bigint,
  body_bytes     bigint   not null check (body_bytes >= 0),
  body_hash      bytea    not null check (octet_length(body_hash) = 32),
  -- A JSON array of pairs: only the headers that the source keeps, never signatures.
  headers        text     not null,
  primary key (tenant_id, id),
  check ((key_id is null) = (key_state is null))
);
create index receipt_of_source on receipt (tenant_id, source_id, id);
create index receipt_of_event on receipt (tenant_id, event_id, id) where event_id <> '';
create index receipt_age on receipt (id);

-- Bodies, for as long as their source says: apart, so that lists of receipts stay narrow.
create table receipt_payload (
  tenant_id uuid   not null,
  id        uuid   not null,
  data      bytea  not null check (octet_length(data) <= 4194304),
  until_us  bigint not null,
  primary key (tenant_id, id)
);
alter table receipt_payload alter column data set storage external;
create index receipt_payload_age on receipt_payload (until_us);
