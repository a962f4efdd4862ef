-- Takes away at most $2 anomalies that were last seen before $1.
-- Cost: one walk of event_anomaly_age over the rows that go, and their primary keys.
delete from event_anomaly a
using (
  select tenant_id, event_id, source, content_hash from event_anomaly
  where seen_at_us < $1
  order by seen_at_us
  limit $2
  for update skip locked
) old
where a.tenant_id = old.tenant_id and a.event_id = old.event_id and a.source = old.source
  and a.content_hash = old.content_hash
