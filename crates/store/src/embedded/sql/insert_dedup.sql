-- Takes an event id for this event, or changes nothing when it is taken. One tree, one entry.
insert into event_dedup (tenant_id, event_id, source, uid, content_hash, accepted_at_us)
values (?1, ?2, ?3, ?4, ?5, ?6) on conflict do nothing
