-- Versions of event types, and channels of subscriptions and events.

create table event_type_version (
  id            uuid   primary key,
  tenant_id     uuid   not null references tenant (id),
  event_type_id uuid   not null references event_type (id),
  version       text   collate "C" not null check (length(version) between 1 and 64),
  -- JSON Schema, as it was sent. Never changed.
  schema        text   not null check (octet_length(schema) between 1 and 65536),
  description   text   not null check (length(description) <= 2000),
  created_at_us bigint not null,
  updated_at_us bigint not null,
  deleted_at_us bigint,
  -- Of two versions the one with the higher revision is later.
  revision      bigint not null check (revision > 0)
);
create unique index event_type_version_name on event_type_version (event_type_id, version)
  where deleted_at_us is null;
create index event_type_version_latest on event_type_version (event_type_id, revision)
  where deleted_at_us is null;
create index event_type_version_revision on event_type_version (revision);

alter table event_type
  add column compatibility text not null default 'backward'
    check (compatibility in ('none', 'backward', 'full')),
  add column unknown_version text not null default 'allow'
    check (unknown_version in ('allow', 'refuse'));

-- A JSON list of names; null for none, which wants every event.
alter table subscription add column channels text check (length(channels) between 5 and 8500);

-- The same; null for none. Kept so that an event can be routed again. The partitions get it too. The
-- check is not held against the rows that are there, which would read all of them under a lock that
-- nobody can publish past.
alter table event add column channels text;
alter table event add constraint event_channels_check
  check (length(channels) between 5 and 2200) not valid;
