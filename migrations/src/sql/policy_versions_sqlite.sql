-- Former versions of retry policies; see policy_versions_postgres.sql.

create table retry_policy_version (
  tenant_id       blob    not null check (length(tenant_id) = 16),
  retry_policy_id blob    not null check (length(retry_policy_id) = 16),
  version         integer not null check (version > 0),
  rule            text    not null,
  labels          text    not null,
  updated_at_us   integer not null,
  revision        integer not null check (revision > 0),
  primary key (retry_policy_id, version),
  foreign key (tenant_id, retry_policy_id) references retry_policy (tenant_id, id)
) strict, without rowid;

create index verification_key_revoked on verification_key (retire_at_us)
  where state = 'revoked' and secret is not null;
