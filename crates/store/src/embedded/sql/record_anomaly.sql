-- Notes that an id came with other content. Repeats of the same content only count.
insert into event_anomaly (tenant_id, event_id, source, content_hash, first_uid, seen_at_us)
values (?1, ?2, ?3, ?4, ?5, ?6)
on conflict (tenant_id, event_id, source, content_hash)
do update set seen_count = seen_count + 1, seen_at_us = excluded.seen_at_us
