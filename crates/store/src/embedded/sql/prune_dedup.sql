-- Takes away at most ?2 ids whose window is over at ?1, the oldest first.
-- Cost: one walk of event_dedup_age over the rows that go, and their primary keys.
delete from event_dedup where (tenant_id, event_id, source) in (
  select tenant_id, event_id, source from event_dedup
  where accepted_at_us + window_us <= ?1
  order by accepted_at_us + window_us
  limit ?2
)
