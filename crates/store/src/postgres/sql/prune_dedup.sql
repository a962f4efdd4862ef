-- Takes away at most $2 ids whose window is over at $1, the oldest first. Rows that somebody works on
-- are left for the next run: several processes may prune at once.
-- Cost: one walk of event_dedup_age over the rows that go, and their primary keys.
delete from event_dedup d
using (
  select tenant_id, event_id, source from event_dedup
  where accepted_at_us + window_us <= $1
  order by accepted_at_us + window_us
  limit $2
  for update skip locked
) old
where d.tenant_id = old.tenant_id and d.event_id = old.event_id and d.source = old.source
