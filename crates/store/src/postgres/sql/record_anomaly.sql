-- Notes that an id came with other content. Repeats of the same content only count.
insert into event_anomaly (tenant_id, event_id, source, content_hash, first_uid, seen_at_us)
select distinct on (tenant_id, event_id, source, content_hash) *
from unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::uuid[], $6::bigint[])
  as a (tenant_id, event_id, source, content_hash, first_uid, seen_at_us)
on conflict (tenant_id, event_id, source, content_hash)
do update set seen_count = event_anomaly.seen_count + 1, seen_at_us = excluded.seen_at_us
