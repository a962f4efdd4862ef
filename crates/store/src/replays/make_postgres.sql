-- Makes deliveries of events that are still there. Runs under the tenant's lock for steps, after a look
-- for deliveries that are there, so that an event has one delivery at an endpoint.
-- $1 tenant; $2..$6 one array per column; $7 the time. Answers the ids made.
-- Cost: one probe of event and as in append_events.sql for each.
insert into delivery (tenant_id, id, endpoint_id, event_uid, shard, format, round_at_us, due_at_us)
select $1, d.id, d.endpoint_id, d.event_uid, d.shard, d.format, $7, $7
from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::smallint[], $6::smallint[])
  as d (id, endpoint_id, event_uid, shard, format)
where exists (select 1 from event e where e.tenant_id = $1 and e.uid = d.event_uid)
returning id
