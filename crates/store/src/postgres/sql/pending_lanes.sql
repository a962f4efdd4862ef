-- The endpoints of these shards that have pending deliveries, each with its first one.
-- Cost: a skip scan, one descent of delivery_due per endpoint found; independent of the backlog.
select lane.endpoint_id, lane.due_at_us, lane.id
from unnest($1::smallint[]) as s (shard)
cross join lateral (
  with recursive walk as (
    (select endpoint_id, due_at_us, id from delivery where shard = s.shard
     order by endpoint_id, due_at_us, id limit 1)
    union all
    select next.endpoint_id, next.due_at_us, next.id
    from walk cross join lateral (
      select endpoint_id, due_at_us, id from delivery
      where shard = s.shard and endpoint_id > walk.endpoint_id
      order by endpoint_id, due_at_us, id limit 1
    ) next
  )
  select * from walk
) lane
