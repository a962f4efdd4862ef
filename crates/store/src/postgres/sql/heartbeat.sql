-- Says that the worker lives and renews what it still holds. $1 worker, $2 lease in microseconds.
-- The database's clock rules all leases, so that a step of one node's clock neither steals nor
-- keeps a shard (I11). Cost: at most 65 narrow updates every few seconds.
with clock as materialized (
  select (extract(epoch from clock_timestamp()) * 1000000)::bigint as now_us
), alive as (
  insert into worker (worker_id, expires_at_us) select $1, now_us + $2 from clock
  on conflict (worker_id) do update set expires_at_us = excluded.expires_at_us
), gone as (
  delete from worker using clock where expires_at_us < now_us - $2 * 10 and worker_id <> $1
), renewed as (
  update shard_lease set expires_at_us = now_us + $2 from clock
  where worker_id = $1
  returning shard, epoch
)
select array(select shard from renewed order by shard) as shards,
       array(select epoch from renewed order by shard) as epochs,
       (select count(*) from worker, clock where expires_at_us > now_us and worker_id <> $1) + 1 as workers
