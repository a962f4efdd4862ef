-- Live and finished deliveries of a tenant in one shape, newest first. Filter and limit stand in both
-- halves, so that each walks its primary key (tenant_id, id) and stops at the limit.
select v.*, e.event_id, e.event_type, p.slug as endpoint_slug
from (
  select * from (
    select * from (
      select tenant_id, id, endpoint_id, event_uid, 0 as state, attempts, due_at_us,
             cast(null as bigint) as finished_at_us, cast(null as text) as reason
      from delivery
    ) live
    where /* filter */
    order by id desc limit /* limit */
  ) newest_live
  union all
  select * from (
    select * from (
      select tenant_id, id, endpoint_id, event_uid, cast(state as integer) as state, attempts,
             cast(null as bigint) as due_at_us, finished_at_us, reason
      from delivery_done
    ) done
    where /* filter */
    order by id desc limit /* limit */
  ) newest_done
) v
left join event e on e.tenant_id = v.tenant_id and e.uid = v.event_uid
left join endpoint p on p.id = v.endpoint_id
order by v.id desc limit /* limit */
