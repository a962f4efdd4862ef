-- Due deliveries of a pull endpoint with their events, the oldest first; the caller stops reading when it
-- has enough. One descent of delivery_due, two of the primary keys per row.
select d.tenant_id, d.id, d.endpoint_id, d.shard, d.format, d.attempts, d.round_start,
       d.round_at_us, d.due_at_us, d.event_uid,
       e.source, e.event_id, e.event_type, e.event_version, e.subject, e.sequence, e.content_type,
       e.occurred_at_us, e.accepted_at_us, e.data, e.channels, e.event_order,
       d.lease_token, d.leased_at_us
from delivery d
left join event e on e.tenant_id = d.tenant_id and e.uid = d.event_uid
where d.shard = ?1 and d.endpoint_id = ?2 and d.due_at_us <= ?3 and (d.due_at_us, d.id) > (?4, ?5)
order by d.due_at_us, d.id
