-- The record of configuration changes: append-only, numbered per tenant, each row's hash covering
-- the one before. A change writes its row while it holds the lock on config_revision, so numbers
-- have no gaps and their order is the order of revisions.

create table audit_event (
  tenant_id  uuid   not null references tenant (id),
  -- Place in the tenant's record.
  sequence   bigint not null check (sequence > 0),
  id         uuid   not null unique,
  at_us      bigint not null,
  subject    text   not null,
  role       text   not null check (length(role) between 1 and 63),
  -- turnbuckle.v1.Endpoints/UpdateEndpoint
  method     text   not null check (length(method) between 1 and 200),
  -- Full name; compared byte by byte, so that what is below a resource is a range.
  resource   text   collate "C" not null check (length(resource) between 1 and 500),
  request_id text   not null check (length(request_id) between 1 and 128),
  reason     text   not null check (length(reason) <= 500),
  revision   bigint not null check (revision > 0),
  outcome    text   not null check (outcome in ('applied')),
  -- JSON: [{"field", "before", "after"}]. Holds no secret.
  changes    text   not null,
  hash       bytea  not null check (octet_length(hash) = 32),
  primary key (tenant_id, sequence)
);
create index audit_event_by_resource on audit_event (tenant_id, resource, sequence);

-- The newest row of each record, beside it: who cuts rows off has to change this too.
create table audit_head (
  tenant_id uuid   primary key references tenant (id),
  sequence  bigint not null check (sequence > 0),
  id        uuid   not null,
  hash      bytea  not null check (octet_length(hash) = 32)
);

-- Against accidents. Against intent there is the chain.
create function audit_event_is_append_only() returns trigger language plpgsql as $$
begin
  raise exception 'audit_event is append-only';
end
$$;
create trigger audit_event_is_append_only before update or delete on audit_event
  for each row execute function audit_event_is_append_only();
