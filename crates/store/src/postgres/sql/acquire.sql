-- Takes up to $2 free or expired shards with a fresh epoch. $1 worker, $3 lease in microseconds.
with clock as materialized (
  select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now_us
), free as (
  select shard from shard_lease, clock where expires_at_us < now_us
  order by shard limit $2 for update of shard_lease skip locked
)
update shard_lease l set worker_id = $1, epoch = l.epoch + 1, expires_at_us = clock.now_us + $3
from free, clock where l.shard = free.shard
returning l.shard, l.epoch
