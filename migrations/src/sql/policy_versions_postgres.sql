-- Former versions of retry policies: what a policy was before each of its last changes.

create table retry_policy_version (
  tenant_id       uuid   not null,
  retry_policy_id uuid   not null,
  version         bigint not null check (version > 0),
  rule            text   not null,
  labels          text   not null,
  -- When the policy became this version, and the revision of that.
  updated_at_us   bigint not null,
  revision        bigint not null check (revision > 0),
  primary key (retry_policy_id, version),
  foreign key (tenant_id, retry_policy_id) references retry_policy (tenant_id, id)
);

-- Revoked keys of sources whose material is still kept for the alarm: mostly none, and looked for every
-- minute.
create index verification_key_revoked on verification_key (retire_at_us)
  where state = 'revoked' and secret is not null;
