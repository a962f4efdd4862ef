-- Takes back what refused events left beside ids: bodies that made no event are remembered for none.
-- Runs only after an append that refused an id which is not signed, with a body that was new.
-- Cost: one index probe per such event.
delete from event_dedup d
using unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[]) as k (tenant_id, event_id, source, uid)
where d.tenant_id = k.tenant_id and d.event_id = k.event_id and d.source = k.source and d.uid = k.uid
