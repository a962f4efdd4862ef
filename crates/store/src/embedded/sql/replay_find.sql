-- The delivery that an event has at an endpoint, pending or finished. Cost: a narrow range of the primary
-- key of either table.
select id, 0 as state from delivery
where tenant_id = ?1 and id >= ?2 and id <= ?3 and event_uid = ?4 and endpoint_id = ?5
union all
select id, state from delivery_done
where tenant_id = ?1 and id >= ?2 and id <= ?3 and event_uid = ?4 and endpoint_id = ?5
limit 1
