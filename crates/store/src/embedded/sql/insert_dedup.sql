-- Takes an event id, or the key of a signed body, for this event; changes nothing when it is taken and
-- its window is not over by the clock of the caller. One tree and its index, one entry each.
insert into event_dedup (tenant_id, event_id, source, uid, content_hash, accepted_at_us, window_us)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
on conflict (tenant_id, event_id, source) do update
  set uid = excluded.uid, content_hash = excluded.content_hash,
      accepted_at_us = excluded.accepted_at_us, window_us = excluded.window_us
  where event_dedup.accepted_at_us + event_dedup.window_us <= excluded.accepted_at_us
