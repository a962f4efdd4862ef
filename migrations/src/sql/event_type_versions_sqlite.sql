-- Versions of event types, and channels of subscriptions and events; see
-- event_type_versions_postgres.sql for the reasons.

create table event_type_version (
  id            blob    not null primary key check (length(id) = 16),
  tenant_id     blob    not null references tenant (id) check (length(tenant_id) = 16),
  event_type_id blob    not null references event_type (id) check (length(event_type_id) = 16),
  version       text    not null check (length(version) between 1 and 64),
  schema        text    not null check (length(cast(schema as blob)) between 1 and 65536),
  description   text    not null check (length(description) <= 2000),
  created_at_us integer not null,
  updated_at_us integer not null,
  deleted_at_us integer,
  revision      integer not null check (revision > 0)
) strict, without rowid;
create unique index event_type_version_name on event_type_version (event_type_id, version)
  where deleted_at_us is null;
create index event_type_version_latest on event_type_version (event_type_id, revision)
  where deleted_at_us is null;
create index event_type_version_revision on event_type_version (revision);

alter table event_type add column compatibility text not null default 'backward'
  check (compatibility in ('none', 'backward', 'full'));
alter table event_type add column unknown_version text not null default 'allow'
  check (unknown_version in ('allow', 'refuse'));

alter table subscription add column channels text check (length(channels) between 5 and 8500);

-- Without a check: adding one reads every event.
alter table event add column channels text;
