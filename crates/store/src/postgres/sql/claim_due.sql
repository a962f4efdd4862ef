-- Due deliveries of several lanes with their events, a few from each.
-- $1 endpoints, $2 their shards, $3/$4 the last row each lane has seen, $5 room in each, $6 now.
-- Cost: one descent of delivery_due per lane plus one primary-key probe per row; the keyset in
-- (due_at_us, id) starts behind rows that were settled, so dead index entries are not walked again.
-- No row is locked or written: the shard lease is the right to read.
select d.tenant_id, d.id, d.endpoint_id, d.shard, d.format, d.attempts, d.round_start,
       d.round_at_us, d.due_at_us, d.event_uid,
       e.source, e.event_id, e.event_type, e.event_version, e.subject, e.sequence, e.content_type,
       e.occurred_at_us, e.accepted_at_us, e.data, e.channels, e.event_order
from unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::uuid[], $5::integer[])
  as lane (endpoint_id, shard, after_due_us, after_id, room)
cross join lateral (
  select * from delivery
  where shard = lane.shard and endpoint_id = lane.endpoint_id and due_at_us <= $6
    and (due_at_us, id) > (lane.after_due_us, lane.after_id)
  order by due_at_us, id
  limit lane.room
) d
-- Lateral with a limit: whatever the statistics say, an event is probed and never hashed.
left join lateral (
  select * from event where tenant_id = d.tenant_id and uid = d.event_uid limit 1
) e on true
