-- The same of one endpoint's failed deliveries. $5 endpoint. Cost: one walk of delivery_done_failed over
-- the rows answered; the tenant is compared afterwards, so that no other index is chosen.
select d.id, d.endpoint_id, d.event_uid, cast(d.state as integer) as state, d.reason, e.source, e.event_type
from (
  select tenant_id, id, endpoint_id, event_uid, state, reason from delivery_done
  where endpoint_id = $5 and state <> 1 and id >= $2 and id <= $3
  order by id
  limit $4
) d
left join event e on e.tenant_id = $1 and e.uid = d.event_uid
where d.tenant_id = $1
order by d.id
