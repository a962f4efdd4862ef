-- The next finished deliveries of a tenant, in the order of their ids, with what a filter looks at.
-- $1 tenant, $2 first and $3 last id, $4 most rows. Cost: one walk of the primary key over the rows
-- answered, and a probe of event for each.
select d.id, d.endpoint_id, d.event_uid, cast(d.state as integer) as state, d.reason, e.source, e.event_type
from (
  select id, endpoint_id, event_uid, state, reason from delivery_done
  where tenant_id = $1 and id >= $2 and id <= $3
  order by id
  limit $4
) d
left join event e on e.tenant_id = $1 and e.uid = d.event_uid
order by d.id
