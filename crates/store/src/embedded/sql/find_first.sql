-- What was stored first under a dedup key.
select uid, content_hash, accepted_at_us from event_dedup
where tenant_id = ?1 and event_id = ?2 and source = ?3
