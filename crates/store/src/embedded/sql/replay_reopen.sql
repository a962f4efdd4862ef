-- Opens a finished delivery for a new round, due now, where its event is still there; the row of before is
-- removed then. Cost: one probe of delivery_done and of event, one entry in delivery and its index.
insert into delivery (tenant_id, id, endpoint_id, event_uid, shard, format, attempts, round_start,
                      round_at_us, due_at_us)
select d.tenant_id, d.id, d.endpoint_id, d.event_uid, ?3, d.format, d.attempts, d.attempts, ?4, ?4
from delivery_done d
where d.tenant_id = ?1 and d.id = ?2
  and ((d.state = 1 and ?5) or (d.state = 2 and ?6) or (d.state = 3 and ?7))
  and exists (select 1 from event e where e.tenant_id = d.tenant_id and e.uid = d.event_uid)
