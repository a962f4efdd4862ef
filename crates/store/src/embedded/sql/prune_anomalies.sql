-- Takes away at most ?2 anomalies that were last seen before ?1.
-- Cost: one walk of event_anomaly_age over the rows that go, and their primary keys.
delete from event_anomaly where (tenant_id, event_id, source, content_hash) in (
  select tenant_id, event_id, source, content_hash from event_anomaly
  where seen_at_us < ?1 order by seen_at_us limit ?2
)
