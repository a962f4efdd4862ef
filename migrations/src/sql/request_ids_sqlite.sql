-- Ids of requests and purging; see request_ids_postgres.sql for the reasons.
create table config_request (
  tenant_id    blob    not null check (length(tenant_id) = 16),
  method       text    not null check (length(method) between 1 and 200),
  request_id   blob    not null check (length(request_id) = 16),
  content_hash blob    not null check (length(content_hash) = 32),
  made_id      blob    not null check (length(made_id) = 16),
  key_id       blob    check (length(key_id) = 16),
  made_at_us   integer not null,
  primary key (tenant_id, method, request_id)
) strict, without rowid;
create index config_request_made_at on config_request (made_at_us);

alter table endpoint     add column purged_at_us integer;
alter table subscription add column purged_at_us integer;
alter table retry_policy add column purged_at_us integer;
update endpoint     set purged_at_us = deleted_at_us where deleted_at_us is not null;
update subscription set purged_at_us = deleted_at_us where deleted_at_us is not null;
update retry_policy set purged_at_us = deleted_at_us where deleted_at_us is not null;
create index endpoint_purgeable on endpoint (deleted_at_us)
  where deleted_at_us is not null and purged_at_us is null;
create index subscription_purgeable on subscription (deleted_at_us)
  where deleted_at_us is not null and purged_at_us is null;
create index retry_policy_purgeable on retry_policy (deleted_at_us)
  where deleted_at_us is not null and purged_at_us is null;
