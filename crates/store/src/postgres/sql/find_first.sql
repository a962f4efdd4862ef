-- What was stored first under these dedup keys. Runs after an append that refused some, as a
-- statement of its own: the append's snapshot may be older than the row it collided with.
-- Cost: one index probe per refused event.
select d.tenant_id, d.event_id, d.source, d.uid, d.content_hash, d.accepted_at_us
from unnest($1::uuid[], $2::text[], $3::text[]) as k (tenant_id, event_id, source)
join event_dedup d using (tenant_id, event_id, source)
