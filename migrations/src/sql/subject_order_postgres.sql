-- The order of the events of a subject, for sources that watch it.

-- One row for each subject that was heard of in its retention. Its lock is what makes several processes
-- decide one after the other.
create table subject_order (
  tenant_id     uuid    not null,
  source        text    collate "C" not null,
  subject       text    collate "C" not null,
  -- The highest sequence that went on. A row whose time is over counts as none.
  last_sequence bigint  not null default 0,
  -- When that was due: the next one is due after it, by whatever clock it was accepted.
  last_due_us   bigint  not null default 0,
  is_final      boolean not null default false,
  -- Events that wait for a gap, as a JSON list; null for none, which is the rule.
  held          text    check (length(held) between 10 and 16384),
  forget_at_us  bigint  not null default 0,
  primary key (tenant_id, source, subject)
) with (
  -- Updated with every event: room in the page keeps the new version beside the old one.
  fillfactor = 70
);
create index subject_order_age on subject_order (forget_at_us);

-- How an event stood to the order of its subject; null when that was not watched, or as it should be.
alter table event add column event_order text;
alter table event add constraint event_order_check
  check (event_order in ('stale', 'gap', 'after-final', 'held')) not valid;
