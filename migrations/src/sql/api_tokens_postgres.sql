-- API tokens. Only hashes are kept. Revoked and expired rows stay: names are never given again, and
-- whoever follows by revision must see a token end.

create table api_token (
  id              uuid   primary key,
  -- Null: for every tenant.
  tenant_id       uuid   references tenant (id),
  slug            text   collate "C" not null check (length(slug) between 1 and 63),
  description     text   not null check (length(description) <= 2000),
  role            text   not null check (length(role) between 1 and 63),
  -- SHA-256 of the token's text.
  hash            bytea  not null unique check (octet_length(hash) = 32),
  hint            text   not null check (length(hint) <= 8),
  creator         text   not null check (length(creator) between 1 and 256),
  expires_at_us   bigint not null,
  revoked_at_us   bigint,
  revoke_reason   text   check (length(revoke_reason) <= 500),
  -- No part of the configuration: makes no revision.
  last_used_at_us bigint,
  created_at_us   bigint not null,
  updated_at_us   bigint not null,
  revision        bigint not null check (revision > 0),
  check ((revoked_at_us is null) = (revoke_reason is null))
);
create unique index api_token_name on api_token (tenant_id, slug) where tenant_id is not null;
create unique index api_token_platform_name on api_token (slug) where tenant_id is null;
create index api_token_revision on api_token (revision);

-- The platform's own record has the id of no tenant.
alter table audit_event drop constraint if exists audit_event_tenant_id_fkey;
alter table audit_head drop constraint if exists audit_head_tenant_id_fkey;
-- Denied calls change nothing, so they have no revision.
alter table audit_event drop constraint if exists audit_event_outcome_check;
alter table audit_event add constraint audit_event_outcome_check
  check (outcome in ('applied', 'denied'));
alter table audit_event drop constraint if exists audit_event_revision_check;
alter table audit_event add constraint audit_event_revision_check
  check (revision >= 0 and (revision = 0) = (outcome = 'denied'));
