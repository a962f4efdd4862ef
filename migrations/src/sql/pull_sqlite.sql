-- Pull endpoints, and leases of their deliveries; see pull_postgres.sql for the reasons.
alter table endpoint add column pull_lease_us integer
  check (pull_lease_us between 5000000 and 600000000);
alter table endpoint add column pull_max_outstanding integer
  check (pull_max_outstanding between 1 and 1000);
alter table endpoint add column pull_ordered integer check (
  coalesce(pull_ordered, 0) in (0, 1)
  and (pull_lease_us is null) = (pull_max_outstanding is null)
  and (pull_lease_us is null) = (pull_ordered is null)
);

alter table delivery add column lease_token integer not null default 0;
alter table delivery add column leased_at_us integer;
create index delivery_pulled on delivery (endpoint_id) where lease_token > 0;

-- A check cannot be changed in place.
create table attempt_wider (
  tenant_id            blob    not null,
  delivery_id          blob    not null,
  number               integer not null check (number > 0),
  started_at_us        integer not null,
  duration_us          integer not null check (duration_us >= 0),
  outcome              text    not null
    check (outcome in ('delivered', 'refused', 'timed_out', 'unreachable', 'blocked', 'failed')),
  status               integer check (status between 100 and 999),
  detail               text    not null,
  retry_delay_us       integer check (retry_delay_us >= 0),
  retry_after_honoured integer not null check (retry_after_honoured in (0, 1)),
  primary key (delivery_id, number),
  check (outcome <> 'refused' or status is not null),
  check (status is null or outcome in ('delivered', 'refused'))
) strict, without rowid;
insert into attempt_wider select * from attempt;
drop table attempt;
alter table attempt_wider rename to attempt;
