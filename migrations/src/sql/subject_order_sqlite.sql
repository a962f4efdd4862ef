-- The order of the events of a subject, for sources that watch it; see subject_order_postgres.sql for
-- the reasons.

create table subject_order (
  tenant_id     blob    not null check (length(tenant_id) = 16),
  source        text    not null,
  subject       text    not null,
  last_sequence integer not null,
  last_due_us   integer not null,
  is_final      integer not null check (is_final in (0, 1)),
  held          text    check (length(held) between 10 and 16384),
  forget_at_us  integer not null,
  primary key (tenant_id, source, subject)
) strict, without rowid;
create index subject_order_age on subject_order (forget_at_us);

-- Without a check: adding one reads every event.
alter table event add column event_order text;
