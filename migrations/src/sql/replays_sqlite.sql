-- Replays; see replays_postgres.sql for the reasons.

create table replay (
  tenant_id      blob    not null,
  id             blob    not null,
  scope          text    not null check (scope in ('deliveries', 'events')),
  -- What it chooses, as JSON; read as a whole.
  filter         text    not null check (length(filter) <= 262144),
  endpoint_slug  text    not null,
  rate           integer not null check (rate > 0),
  reason         text    not null,
  created_by     text    not null,
  created_at_us  integer not null,
  -- The caller's id of the request, and the hash of what it said.
  request_id     blob,
  request_hash   blob    check (length(request_hash) = 32),
  state          text    not null
    check (state in ('pending', 'running', 'paused', 'done', 'cancelled', 'failed')),
  -- The last row looked at; written with the rows of its step.
  last_id        blob,
  waiting        integer not null default 0 check (waiting in (0, 1)),
  looked_at      integer not null default 0,
  matched        integer not null default 0,
  reopened       integer not null default 0,
  made           integer not null default 0,
  skipped_pending   integer not null default 0,
  skipped_inactive  integer not null default 0,
  skipped_gone      integer not null default 0,
  skipped_finished  integer not null default 0,
  skipped_unwanted  integer not null default 0,
  started_at_us  integer,
  updated_at_us  integer not null,
  finished_at_us integer,
  failure        text    not null default '',
  -- Who works at it, and until when; the token grows with every claim.
  worker_id      blob,
  lease_token    integer not null default 0,
  lease_until_us integer not null default 0,
  primary key (tenant_id, id),
  check ((finished_at_us is not null) = (state in ('done', 'cancelled', 'failed'))),
  check ((failure <> '') = (state = 'failed')),
  check ((request_id is null) = (request_hash is null))
) strict, without rowid;
create unique index replay_request on replay (tenant_id, request_id) where request_id is not null;
-- What is to be worked at, those that waited longest first.
create index replay_open on replay (updated_at_us) where state in ('pending', 'running');
-- What counts against the bound of a tenant.
create index replay_unfinished on replay (tenant_id) where state in ('pending', 'running', 'paused');
create index replay_age on replay (finished_at_us) where finished_at_us is not null;
