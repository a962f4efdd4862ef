-- Records attempts whose delivery was finished while they ran, under the worker's leases: the finished
-- row counts them, so that the numbers of a later round have no gap and no repeat.
-- $1 worker; $2..$5 tenant, delivery, shard and epoch of the turns, $6..$13 their attempts.
-- Runs only after a settle that left some over, which takes an operator's cancel in the middle of an
-- attempt. Cost: one index probe per turn left over.
with input as materialized (
  select * from unnest(
    $2::uuid[], $3::uuid[], $4::smallint[], $5::bigint[], $6::integer[], $7::bigint[], $8::bigint[],
    $9::text[], $10::integer[], $11::text[], $12::bigint[], $13::boolean[]
  ) as t (tenant_id, delivery_id, shard, epoch, number, started_at_us, duration_us, outcome, status,
          detail, retry_delay_us, retry_after_honoured)
), counted as (
  update delivery_done d set attempts = i.number
  from input i
  join shard_lease l on l.shard = i.shard and l.epoch = i.epoch and l.worker_id = $1
  where d.tenant_id = i.tenant_id and d.id = i.delivery_id and d.attempts = i.number - 1
  returning d.id
)
insert into attempt (tenant_id, delivery_id, number, started_at_us, duration_us, outcome, status,
                     detail, retry_delay_us, retry_after_honoured)
select tenant_id, delivery_id, number, started_at_us, duration_us, outcome, status, detail,
       retry_delay_us, retry_after_honoured
from input where delivery_id in (select id from counted)
on conflict do nothing
