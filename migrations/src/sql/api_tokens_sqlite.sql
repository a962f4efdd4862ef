-- API tokens; see api_tokens_postgres.sql for the reasons.

create table api_token (
  id              blob    not null primary key check (length(id) = 16),
  tenant_id       blob    references tenant (id) check (length(tenant_id) = 16),
  slug            text    not null check (length(slug) between 1 and 63),
  description     text    not null check (length(description) <= 2000),
  role            text    not null check (length(role) between 1 and 63),
  hash            blob    not null unique check (length(hash) = 32),
  hint            text    not null check (length(hint) <= 8),
  creator         text    not null check (length(creator) between 1 and 256),
  expires_at_us   integer not null,
  revoked_at_us   integer,
  revoke_reason   text    check (length(revoke_reason) <= 500),
  last_used_at_us integer,
  created_at_us   integer not null,
  updated_at_us   integer not null,
  revision        integer not null check (revision > 0),
  check ((revoked_at_us is null) = (revoke_reason is null))
) strict, without rowid;
create unique index api_token_name on api_token (tenant_id, slug) where tenant_id is not null;
create unique index api_token_platform_name on api_token (slug) where tenant_id is null;
create index api_token_revision on api_token (revision);

-- SQLite changes no check, so the tables of the audit record are made anew around their rows.
create table audit_event_next (
  tenant_id  blob    not null check (length(tenant_id) = 16),
  sequence   integer not null check (sequence > 0),
  id         blob    not null unique check (length(id) = 16),
  at_us      integer not null,
  subject    text    not null,
  role       text    not null check (length(role) between 1 and 63),
  method     text    not null check (length(method) between 1 and 200),
  resource   text    not null check (length(resource) between 1 and 500),
  request_id text    not null check (length(request_id) between 1 and 128),
  reason     text    not null check (length(reason) <= 500),
  revision   integer not null check (revision >= 0 and (revision = 0) = (outcome = 'denied')),
  outcome    text    not null check (outcome in ('applied', 'denied')),
  changes    text    not null,
  hash       blob    not null check (length(hash) = 32),
  primary key (tenant_id, sequence)
) strict, without rowid;
insert into audit_event_next select * from audit_event;
drop table audit_event;
alter table audit_event_next rename to audit_event;
create index audit_event_by_resource on audit_event (tenant_id, resource, sequence);
create trigger audit_event_is_not_updated before update on audit_event
begin
  select raise(abort, 'audit_event is append-only');
end;
create trigger audit_event_is_not_deleted before delete on audit_event
begin
  select raise(abort, 'audit_event is append-only');
end;

create table audit_head_next (
  tenant_id blob    not null primary key check (length(tenant_id) = 16),
  sequence  integer not null check (sequence > 0),
  id        blob    not null check (length(id) = 16),
  hash      blob    not null check (length(hash) = 32)
) strict, without rowid;
insert into audit_head_next select * from audit_head;
drop table audit_head;
alter table audit_head_next rename to audit_head;
