-- Writes what was decided about the order of a batch, in the transaction that stored its events and
-- holds the rows of their subjects.
-- $1..$7 and $26 one array per column of the subjects; $8..$15 one per column of the deliveries to be made;
-- $16..$21 events of before that waited: tenant, uid, first and last id of their deliveries, when those
-- were due, when they are due now (null: never); $22..$24 what is noted with events: tenant, uid, note;
-- $25 the time.
-- Answers event and endpoint of the deliveries that are due at another time now.
-- A delivery that waited is only touched where it was left: one that was cancelled has no row any more,
-- one that somebody retried is due at another time, one that was tried has attempts.
-- Cost: per subject one index probe and a row version (a new index entry when its hour of forgetting
-- changed); per delivery as in append_events.sql; per event that waited one range of the primary key
-- and a row version for each of its deliveries; per note one row version of the event.
with subjects as (
  update subject_order s
  set last_sequence = t.last_sequence, last_due_us = t.last_due_us, is_final = t.is_final, held = t.held,
      forget_at_us = t.forget_at_us
  from unnest($1::uuid[], $2::text[], $3::text[], $4::bigint[], $5::boolean[], $6::text[], $7::bigint[],
              $26::bigint[])
    as t (tenant_id, source, subject, last_sequence, is_final, held, forget_at_us, last_due_us)
  where s.tenant_id = t.tenant_id and s.source = t.source and s.subject = t.subject
), queued as (
  insert into delivery (tenant_id, id, endpoint_id, event_uid, shard, format, round_at_us, due_at_us)
  select tenant_id, id, endpoint_id, event_uid, shard, format, round_at_us, due_at_us
  from unnest($8::uuid[], $9::uuid[], $10::uuid[], $11::uuid[], $12::smallint[], $13::smallint[],
              $14::bigint[], $15::bigint[])
    as d (tenant_id, id, endpoint_id, event_uid, shard, format, round_at_us, due_at_us)
), found as materialized (
  select d.tenant_id, d.id, m.from_us, m.to_us
  from unnest($16::uuid[], $17::uuid[], $18::uuid[], $19::uuid[], $20::bigint[], $21::bigint[])
    as m (tenant_id, event_uid, first_id, last_id, from_us, to_us)
  cross join lateral (
    select tenant_id, id from delivery
    where tenant_id = m.tenant_id and id >= m.first_id and id <= m.last_id
      and event_uid = m.event_uid
    -- Lateral with an offset: whatever the statistics say, this is a narrow range of the primary key.
    offset 0
  ) d
), moved as (
  update delivery d set due_at_us = f.to_us
  from found f
  where d.tenant_id = f.tenant_id and d.id = f.id and d.due_at_us = f.from_us and d.attempts = 0
    and f.to_us is not null
  returning d.event_uid, d.endpoint_id
), withdrawn as (
  delete from delivery d using found f
  where d.tenant_id = f.tenant_id and d.id = f.id and d.due_at_us = f.from_us and d.attempts = 0
    and f.to_us is null
  returning d.tenant_id, d.id, d.endpoint_id, d.event_uid, d.format, d.attempts
), filed as (
  insert into delivery_done (tenant_id, id, endpoint_id, event_uid, format, state, reason, attempts,
                             finished_at_us)
  select tenant_id, id, endpoint_id, event_uid, format, 3, 'AFTER_FINAL', attempts, $25
  from withdrawn
), noted as (
  update event e set event_order = n.event_order
  from unnest($22::uuid[], $23::uuid[], $24::text[]) as n (tenant_id, uid, event_order)
  where e.tenant_id = n.tenant_id and e.uid = n.uid
)
select event_uid, endpoint_id from moved
