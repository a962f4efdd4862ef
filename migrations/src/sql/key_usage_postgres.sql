-- How keys are used, pauses of rotations, and the state of the key-encryption keys.

-- A pause is kept with its ring for as long as the rotation is open.
alter table key_ring add column pause_reason text check (length(pause_reason) between 1 and 500);
alter table key_ring add column resumed_at_us bigint;
alter table key_ring add column paused_at_us bigint
  check ((paused_at_us is null) = (pause_reason is null)
    and (resumed_at_us is null or paused_at_us is not null));

-- A held key signs on past its retire time; only a retiring one can.
alter table signing_key add column held smallint not null default 0
  check (held in (0, 1) and (held = 0 or state = 'retiring'));

-- Counts of what each key signed, and its last test. No foreign keys on purpose, here and below: counts
-- of a ring that has just gone must not make a whole batch fail.
create table key_usage (
  key_id          uuid     primary key,
  tenant_id       uuid     not null,
  endpoint_id     uuid     not null,
  signatures      bigint   not null check (signatures >= 0),
  last_used_at_us bigint,
  tested_at_us    bigint,
  test_outcome    text     check (length(test_outcome) between 1 and 32),
  test_status     smallint check (test_status between 100 and 999),
  check ((tested_at_us is null) = (test_outcome is null)),
  check (test_status is null or tested_at_us is not null)
);
create index key_usage_by_endpoint on key_usage (endpoint_id);

-- Answers by what signed, a row for each day: the keys that sign change with the ring's revision, and
-- by the clock from two to one.
create table key_answers (
  endpoint_id     uuid     not null,
  revision        bigint   not null check (revision >= 0),
  signers         smallint not null check (signers in (1, 2)),
  -- Days since the epoch.
  day             integer  not null,
  tenant_id       uuid     not null,
  first_key_id    uuid     not null,
  second_key_id   uuid,
  accepted        bigint   not null check (accepted >= 0),
  denied          bigint   not null check (denied >= 0),
  other           bigint   not null check (other >= 0),
  last_used_at_us bigint   not null,
  primary key (endpoint_id, revision, signers, day),
  check ((signers = 2) = (second_key_id is not null))
);
create index key_answers_by_day on key_answers (day);

-- A record with known content under each key-encryption key that was ever the primary one.
create table keyring_canary (
  key_id        text   collate "C" primary key check (length(key_id) between 1 and 64),
  sealed        bytea  not null check (octet_length(sealed) between 1 and 4096),
  created_at_us bigint not null
);

-- The last re-wrap. One row: runners of the same one share it.
create table keyring_rewrap (
  id             smallint primary key check (id = 1),
  to_key_id      text     collate "C" not null check (length(to_key_id) between 1 and 64),
  after_key_id   uuid,
  moved          bigint   not null check (moved >= 0),
  unreadable     bigint   not null check (unreadable >= 0),
  started_at_us  bigint   not null,
  updated_at_us  bigint   not null,
  finished_at_us bigint
);
