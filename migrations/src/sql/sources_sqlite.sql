-- Sources and their key rings; see sources_postgres.sql for the reasons.

create table source (
  id                blob    not null primary key check (length(id) = 16),
  tenant_id         blob    not null references tenant (id) check (length(tenant_id) = 16),
  slug              text    not null check (length(slug) between 1 and 63),
  display_name      text    not null check (length(display_name) <= 200),
  preset            text    check (length(preset) between 1 and 63),
  scheme            text    check (length(cast(scheme as blob)) between 1 and 16384),
  scheme_settings   text    not null,
  ingest_token      text    not null check (length(ingest_token) = 26),
  previous_token    text    check (length(previous_token) = 26),
  previous_until_us integer,
  public_url        text    check (length(public_url) between 1 and 2048),
  settings          text    not null,
  labels            text    not null,
  created_at_us     integer not null,
  updated_at_us     integer not null,
  deleted_at_us     integer,
  revision          integer not null check (revision > 0),
  unique (tenant_id, id),
  check ((preset is null) <> (scheme is null)),
  check ((previous_token is null) = (previous_until_us is null))
) strict, without rowid;
create unique index source_name on source (tenant_id, slug) where deleted_at_us is null;
create index source_revision on source (revision);
create unique index source_ingest_token on source (ingest_token) where deleted_at_us is null;

create table source_key_ring (
  source_id blob    not null primary key check (length(source_id) = 16),
  tenant_id blob    not null check (length(tenant_id) = 16),
  revision  integer not null check (revision > 0),
  foreign key (tenant_id, source_id) references source (tenant_id, id)
) strict, without rowid;
create index source_key_ring_revision on source_key_ring (revision);

create table verification_key (
  id              blob    not null primary key check (length(id) = 16),
  tenant_id       blob    not null references tenant (id) check (length(tenant_id) = 16),
  source_id       blob    not null references source_key_ring (source_id),
  position        integer not null check (position >= 0),
  state           text    not null
    check (state in ('staged', 'active', 'retiring', 'retired', 'revoked')),
  algorithm       text    not null check (algorithm in ('shared-secret', 'public-key')),
  fingerprint     text    not null check (length(fingerprint) between 1 and 200),
  public_key      text    check (length(public_key) between 1 and 8192),
  secret          blob    check (length(secret) between 1 and 16384),
  created_at_us   integer not null,
  activated_at_us integer,
  retire_at_us    integer,
  revoke_reason   text    check (length(revoke_reason) <= 500),
  unique (source_id, position),
  check ((algorithm = 'public-key') = (public_key is not null)),
  check (state = 'revoked' or secret is not null),
  check ((state = 'revoked') = (revoke_reason is not null)),
  check (state <> 'staged' or (activated_at_us is null and retire_at_us is null)),
  check (state <> 'active' or (activated_at_us is not null and retire_at_us is null)),
  check (state <> 'retiring' or activated_at_us is not null),
  check (state not in ('retiring', 'retired', 'revoked') or retire_at_us is not null)
) strict, without rowid;
create unique index verification_key_one_per_state on verification_key (source_id, state)
  where state in ('staged', 'active', 'retiring');
