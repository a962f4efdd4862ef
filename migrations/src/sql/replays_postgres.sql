-- Replays: finished deliveries and events that are delivered once more, a few rows at a time.

create table replay (
  tenant_id      uuid    not null,
  id             uuid    not null,
  scope          text    not null check (scope in ('deliveries', 'events')),
  -- What it chooses, as JSON; read as a whole.
  filter         text    not null check (length(filter) <= 262144),
  endpoint_slug  text    not null,
  rate           integer not null check (rate > 0),
  reason         text    not null,
  created_by     text    not null,
  created_at_us  bigint  not null,
  -- The caller's id of the request, and the hash of what it said.
  request_id     uuid,
  request_hash   bytea   check (octet_length(request_hash) = 32),
  state          text    not null
    check (state in ('pending', 'running', 'paused', 'done', 'cancelled', 'failed')),
  -- The last row looked at; written with the rows of its step.
  last_id        uuid,
  waiting        boolean not null default false,
  looked_at      bigint  not null default 0,
  matched        bigint  not null default 0,
  reopened       bigint  not null default 0,
  made           bigint  not null default 0,
  skipped_pending   bigint  not null default 0,
  skipped_inactive  bigint  not null default 0,
  skipped_gone      bigint  not null default 0,
  skipped_finished  bigint  not null default 0,
  skipped_unwanted  bigint  not null default 0,
  started_at_us  bigint,
  updated_at_us  bigint  not null,
  finished_at_us bigint,
  failure        text    not null default '',
  -- Who works at it, and until when; the token grows with every claim.
  worker_id      uuid,
  lease_token    bigint  not null default 0,
  lease_until_us bigint  not null default 0,
  primary key (tenant_id, id),
  check ((finished_at_us is not null) = (state in ('done', 'cancelled', 'failed'))),
  check ((failure <> '') = (state = 'failed')),
  check ((request_id is null) = (request_hash is null))
);
create unique index replay_request on replay (tenant_id, request_id) where request_id is not null;
-- What is to be worked at, those that waited longest first.
create index replay_open on replay (updated_at_us) where state in ('pending', 'running');
-- What counts against the bound of a tenant.
create index replay_unfinished on replay (tenant_id) where state in ('pending', 'running', 'paused');
create index replay_age on replay (finished_at_us) where finished_at_us is not null;
