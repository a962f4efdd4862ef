-- Configuration; see config_postgres.sql for the reasons. Ids are 16-byte blobs; times are
-- microseconds since the epoch; text compares byte by byte as it is.

create table config_revision (
  id       integer not null primary key check (id = 1),
  revision integer not null check (revision >= 0)
) strict, without rowid;
insert into config_revision (id, revision) values (1, 0);

create table tenant (
  id            blob    not null primary key check (length(id) = 16),
  slug          text    not null check (length(slug) between 1 and 63),
  display_name  text    not null check (length(display_name) <= 200),
  labels        text    not null,
  created_at_us integer not null,
  updated_at_us integer not null,
  deleted_at_us integer,
  revision      integer not null check (revision > 0)
) strict, without rowid;
create unique index tenant_name on tenant (slug) where deleted_at_us is null;
create index tenant_revision on tenant (revision);

create table event_type (
  id            blob    not null primary key check (length(id) = 16),
  tenant_id     blob    not null references tenant (id) check (length(tenant_id) = 16),
  type_name     text    not null check (length(type_name) between 1 and 128),
  description   text    not null check (length(description) <= 2000),
  labels        text    not null,
  created_at_us integer not null,
  updated_at_us integer not null,
  deleted_at_us integer,
  revision      integer not null check (revision > 0)
) strict, without rowid;
create unique index event_type_name on event_type (tenant_id, type_name) where deleted_at_us is null;
create index event_type_revision on event_type (revision);

create table retry_policy (
  id            blob    not null primary key check (length(id) = 16),
  tenant_id     blob    not null references tenant (id) check (length(tenant_id) = 16),
  slug          text    not null check (length(slug) between 1 and 63),
  version       integer not null check (version > 0),
  rule          text    not null,
  labels        text    not null,
  created_at_us integer not null,
  updated_at_us integer not null,
  deleted_at_us integer,
  revision      integer not null check (revision > 0),
  unique (tenant_id, id)
) strict, without rowid;
create unique index retry_policy_name on retry_policy (tenant_id, slug) where deleted_at_us is null;
create index retry_policy_revision on retry_policy (revision);

create table endpoint (
  id                blob    not null primary key check (length(id) = 16),
  tenant_id         blob    not null references tenant (id) check (length(tenant_id) = 16),
  slug              text    not null check (length(slug) between 1 and 63),
  display_name      text    not null check (length(display_name) <= 200),
  url               text    not null check (length(url) between 1 and 2048),
  timeout_us        integer not null check (timeout_us between 1000000 and 30000000),
  headers           text    not null,
  header_prefix     text    not null check (length(header_prefix) <= 32),
  signature_profile text    not null
    check (signature_profile in ('standard-webhooks', 'timestamped-hex', 'hub-sha256')),
  retry_policy_id   blob    check (length(retry_policy_id) = 16),
  max_in_flight     integer not null check (max_in_flight between 1 and 64),
  state             text    not null check (state in ('active', 'disabled')),
  disable_reason   text    check (length(disable_reason) <= 500),
  labels            text    not null,
  created_at_us     integer not null,
  updated_at_us     integer not null,
  deleted_at_us     integer,
  revision          integer not null check (revision > 0),
  unique (tenant_id, id),
  foreign key (tenant_id, retry_policy_id) references retry_policy (tenant_id, id),
  check ((state = 'disabled') = (disable_reason is not null))
) strict, without rowid;
create unique index endpoint_name on endpoint (tenant_id, slug) where deleted_at_us is null;
create index endpoint_revision on endpoint (revision);
create index endpoint_by_retry_policy on endpoint (retry_policy_id)
  where deleted_at_us is null and retry_policy_id is not null;

create table key_ring (
  endpoint_id blob    not null primary key check (length(endpoint_id) = 16),
  tenant_id   blob    not null check (length(tenant_id) = 16),
  revision    integer not null check (revision > 0),
  foreign key (tenant_id, endpoint_id) references endpoint (tenant_id, id)
) strict, without rowid;
create index key_ring_revision on key_ring (revision);

create table signing_key (
  id              blob    not null primary key check (length(id) = 16),
  tenant_id       blob    not null references tenant (id) check (length(tenant_id) = 16),
  endpoint_id     blob    not null references key_ring (endpoint_id) check (length(endpoint_id) = 16),
  position        integer not null check (position >= 0),
  state           text    not null
    check (state in ('staged', 'active', 'retiring', 'retired', 'revoked')),
  algorithm       text    not null check (algorithm in ('hmac-sha256', 'ed25519')),
  fingerprint     text    not null check (length(fingerprint) between 1 and 200),
  public_key      text    check (length(public_key) between 1 and 200),
  secret          blob    check (length(secret) between 1 and 4096),
  created_at_us   integer not null,
  activated_at_us integer,
  retire_at_us    integer,
  revoke_reason   text    check (length(revoke_reason) <= 500),
  unique (endpoint_id, position),
  check ((algorithm = 'ed25519') = (public_key is not null)),
  check ((state = 'revoked') = (secret is null)),
  check ((state = 'revoked') = (revoke_reason is not null)),
  check (state <> 'staged' or (activated_at_us is null and retire_at_us is null)),
  check (state <> 'active' or (activated_at_us is not null and retire_at_us is null)),
  check (state <> 'retiring' or activated_at_us is not null),
  check (state not in ('retiring', 'retired', 'revoked') or retire_at_us is not null)
) strict, without rowid;
create unique index signing_key_one_per_state on signing_key (endpoint_id, state)
  where state in ('staged', 'active', 'retiring');

create table subscription (
  id            blob    not null primary key check (length(id) = 16),
  tenant_id     blob    not null references tenant (id) check (length(tenant_id) = 16),
  slug          text    not null check (length(slug) between 1 and 63),
  endpoint_id   blob    not null check (length(endpoint_id) = 16),
  patterns      text    not null,
  format        integer not null check (format in (0, 1, 2)),
  filter        text    check (length(filter) between 1 and 4096),
  labels        text    not null,
  created_at_us integer not null,
  updated_at_us integer not null,
  deleted_at_us integer,
  revision      integer not null check (revision > 0),
  foreign key (tenant_id, endpoint_id) references endpoint (tenant_id, id)
) strict, without rowid;
create unique index subscription_name on subscription (tenant_id, slug) where deleted_at_us is null;
create index subscription_revision on subscription (revision);
create index subscription_by_endpoint on subscription (endpoint_id) where deleted_at_us is null;
