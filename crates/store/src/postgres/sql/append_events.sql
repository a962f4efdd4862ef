-- Stores a batch of events with their deliveries, or for known ids nothing at all.
-- $1..$14 and $22..$26 one array per column of the events, $15..$21 one per column of the deliveries.
-- Answers the uids that were refused by the dedup key, and whether by the key of a signed body;
-- normally none.
-- An id whose window is over by the clock of the caller is new, and its row is written over.
-- Cost: one statement and one round trip per batch; per event one heap row and one index entry in
-- event, event_dedup with two index entries (when the sender chose the id; twice that for an id that
-- is not signed) and, per delivery, delivery + two index entries.
-- Senders sort a batch by dedup key, so that two batches with the same ids cannot dead-lock; bodies
-- come before ids, sorted here.
with input as materialized (
  -- Only what the dedup key needs: what stands here is copied, and payloads are large.
  select * from unnest(
    $1::uuid[], $2::uuid[], $26::text[], $4::text[], $11::bigint[], $13::bytea[], $14::bigint[],
    $23::text[], $24::bigint[], $25::bytea[]
  ) as t (tenant_id, uid, source, event_id, accepted_at_us, content_hash, window_us,
          body_key, body_window_us, id_mark)
), bodies as (
  insert into event_dedup as known
    (tenant_id, event_id, source, uid, content_hash, accepted_at_us, window_us)
  select tenant_id, body_key, source, uid, id_mark, accepted_at_us, body_window_us
  from input where body_key is not null
  order by tenant_id, body_key, source
  on conflict (tenant_id, event_id, source) do update
    set uid = excluded.uid, content_hash = excluded.content_hash,
        accepted_at_us = excluded.accepted_at_us, window_us = excluded.window_us
    where known.accepted_at_us + known.window_us <= excluded.accepted_at_us
  returning uid
), replayed as materialized (
  select uid from input where body_key is not null and uid not in (select uid from bodies)
), fresh as (
  insert into event_dedup as known
    (tenant_id, event_id, source, uid, content_hash, accepted_at_us, window_us)
  select tenant_id, event_id, source, uid, content_hash, accepted_at_us, window_us
  from input
  -- A replayed body takes no id: whoever replays cannot use up ids that are still to come.
  where window_us is not null and uid not in (select uid from replayed)
  on conflict (tenant_id, event_id, source) do update
    set uid = excluded.uid, content_hash = excluded.content_hash,
        accepted_at_us = excluded.accepted_at_us, window_us = excluded.window_us
    where known.accepted_at_us + known.window_us <= excluded.accepted_at_us
  returning uid
), refused as materialized (
  select uid from input where window_us is not null and uid not in (select uid from fresh)
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
select uid, uid in (select uid from replayed) from refused
