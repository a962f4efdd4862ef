-- States of sources, and how their keys are used; see source_states_postgres.sql for the reasons.

alter table source add column disable_reason text check (length(disable_reason) <= 500);

alter table source add column purged_at_us integer;
update source set purged_at_us = deleted_at_us where deleted_at_us is not null;
create index source_purgeable on source (deleted_at_us)
  where deleted_at_us is not null and purged_at_us is null;

create table source_key_usage (
  key_id          blob    not null primary key check (length(key_id) = 16),
  tenant_id       blob    not null check (length(tenant_id) = 16),
  source_id       blob    not null check (length(source_id) = 16),
  verified        integer not null check (verified >= 0),
  last_used_at_us integer not null
) strict, without rowid;
create index source_key_usage_by_source on source_key_usage (source_id);
