-- Writes what became of leased deliveries of pull endpoints.
-- $1..$8 one array per column of the settlements (state 0 means pending again); $9..$18 one per column of
-- the attempts. Answers the deliveries whose lease had moved on; normally none.
-- Cost: as settle.sql. The lease is on the row itself: its token is the right to write.
with input as materialized (
  select * from unnest(
    $1::uuid[], $2::uuid[], $3::bigint[], $4::integer[], $5::integer[], $6::smallint[], $7::text[],
    $8::bigint[]
  ) as t (tenant_id, id, lease_token, attempts_before, attempts_after, state, reason, at_us)
), finished as (
  delete from delivery d using input v
  where d.tenant_id = v.tenant_id and d.id = v.id and d.attempts = v.attempts_before and v.state <> 0
    and d.lease_token = v.lease_token and d.leased_at_us is not null
  returning d.tenant_id, d.id, d.endpoint_id, d.event_uid, d.format, v.state, v.reason,
            v.attempts_after, v.at_us
), recorded as (
  insert into delivery_done (tenant_id, id, endpoint_id, event_uid, format, state, reason, attempts,
                             finished_at_us)
  select tenant_id, id, endpoint_id, event_uid, format, state, reason, attempts_after, at_us
  from finished
), given_back as (
  update delivery d set attempts = v.attempts_after, due_at_us = v.at_us, leased_at_us = null
  from input v
  where d.tenant_id = v.tenant_id and d.id = v.id and d.attempts = v.attempts_before and v.state = 0
    and d.lease_token = v.lease_token and d.leased_at_us is not null
  returning d.id
), appended as (
  insert into attempt (tenant_id, delivery_id, number, started_at_us, duration_us, outcome, status,
                       detail, retry_delay_us, retry_after_honoured)
  select a.tenant_id, a.delivery_id, a.number, a.started_at_us, a.duration_us, a.outcome, a.status,
         a.detail, a.retry_delay_us, a.retry_after_honoured
  from unnest(
    $9::uuid[], $10::uuid[], $11::integer[], $12::bigint[], $13::bigint[], $14::text[],
    $15::integer[], $16::text[], $17::bigint[], $18::boolean[]
  ) as a (tenant_id, delivery_id, number, started_at_us, duration_us, outcome, status, detail,
          retry_delay_us, retry_after_honoured)
  where a.delivery_id in (select id from finished union all select id from given_back)
  on conflict do nothing
)
select i.id from input i
where i.id not in (select id from finished) and i.id not in (select id from given_back)
