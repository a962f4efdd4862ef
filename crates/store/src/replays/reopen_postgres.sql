-- Opens finished deliveries for a new round, due now, where their event is still there.
-- $1 tenant; $2 and $3 one array per column: delivery, shard; $4 the states that are opened; $5 the time;
-- $6 and $7 the lowest and the highest of the deliveries, so that other days are not looked at.
-- Answers each delivery with what became of it: 0 opened, 1 pending already, 2 its event is gone,
-- 3 another state.
-- Cost: per delivery one probe of delivery_done and of event, one row less there and one more in
-- delivery with its two index entries. The rows are found one by one, lateral, so that no statistics can
-- turn that into a join over the table; the delete goes by the primary key.
with wanted as materialized (
  select w.id, w.shard, d.event_uid, d.state,
         exists (select 1 from event e where e.tenant_id = $1 and e.uid = d.event_uid) as has_event
  from unnest($2::uuid[], $3::smallint[]) as w (id, shard)
  left join lateral (
    select event_uid, state from delivery_done where tenant_id = $1 and id = w.id limit 1
  ) d on true
), taken as (
  delete from delivery_done d
  where d.tenant_id = $1 and d.id >= $6 and d.id <= $7
    and d.id = any (array(select id from wanted where has_event and state = any ($4::smallint[])))
    and d.state = any ($4::smallint[])
  returning d.id, d.endpoint_id, d.event_uid, d.format, d.attempts
), opened as (
  insert into delivery (tenant_id, id, endpoint_id, event_uid, shard, format, attempts, round_start,
                        round_at_us, due_at_us)
  select $1, t.id, t.endpoint_id, t.event_uid, w.shard, t.format, t.attempts, t.attempts, $5, $5
  from taken t join wanted w on w.id = t.id
)
select w.id,
       case when w.id in (select id from taken) then 0
            -- Somebody else opened it just now, or before.
            when w.has_event and w.state = any ($4::smallint[]) then 1
            when exists (select 1 from delivery p where p.tenant_id = $1 and p.id = w.id) then 1
            when w.state = any ($4::smallint[]) then 2
            else 3 end
from wanted w
