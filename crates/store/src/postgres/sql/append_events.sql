-- Stores a batch of events with their deliveries, or for known ids nothing at all.
-- $1..$14 and $22 one array per column of the events, $15..$21 one per column of the deliveries.
-- Answers the uids that were refused by the dedup key; normally none.
-- Cost: one statement and one round trip per batch; per event one heap row and one index entry in
-- event, event_dedup (when the sender chose the id) and, per delivery, delivery + two index entries.
-- Senders sort a batch by dedup key, so that two batches with the same ids cannot dead-lock.
with input as materialized (
  -- Only what the dedup key needs: what stands here is copied, and payloads are large.
  select * from unnest(
    $1::uuid[], $2::uuid[], $3::text[], $4::text[], $11::bigint[], $13::bytea[], $14::boolean[]
  ) as t (tenant_id, uid, source, event_id, accepted_at_us, content_hash, dedup)
), fresh as (
  insert into event_dedup (tenant_id, event_id, source, uid, content_hash, accepted_at_us)
  select tenant_id, event_id, source, uid, content_hash, accepted_at_us from input where dedup
  on conflict do nothing
  returning uid
), refused as materialized (
  select uid from input where dedup and uid not in (select uid from fresh)
), stored as (
  insert into event (tenant_id, uid, source, event_id, event_type, event_version, subject, sequence,
                     content_type, occurred_at_us, accepted_at_us, data, channels)
  select tenant_id, uid, source, event_id, event_type, event_version, subject, sequence,
         content_type, occurred_at_us, accepted_at_us, data, channels
  from unnest(
    $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[],
    $9::text[], $10::bigint[], $11::bigint[], $12::bytea[], $22::text[]
  ) as t (tenant_id, uid, source, event_id, event_type, event_version, subject, sequence,
          content_type, occurred_at_us, accepted_at_us, data, channels)
  where uid not in (select uid from refused)
), queued as (
  insert into delivery (tenant_id, id, endpoint_id, event_uid, shard, format, round_at_us, due_at_us)
  select d.tenant_id, d.id, d.endpoint_id, d.event_uid, d.shard, d.format, d.due_at_us, d.due_at_us
  from unnest($15::uuid[], $16::uuid[], $17::uuid[], $18::uuid[], $19::smallint[], $20::smallint[],
              $21::bigint[])
    as d (tenant_id, id, endpoint_id, event_uid, shard, format, due_at_us)
  where d.event_uid not in (select uid from refused)
)
select uid from refused
