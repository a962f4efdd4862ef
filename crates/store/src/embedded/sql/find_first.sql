-- What was stored first under a dedup key, and when its window is over.
select uid, content_hash, accepted_at_us, accepted_at_us + window_us from event_dedup
where tenant_id = ?1 and event_id = ?2 and source = ?3
