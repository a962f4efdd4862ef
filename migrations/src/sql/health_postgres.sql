-- Health of endpoints, one narrow row for each that was tried, and operational events that wait to be
-- published.

-- Written by the worker that has the endpoint's shard, in batches: never once for each attempt. No
-- foreign key: a batch must not wait for a change of configuration; rows of purged endpoints go with
-- the hourly upkeep.
create table endpoint_health (
  endpoint_id     uuid   not null primary key,
  tenant_id       uuid   not null,
  -- When the endpoint was enabled last: nothing earlier counts.
  clean_since_us  bigint,
  last_success_us bigint,
  last_failure_us bigint,
  -- The failures since the last success; all four or none.
  failing_since_us bigint,
  failing_until_us bigint,
  failures        bigint not null default 0 check (failures >= 0),
  failure_class   text,
  check ((failing_since_us is null) = (failing_until_us is null)),
  check ((failing_since_us is null) = (failure_class is null)),
  check ((failing_since_us is null) = (failures = 0))
) with (fillfactor = 80);

create table notice (
  id         uuid   not null primary key,
  tenant_id  uuid   not null,
  at_us      bigint not null,
  event_type text   not null,
  subject    text   not null,
  data       text   not null
);
create index notice_oldest on notice (at_us, id);
