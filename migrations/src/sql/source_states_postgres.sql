-- Sources that take nothing for now, deleted ones that can be brought back, and what their keys verified.

-- Set: the source is disabled. It may be empty, as no reason was given.
alter table source add column disable_reason text check (length(disable_reason) <= 500);

-- The keys of those that are deleted already have lost their material: they cannot come back.
alter table source add column purged_at_us bigint;
update source set purged_at_us = deleted_at_us where deleted_at_us is not null;
create index source_purgeable on source (deleted_at_us)
  where deleted_at_us is not null and purged_at_us is null;

-- Counts of what each key verified. No foreign keys on purpose, as with key_usage.
create table source_key_usage (
  key_id          uuid   primary key,
  tenant_id       uuid   not null,
  source_id       uuid   not null,
  verified        bigint not null check (verified >= 0),
  last_used_at_us bigint not null
);
create index source_key_usage_by_source on source_key_usage (source_id);
