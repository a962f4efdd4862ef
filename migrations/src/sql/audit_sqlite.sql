-- The record of configuration changes; see audit_postgres.sql for the reasons.

create table audit_event (
  tenant_id  blob    not null references tenant (id) check (length(tenant_id) = 16),
  sequence   integer not null check (sequence > 0),
  id         blob    not null unique check (length(id) = 16),
  at_us      integer not null,
  subject    text    not null,
  role       text    not null check (length(role) between 1 and 63),
  method     text    not null check (length(method) between 1 and 200),
  resource   text    not null check (length(resource) between 1 and 500),
  request_id text    not null check (length(request_id) between 1 and 128),
  reason     text    not null check (length(reason) <= 500),
  revision   integer not null check (revision > 0),
  outcome    text    not null check (outcome in ('applied')),
  changes    text    not null,
  hash       blob    not null check (length(hash) = 32),
  primary key (tenant_id, sequence)
) strict, without rowid;
create index audit_event_by_resource on audit_event (tenant_id, resource, sequence);

create table audit_head (
  tenant_id blob    not null primary key references tenant (id) check (length(tenant_id) = 16),
  sequence  integer not null check (sequence > 0),
  id        blob    not null check (length(id) = 16),
  hash      blob    not null check (length(hash) = 32)
) strict, without rowid;

create trigger audit_event_is_not_updated before update on audit_event
begin
  select raise(abort, 'audit_event is append-only');
end;
create trigger audit_event_is_not_deleted before delete on audit_event
begin
  select raise(abort, 'audit_event is append-only');
end;
