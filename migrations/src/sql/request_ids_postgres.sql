-- What requests with an id of their own have made, so that a repeat makes nothing again. A row is
-- written with its change and swept after a day.
create table config_request (
  -- Whose; the nil id for tenants themselves.
  tenant_id    uuid   not null,
  method       text   collate "C" not null check (length(method) between 1 and 200),
  request_id   uuid   not null,
  content_hash bytea  not null check (octet_length(content_hash) = 32),
  -- The resource that was made, or the endpoint whose ring was changed.
  made_id      uuid   not null,
  -- The key that was made with it.
  key_id       uuid,
  made_at_us   bigint not null,
  primary key (tenant_id, method, request_id)
);
create index config_request_made_at on config_request (made_at_us);

-- A deleted row can be brought back until it is purged: then only its id and its name are left, for
-- the history of deliveries. What was deleted before lost its keys at once, so it counts as purged.
alter table endpoint     add column purged_at_us bigint;
alter table subscription add column purged_at_us bigint;
alter table retry_policy add column purged_at_us bigint;
update endpoint     set purged_at_us = deleted_at_us where deleted_at_us is not null;
update subscription set purged_at_us = deleted_at_us where deleted_at_us is not null;
update retry_policy set purged_at_us = deleted_at_us where deleted_at_us is not null;
create index endpoint_purgeable on endpoint (deleted_at_us)
  where deleted_at_us is not null and purged_at_us is null;
create index subscription_purgeable on subscription (deleted_at_us)
  where deleted_at_us is not null and purged_at_us is null;
create index retry_policy_purgeable on retry_policy (deleted_at_us)
  where deleted_at_us is not null and purged_at_us is null;
