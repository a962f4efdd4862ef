-- How keys are used, and the key-encryption keys; see key_usage_postgres.sql for the reasons.

alter table key_ring add column pause_reason text check (length(pause_reason) between 1 and 500);
alter table key_ring add column resumed_at_us integer;
alter table key_ring add column paused_at_us integer
  check ((paused_at_us is null) = (pause_reason is null)
    and (resumed_at_us is null or paused_at_us is not null));

alter table signing_key add column held integer not null default 0
  check (held in (0, 1) and (held = 0 or state = 'retiring'));

create table key_usage (
  key_id          blob    not null primary key check (length(key_id) = 16),
  tenant_id       blob    not null check (length(tenant_id) = 16),
  endpoint_id     blob    not null check (length(endpoint_id) = 16),
  signatures      integer not null check (signatures >= 0),
  last_used_at_us integer,
  tested_at_us    integer,
  test_outcome    text    check (length(test_outcome) between 1 and 32),
  test_status     integer check (test_status between 100 and 999),
  check ((tested_at_us is null) = (test_outcome is null)),
  check (test_status is null or tested_at_us is not null)
) strict, without rowid;
create index key_usage_by_endpoint on key_usage (endpoint_id);

create table key_answers (
  endpoint_id     blob    not null check (length(endpoint_id) = 16),
  revision        integer not null check (revision >= 0),
  signers         integer not null check (signers in (1, 2)),
  day             integer not null,
  tenant_id       blob    not null check (length(tenant_id) = 16),
  first_key_id    blob    not null check (length(first_key_id) = 16),
  second_key_id   blob    check (length(second_key_id) = 16),
  accepted        integer not null check (accepted >= 0),
  denied          integer not null check (denied >= 0),
  other           integer not null check (other >= 0),
  last_used_at_us integer not null,
  primary key (endpoint_id, revision, signers, day),
  check ((signers = 2) = (second_key_id is not null))
) strict, without rowid;
create index key_answers_by_day on key_answers (day);

create table keyring_canary (
  key_id        text    not null primary key check (length(key_id) between 1 and 64),
  sealed        blob    not null check (length(sealed) between 1 and 4096),
  created_at_us integer not null
) strict, without rowid;

create table keyring_rewrap (
  id             integer not null primary key check (id = 1),
  to_key_id      text    not null check (length(to_key_id) between 1 and 64),
  after_key_id   blob    check (length(after_key_id) = 16),
  moved          integer not null check (moved >= 0),
  unreadable     integer not null check (unreadable >= 0),
  started_at_us  integer not null,
  updated_at_us  integer not null,
  finished_at_us integer
) strict, without rowid;
