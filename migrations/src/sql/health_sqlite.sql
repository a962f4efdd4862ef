-- Health of endpoints and waiting operational events; see health_postgres.sql.

create table endpoint_health (
  endpoint_id      blob    not null primary key check (length(endpoint_id) = 16),
  tenant_id        blob    not null check (length(tenant_id) = 16),
  clean_since_us   integer,
  last_success_us  integer,
  last_failure_us  integer,
  failing_since_us integer,
  failing_until_us integer,
  failures         integer not null default 0 check (failures >= 0),
  failure_class    text,
  check ((failing_since_us is null) = (failing_until_us is null)),
  check ((failing_since_us is null) = (failure_class is null)),
  check ((failing_since_us is null) = (failures = 0))
) strict, without rowid;

create table notice (
  id         blob    not null primary key check (length(id) = 16),
  tenant_id  blob    not null check (length(tenant_id) = 16),
  at_us      integer not null,
  event_type text    not null,
  subject    text    not null,
  data       text    not null
) strict, without rowid;
create index notice_oldest on notice (at_us, id);
