-- The event log, the delivery queue and their history.
--
-- Ids are UUIDv7: they carry their time, so ranges of ids are ranges of time. Partitions by day are
-- cut on the id itself, which lets a primary key of (tenant, id) serve lookups, lists and pruning
-- without a further index. Times are microseconds since the epoch.

create table event (
  tenant_id      uuid   not null,
  uid            uuid   not null,
  source         text   collate "C" not null,
  event_id       text   collate "C" not null,
  event_type     text   collate "C" not null,
  event_version  text   not null,
  subject        text,
  sequence       bigint,
  content_type   text   not null,
  occurred_at_us bigint not null,
  accepted_at_us bigint not null,
  -- Bytes, never jsonb: what was published is what is signed and sent.
  data           bytea  not null check (octet_length(data) <= 262144),
  primary key (tenant_id, uid)
) partition by range (uid);
create table event_default partition of event default;
-- Payloads are compressed by many senders already and read once: do not spend CPU on trying.
alter table event_default alter column data set storage external;

-- One row for each id a sender chose: the dedup window (I15). Not partitioned, since a unique index
-- across days is its whole point.
create table event_dedup (
  tenant_id      uuid   not null,
  event_id       text   collate "C" not null,
  source         text   collate "C" not null,
  uid            uuid   not null,
  content_hash   bytea  not null check (octet_length(content_hash) = 32),
  accepted_at_us bigint not null,
  primary key (tenant_id, event_id, source)
);

create table event_anomaly (
  tenant_id    uuid   not null,
  event_id     text   collate "C" not null,
  source       text   collate "C" not null,
  content_hash bytea  not null check (octet_length(content_hash) = 32),
  first_uid    uuid   not null,
  seen_at_us   bigint not null,
  seen_count   bigint not null default 1 check (seen_count > 0),
  primary key (tenant_id, event_id, source, content_hash)
);

-- Live deliveries only: a row is deleted when it is finished, so the table stays the size of the backlog.
create table delivery (
  tenant_id   uuid     not null,
  id          uuid     not null,
  endpoint_id uuid     not null,
  event_uid   uuid     not null,
  shard       smallint not null check (shard >= 0 and shard < 64),
  format      smallint not null check (format in (0, 1, 2)),
  attempts    integer  not null default 0 check (attempts >= 0),
  round_start integer  not null default 0 check (round_start >= 0 and round_start <= attempts + 1),
  round_at_us bigint   not null,
  due_at_us   bigint   not null,
  primary key (tenant_id, id)
) with (
  -- Rows live for milliseconds: dead ones must go before an index walk meets many of them.
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 100000,
  autovacuum_vacuum_cost_delay = 0
);
create index delivery_due on delivery (shard, endpoint_id, due_at_us, id);

-- Finished deliveries.
create table delivery_done (
  tenant_id      uuid     not null,
  id             uuid     not null,
  endpoint_id    uuid     not null,
  event_uid      uuid     not null,
  format         smallint not null check (format in (0, 1, 2)),
  state          smallint not null check (state in (1, 2, 3)),
  reason         text,
  attempts       integer  not null check (attempts >= 0),
  finished_at_us bigint   not null,
  primary key (tenant_id, id),
  check ((state = 1) = (reason is null)),
  check (state <> 1 or attempts > 0)
) partition by range (id);
create table delivery_done_default partition of delivery_done default;
-- The dead letters of an endpoint are what people look for; delivered ones are not indexed again.
create index delivery_done_failed on delivery_done (endpoint_id, id) where state <> 1;

-- Append-only.
create table attempt (
  tenant_id            uuid     not null,
  delivery_id          uuid     not null,
  number               integer  not null check (number > 0),
  started_at_us        bigint   not null,
  duration_us          bigint   not null check (duration_us >= 0),
  outcome              text     not null
    check (outcome in ('delivered', 'refused', 'timed_out', 'unreachable', 'blocked', 'failed')),
  status               integer  check (status between 100 and 999),
  detail               text     not null,
  retry_delay_us       bigint   check (retry_delay_us >= 0),
  retry_after_honoured boolean  not null,
  primary key (delivery_id, number),
  check ((outcome in ('delivered', 'refused')) = (status is not null))
) partition by range (delivery_id);
create table attempt_default partition of attempt default;

-- Live workers, and the shards they hold. The epoch is the lease token: every settle names it.
create table worker (
  worker_id     uuid   primary key,
  expires_at_us bigint not null
);
create table shard_lease (
  shard         smallint primary key check (shard >= 0 and shard < 64),
  worker_id     uuid,
  epoch         bigint   not null default 0,
  expires_at_us bigint   not null default 0,
  check (worker_id is not null or expires_at_us = 0)
);
insert into shard_lease (shard) select generate_series(0, 63);
