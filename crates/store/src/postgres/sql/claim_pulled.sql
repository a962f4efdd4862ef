-- Leases due deliveries of a pull endpoint, the oldest first, with their events.
-- $1 shard, $2 endpoint, $3 now, $4/$5 the last row seen, $6 most to take, $7 when the leases end.
-- Cost: one descent of delivery_due, one non-HOT update and one primary-key probe per row. Rows that
-- another claim holds are stepped over. The rows are locked first and then found by their places, so
-- no statistics can turn the update into a join over the table. A leased row is due when its lease
-- ends, so it is in nobody's way.
with due as materialized (
  select ctid as place, tenant_id, id, due_at_us, leased_at_us from delivery
  where shard = $1 and endpoint_id = $2 and due_at_us <= $3 and (due_at_us, id) > ($4, $5)
  order by due_at_us, id
  limit $6
  for update skip locked
), leased as (
  update delivery d
  set due_at_us = $7, leased_at_us = $3, lease_token = greatest(d.lease_token + 1, $3)
  where d.ctid = any (array(select place from due))
  returning d.*
)
select d.tenant_id, d.id, d.endpoint_id, d.shard, d.format, d.attempts, d.round_start,
       d.round_at_us, d.due_at_us, d.event_uid,
       e.source, e.event_id, e.event_type, e.event_version, e.subject, e.sequence, e.content_type,
       e.occurred_at_us, e.accepted_at_us, e.data, e.channels, e.event_order,
       d.lease_token, was.due_at_us, was.leased_at_us
from leased d
join due was on was.tenant_id = d.tenant_id and was.id = d.id
left join lateral (
  select * from event where tenant_id = d.tenant_id and uid = d.event_uid limit 1
) e on true
