-- Writes the results of a batch of turns under the worker's leases.
-- $1 worker; $2..$10 one array per column of the settlements (state 0 means pending again);
-- $11..$20 one per column of the attempts. Answers the deliveries that had moved on; normally none.
-- Cost: per finished delivery one delete, one row in delivery_done and one in attempt; per retried
-- one a non-HOT update and an attempt. A turn whose lease is lost, or whose row has moved on, changes
-- nothing here; settle_late.sql records what is left to record.
with input as materialized (
  select * from unnest(
    $2::uuid[], $3::uuid[], $4::smallint[], $5::bigint[], $6::integer[], $7::integer[], $8::smallint[],
    $9::text[], $10::bigint[]
  ) as t (tenant_id, id, shard, epoch, attempts_before, attempts_after, state, reason, at_us)
), valid as materialized (
  select i.* from input i
  join shard_lease l on l.shard = i.shard and l.epoch = i.epoch and l.worker_id = $1
), finished as (
  delete from delivery d using valid v
  where d.tenant_id = v.tenant_id and d.id = v.id and d.attempts = v.attempts_before and v.state <> 0
  -- With what is written below: a join of two of these parts would be a loop over all pairs.
  returning d.tenant_id, d.id, d.endpoint_id, d.event_uid, d.format, v.state, v.reason,
            v.attempts_after, v.at_us
), recorded as (
  insert into delivery_done (tenant_id, id, endpoint_id, event_uid, format, state, reason, attempts,
                             finished_at_us)
  select tenant_id, id, endpoint_id, event_uid, format, state, reason, attempts_after, at_us
  from finished
), retried as (
  update delivery d set attempts = v.attempts_after, due_at_us = v.at_us
  from valid v
  where d.tenant_id = v.tenant_id and d.id = v.id and d.attempts = v.attempts_before and v.state = 0
  returning d.id
), appended as (
  insert into attempt (tenant_id, delivery_id, number, started_at_us, duration_us, outcome, status,
                       detail, retry_delay_us, retry_after_honoured)
  select a.tenant_id, a.delivery_id, a.number, a.started_at_us, a.duration_us, a.outcome, a.status,
         a.detail, a.retry_delay_us, a.retry_after_honoured
  from unnest(
    $11::uuid[], $12::uuid[], $13::integer[], $14::bigint[], $15::bigint[], $16::text[],
    $17::integer[], $18::text[], $19::bigint[], $20::boolean[]
  ) as a (tenant_id, delivery_id, number, started_at_us, duration_us, outcome, status, detail,
          retry_delay_us, retry_after_honoured)
  where a.delivery_id in (select id from finished union all select id from retried)
  on conflict do nothing
)
select i.id from input i
where i.id not in (select id from finished) and i.id not in (select id from retried)
