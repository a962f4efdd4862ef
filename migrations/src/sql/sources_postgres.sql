-- Sources: third parties that send to the ingress. As in config_postgres.sql names compare byte by byte,
-- deleted rows stay as tombstones, and numbers in checks repeat the bounds of the domain.

create table source (
  id                uuid   primary key,
  tenant_id         uuid   not null references tenant (id),
  slug              text   collate "C" not null check (length(slug) between 1 and 63),
  display_name      text   not null check (length(display_name) <= 200),
  -- How requests are verified: by a preset of the program, or by a scheme of the tenant's own.
  preset            text   check (length(preset) between 1 and 63),
  scheme            text   check (octet_length(scheme) between 1 and 16384),
  scheme_settings   text   not null,
  ingest_token      text   collate "C" not null check (length(ingest_token) = 26),
  previous_token    text   collate "C" check (length(previous_token) = 26),
  previous_until_us bigint,
  public_url        text   check (length(public_url) between 1 and 2048),
  settings          text   not null,
  labels            text   not null,
  created_at_us     bigint not null,
  updated_at_us     bigint not null,
  deleted_at_us     bigint,
  revision          bigint not null check (revision > 0),
  -- What a key ring refers to: a reference cannot leave its tenant.
  unique (tenant_id, id),
  check ((preset is null) <> (scheme is null)),
  check ((previous_token is null) = (previous_until_us is null))
);
create unique index source_name on source (tenant_id, slug) where deleted_at_us is null;
create index source_revision on source (revision);
-- A path leads to one source, whoever's it is.
create unique index source_ingest_token on source (ingest_token) where deleted_at_us is null;

create table source_key_ring (
  source_id uuid   primary key,
  tenant_id uuid   not null,
  revision  bigint not null check (revision > 0),
  foreign key (tenant_id, source_id) references source (tenant_id, id)
);
create index source_key_ring_revision on source_key_ring (revision);

-- Keys that verify. Like signing_key, but for what they are, and for the material of revoked ones: it is
-- kept for a while, so that the use of a stolen key is noticed.
create table verification_key (
  id              uuid     primary key,
  tenant_id       uuid     not null references tenant (id),
  source_id       uuid     not null references source_key_ring (source_id),
  -- Place in the ring, newest first.
  position        smallint not null check (position >= 0),
  state           text     not null
    check (state in ('staged', 'active', 'retiring', 'retired', 'revoked')),
  algorithm       text     not null check (algorithm in ('shared-secret', 'public-key')),
  fingerprint     text     not null check (length(fingerprint) between 1 and 200),
  public_key      text     check (length(public_key) between 1 and 8192),
  secret          bytea    check (octet_length(secret) between 1 and 16384),
  created_at_us   bigint   not null,
  activated_at_us bigint,
  retire_at_us    bigint,
  revoke_reason   text     check (length(revoke_reason) <= 500),
  unique (source_id, position),
  check ((algorithm = 'public-key') = (public_key is not null)),
  check (state = 'revoked' or secret is not null),
  check ((state = 'revoked') = (revoke_reason is not null)),
  check (state <> 'staged' or (activated_at_us is null and retire_at_us is null)),
  check (state <> 'active' or (activated_at_us is not null and retire_at_us is null)),
  check (state <> 'retiring' or activated_at_us is not null),
  check (state not in ('retiring', 'retired', 'revoked') or retire_at_us is not null)
);
-- At most one staged, one active and one retiring key: never more than three that are accepted.
create unique index verification_key_one_per_state on verification_key (source_id, state)
  where state in ('staged', 'active', 'retiring');
