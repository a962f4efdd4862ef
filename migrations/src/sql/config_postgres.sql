-- Configuration: written by the control plane only, followed by data planes by revision.
--
-- Names compare byte by byte (collate "C"), so that lists have one order whatever the locale of the
-- database. Deleted rows stay as tombstones: whoever follows by revision must see them go, and the
-- history of deliveries still shows their names. Numbers in checks repeat the bounds of the domain;
-- raising such a bound takes a migration that replaces the check.

-- One row. Its lock makes writers commit in the order of their revisions, without gaps: a sequence
-- would hand out numbers in an order that is not the order of commits.
create table config_revision (
  id       smallint primary key check (id = 1),
  revision bigint   not null check (revision >= 0)
);
insert into config_revision (id, revision) values (1, 0);

create table tenant (
  id            uuid   primary key,
  slug          text   collate "C" not null check (length(slug) between 1 and 63),
  display_name  text   not null check (length(display_name) <= 200),
  labels        text   not null,
  created_at_us bigint not null,
  updated_at_us bigint not null,
  deleted_at_us bigint,
  revision      bigint not null check (revision > 0)
);
create unique index tenant_name on tenant (slug) where deleted_at_us is null;
create index tenant_revision on tenant (revision);

create table event_type (
  id            uuid   primary key,
  tenant_id     uuid   not null references tenant (id),
  type_name     text   collate "C" not null check (length(type_name) between 1 and 128),
  description   text   not null check (length(description) <= 2000),
  labels        text   not null,
  created_at_us bigint not null,
  updated_at_us bigint not null,
  deleted_at_us bigint,
  revision      bigint not null check (revision > 0)
);
create unique index event_type_name on event_type (tenant_id, type_name) where deleted_at_us is null;
create index event_type_revision on event_type (revision);

create table retry_policy (
  id            uuid   primary key,
  tenant_id     uuid   not null references tenant (id),
  slug          text   collate "C" not null check (length(slug) between 1 and 63),
  version       bigint not null check (version > 0),
  rule          text   not null,
  labels        text   not null,
  created_at_us bigint not null,
  updated_at_us bigint not null,
  deleted_at_us bigint,
  revision      bigint not null check (revision > 0),
  -- What endpoints refer to: a reference cannot leave its tenant.
  unique (tenant_id, id)
);
create unique index retry_policy_name on retry_policy (tenant_id, slug) where deleted_at_us is null;
create index retry_policy_revision on retry_policy (revision);

create table endpoint (
  id                uuid     primary key,
  tenant_id         uuid     not null references tenant (id),
  slug              text     collate "C" not null check (length(slug) between 1 and 63),
  display_name      text     not null check (length(display_name) <= 200),
  url               text     not null check (length(url) between 1 and 2048),
  timeout_us        bigint   not null check (timeout_us between 1000000 and 30000000),
  headers           text     not null,
  header_prefix     text     not null check (length(header_prefix) <= 32),
  signature_profile text     not null
    check (signature_profile in ('standard-webhooks', 'timestamped-hex', 'hub-sha256')),
  retry_policy_id   uuid,
  max_in_flight     smallint not null check (max_in_flight between 1 and 64),
  state             text     not null check (state in ('active', 'disabled')),
  disable_reason   text     check (length(disable_reason) <= 500),
  labels            text     not null,
  created_at_us     bigint   not null,
  updated_at_us     bigint   not null,
  deleted_at_us     bigint,
  revision          bigint   not null check (revision > 0),
  unique (tenant_id, id),
  foreign key (tenant_id, retry_policy_id) references retry_policy (tenant_id, id),
  check ((state = 'disabled') = (disable_reason is not null))
);
create unique index endpoint_name on endpoint (tenant_id, slug) where deleted_at_us is null;
create index endpoint_revision on endpoint (revision);
create index endpoint_by_retry_policy on endpoint (retry_policy_id)
  where deleted_at_us is null and retry_policy_id is not null;

create table key_ring (
  endpoint_id uuid   primary key,
  tenant_id   uuid   not null,
  revision    bigint not null check (revision > 0),
  foreign key (tenant_id, endpoint_id) references endpoint (tenant_id, id)
);
create index key_ring_revision on key_ring (revision);

create table signing_key (
  id              uuid     primary key,
  tenant_id       uuid     not null references tenant (id),
  endpoint_id     uuid     not null references key_ring (endpoint_id),
  -- Place in the ring, newest first.
  position        smallint not null check (position >= 0),
  state           text     not null
    check (state in ('staged', 'active', 'retiring', 'retired', 'revoked')),
  algorithm       text     not null check (algorithm in ('hmac-sha256', 'ed25519')),
  fingerprint     text     not null check (length(fingerprint) between 1 and 200),
  public_key      text     check (length(public_key) between 1 and 200),
  secret          bytea    check (octet_length(secret) between 1 and 4096),
  created_at_us   bigint   not null,
  activated_at_us bigint,
  retire_at_us    bigint,
  revoke_reason   text     check (length(revoke_reason) <= 500),
  unique (endpoint_id, position),
  check ((algorithm = 'ed25519') = (public_key is not null)),
  check ((state = 'revoked') = (secret is null)),
  check ((state = 'revoked') = (revoke_reason is not null)),
  check (state <> 'staged' or (activated_at_us is null and retire_at_us is null)),
  check (state <> 'active' or (activated_at_us is not null and retire_at_us is null)),
  check (state <> 'retiring' or activated_at_us is not null),
  check (state not in ('retiring', 'retired', 'revoked') or retire_at_us is not null)
);
-- At most one staged, one active and one retiring key: never more than two that sign (I14).
create unique index signing_key_one_per_state on signing_key (endpoint_id, state)
  where state in ('staged', 'active', 'retiring');

create table subscription (
  id            uuid     primary key,
  tenant_id     uuid     not null references tenant (id),
  slug          text     collate "C" not null check (length(slug) between 1 and 63),
  endpoint_id   uuid     not null,
  patterns      text     not null,
  format        smallint not null check (format in (0, 1, 2)),
  filter        text     check (length(filter) between 1 and 4096),
  labels        text     not null,
  created_at_us bigint   not null,
  updated_at_us bigint   not null,
  deleted_at_us bigint,
  revision      bigint   not null check (revision > 0),
  foreign key (tenant_id, endpoint_id) references endpoint (tenant_id, id)
);
create unique index subscription_name on subscription (tenant_id, slug) where deleted_at_us is null;
create index subscription_revision on subscription (revision);
create index subscription_by_endpoint on subscription (endpoint_id) where deleted_at_us is null;
