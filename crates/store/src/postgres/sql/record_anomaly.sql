-- Notes that an id came with other content. Repeats of the same content only count, also inside a
-- batch. Sorted, so that two batches with the same ids cannot dead-lock.
insert into event_anomaly (tenant_id, event_id, source, content_hash, first_uid, seen_at_us, seen_count)
select tenant_id, event_id, source, content_hash, (array_agg(first_uid))[1], max(seen_at_us), count(*)
from unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[], $5::uuid[], $6::bigint[])
  as a (tenant_id, event_id, source, content_hash, first_uid, seen_at_us)
group by tenant_id, event_id, source, content_hash
order by tenant_id, event_id, source, content_hash
on conflict (tenant_id, event_id, source, content_hash)
do update set seen_count = event_anomaly.seen_count + excluded.seen_count,
              seen_at_us = excluded.seen_at_us
