-- Live and finished deliveries of a tenant in one shape, newest first. The filter stands in both
-- halves, so that each walks its primary key (tenant_id, id) and stops at the limit.
select v.*, e.event_id, e.event_type, p.slug as endpoint_slug
from (
  select * from (
    select tenant_id, id, endpoint_id, event_uid, 0 as state, attempts, due_at_us,
           cast(null as bigint) as finished_at_us, cast(null as text) as reason
    from delivery
    union all
    select tenant_id, id, endpoint_id, event_uid, cast(state as integer), attempts,
           cast(null as bigint), finished_at_us, reason
    from delivery_done
  ) both_kinds
  where /* filter */
) v
left join event e on e.tenant_id = v.tenant_id and e.uid = v.event_uid
left join endpoint p on p.id = v.endpoint_id
