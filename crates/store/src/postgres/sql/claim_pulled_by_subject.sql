-- The same for an endpoint whose deliveries are out one at a time for each subject: a part of the walk.
-- $1 to $7 as in claim_pulled.sql, $8 most due rows to look at. Runs under an advisory lock, so that no
-- two claims choose from the same subject.
-- A row that some consumer had (lease_token > 0) is the first of its subject, since only the first was
-- ever taken; it may be taken again. Of rows that nobody had, the first of each subject that is not among
-- those. Answers at least one row: how many were looked at and which was the last, so that the walk goes
-- on behind them.
-- Cost: a probe of event for each row looked at and for each row that consumers had. Rows that wait for
-- their subject are looked at again by every claim; that is the price of keeping no order in the queue.
with held as materialized (
  select e.subject from delivery d
  join lateral (
    select subject from event where tenant_id = d.tenant_id and uid = d.event_uid limit 1
  ) e on true
  where d.endpoint_id = $2 and d.lease_token > 0 and e.subject is not null
), walked as materialized (
  select d.*, e.subject
  from (
    select tenant_id, id, due_at_us, leased_at_us, lease_token, event_uid from delivery
    where shard = $1 and endpoint_id = $2 and due_at_us <= $3 and (due_at_us, id) > ($4, $5)
    order by due_at_us, id
    limit $8
  ) d
  left join lateral (
    select subject from event where tenant_id = d.tenant_id and uid = d.event_uid limit 1
  ) e on true
), firsts as (
  select distinct on (subject) * from walked
  where lease_token = 0 and subject is not null and subject not in (select subject from held)
  order by subject, due_at_us, id
), chosen as materialized (
  select tenant_id, id, due_at_us, leased_at_us from (
    select * from walked where lease_token > 0 or subject is null
    union all
    select * from firsts
  ) free
  order by due_at_us, id
  limit $6
), leased as (
  update delivery d
  set due_at_us = $7, leased_at_us = $3, lease_token = greatest(d.lease_token + 1, $3)
  from chosen c
  where d.tenant_id = c.tenant_id and d.id = c.id
  returning d.*
)
select d.tenant_id, d.id, d.endpoint_id, d.shard, d.format, d.attempts, d.round_start,
       d.round_at_us, d.due_at_us, d.event_uid,
       e.source, e.event_id, e.event_type, e.event_version, e.subject, e.sequence, e.content_type,
       e.occurred_at_us, e.accepted_at_us, e.data, e.channels, e.event_order,
       d.lease_token, was.due_at_us, was.leased_at_us,
       walk.looked_at, walk.last_due_at_us, walk.last_id
from (
  select (select count(*) from walked) as looked_at, last.due_at_us as last_due_at_us, last.id as last_id
  from (select 1) one
  left join lateral (select due_at_us, id from walked order by due_at_us desc, id desc limit 1) last
    on true
) walk
left join leased d on true
left join chosen was on was.tenant_id = d.tenant_id and was.id = d.id
left join lateral (
  select * from event where tenant_id = d.tenant_id and uid = d.event_uid limit 1
) e on true
