-- The event log, the delivery queue and their history; see events_postgres.sql for the reasons.
-- Ids are 16-byte UUIDv7 blobs; times are microseconds since the epoch. WITHOUT ROWID keeps each
-- table one tree, so that a commit touches few pages.

create table event (
  tenant_id      blob    not null check (length(tenant_id) = 16),
  uid            blob    not null check (length(uid) = 16),
  source         text    not null,
  event_id       text    not null,
  event_type     text    not null,
  event_version  text    not null,
  subject        text,
  sequence       integer,
  content_type   text    not null,
  occurred_at_us integer not null,
  accepted_at_us integer not null,
  data           blob    not null check (length(data) <= 262144),
  primary key (tenant_id, uid)
) strict, without rowid;

create table event_dedup (
  tenant_id      blob    not null,
  event_id       text    not null,
  source         text    not null,
  uid            blob    not null check (length(uid) = 16),
  content_hash   blob    not null check (length(content_hash) = 32),
  accepted_at_us integer not null,
  primary key (tenant_id, event_id, source)
) strict, without rowid;

create table event_anomaly (
  tenant_id    blob    not null,
  event_id     text    not null,
  source       text    not null,
  content_hash blob    not null check (length(content_hash) = 32),
  first_uid    blob    not null,
  seen_at_us   integer not null,
  seen_count   integer not null default 1 check (seen_count > 0),
  primary key (tenant_id, event_id, source, content_hash)
) strict, without rowid;

create table delivery (
  tenant_id   blob    not null check (length(tenant_id) = 16),
  id          blob    not null check (length(id) = 16),
  endpoint_id blob    not null check (length(endpoint_id) = 16),
  event_uid   blob    not null check (length(event_uid) = 16),
  shard       integer not null check (shard >= 0 and shard < 64),
  format      integer not null check (format in (0, 1, 2)),
  attempts    integer not null default 0 check (attempts >= 0),
  round_start integer not null default 0 check (round_start >= 0 and round_start <= attempts + 1),
  round_at_us integer not null,
  due_at_us   integer not null,
  primary key (tenant_id, id)
) strict, without rowid;
create index delivery_due on delivery (shard, endpoint_id, due_at_us, id);

create table delivery_done (
  tenant_id      blob    not null,
  id             blob    not null,
  endpoint_id    blob    not null,
  event_uid      blob    not null,
  format         integer not null check (format in (0, 1, 2)),
  state          integer not null check (state in (1, 2, 3)),
  reason         text,
  attempts       integer not null check (attempts >= 0),
  finished_at_us integer not null,
  primary key (tenant_id, id),
  check ((state = 1) = (reason is null)),
  check (state <> 1 or attempts > 0)
) strict, without rowid;
create index delivery_done_failed on delivery_done (endpoint_id, id) where state <> 1;

create table attempt (
  tenant_id            blob    not null,
  delivery_id          blob    not null,
  number               integer not null check (number > 0),
  started_at_us        integer not null,
  duration_us          integer not null check (duration_us >= 0),
  outcome              text    not null
    check (outcome in ('delivered', 'refused', 'timed_out', 'unreachable', 'blocked', 'failed')),
  status               integer check (status between 100 and 999),
  detail               text    not null,
  retry_delay_us       integer check (retry_delay_us >= 0),
  retry_after_honoured integer not null check (retry_after_honoured in (0, 1)),
  primary key (delivery_id, number),
  check ((outcome in ('delivered', 'refused')) = (status is not null))
) strict, without rowid;

create table worker (
  worker_id     blob    not null primary key,
  expires_at_us integer not null
) strict, without rowid;
create table shard_lease (
  shard         integer primary key check (shard >= 0 and shard < 64),
  worker_id     blob,
  epoch         integer not null default 0,
  expires_at_us integer not null default 0,
  check (worker_id is not null or expires_at_us = 0)
) strict;
with recursive number (n) as (select 0 union all select n + 1 from number where n < 63)
insert into shard_lease (shard) select n from number;
