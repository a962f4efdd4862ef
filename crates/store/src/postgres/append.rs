//! `EventLog` on Postgres.

use super::PostgresQueue;
use crate::{
    channels,
    error::sqlx_error,
    first::{FirstSeen, Key, Plan, first_uid, plan, resolve},
    order,
};
use async_trait::async_trait;
use sqlx::{PgExecutor, Row as _};
use std::collections::{HashMap, HashSet};
use turnbuckle_domain::{
    Append, AppendResult, EventLog, EventUid, Shard, StoreError, TenantId, Timestamp,
};
use uuid::Uuid;

const APPEND: &str = include_str!("sql/append_events.sql");
const FIND_FIRST: &str = include_str!("sql/find_first.sql");
const RECORD_ANOMALY: &str = include_str!("sql/record_anomaly.sql");

#[async_trait]
impl EventLog for PostgresQueue {
    async fn append(&self, batch: &[Append]) -> Result<Vec<AppendResult>, StoreError> {
        let plan = plan(batch);
        let (refused, placed) = if batch.iter().any(order::is_watched) {
            self.insert_watched(batch, &plan).await?
        } else {
            (insert(&self.pool, batch, &plan.writers).await?, Vec::new())
        };
        // The commit is done: what fails from here on must not make stored events look refused.
        let firsts = self.find_first(batch, &plan, &refused).await.unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "first events not read");
            HashMap::new()
        });
        let mut results = resolve(batch, &plan, &refused, &firsts);
        order::answer(&mut results, placed);
        if let Err(error) = self.record_anomalies(batch, &plan, &results, &firsts).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "anomalies not recorded");
        }
        Ok(results)
    }
}

impl PostgresQueue {
    async fn find_first(
        &self,
        batch: &[Append],
        plan: &Plan,
        refused: &HashSet<EventUid>,
    ) -> Result<HashMap<Key, FirstSeen>, StoreError> {
        if refused.is_empty() {
            return Ok(HashMap::new());
        }
        let losers: Vec<&Append> = plan
            .writers
            .iter()
            .map(|&index| &batch[index])
            .filter(|append| refused.contains(&append.event.uid))
            .collect();
        let rows = sqlx::query(FIND_FIRST)
            .bind(losers.iter().map(|a| a.event.tenant.uuid()).collect::<Vec<_>>())
            .bind(losers.iter().map(|a| a.event.event_id.as_str()).collect::<Vec<_>>())
            .bind(losers.iter().map(|a| a.event.source.as_str()).collect::<Vec<_>>())
            .fetch_all(&self.pool)
            .await
            .map_err(sqlx_error)?;
        rows.iter()
            .map(|row| {
                let key = (TenantId::from_uuid(row.get(0)), row.get(1), row.get(2));
                let content_hash = row.get::<&[u8], _>(4).try_into().map_err(|_| corrupt())?;
                let first = FirstSeen {
                    uid: EventUid::from_uuid(row.get(3)),
                    content_hash,
                    accepted_at: Timestamp::from_micros(row.get(5)),
                };
                Ok((key, first))
            })
            .collect()
    }

    async fn record_anomalies(
        &self,
        batch: &[Append],
        plan: &Plan,
        results: &[AppendResult],
        firsts: &HashMap<Key, FirstSeen>,
    ) -> Result<(), StoreError> {
        let (anomalies, first_uids): (Vec<&Append>, Vec<Uuid>) = batch
            .iter()
            .zip(results)
            .enumerate()
            .filter(|(_, (_, result))| **result == AppendResult::Anomaly)
            .map(|(index, (append, _))| (append, first_uid(batch, plan, firsts, index).uuid()))
            .unzip();
        if anomalies.is_empty() {
            return Ok(());
        }
        sqlx::query(RECORD_ANOMALY)
            .bind(anomalies.iter().map(|a| a.event.tenant.uuid()).collect::<Vec<_>>())
            .bind(anomalies.iter().map(|a| a.event.event_id.as_str()).collect::<Vec<_>>())
            .bind(anomalies.iter().map(|a| a.event.source.as_str()).collect::<Vec<_>>())
            .bind(anomalies.iter().map(|a| &a.content_hash[..]).collect::<Vec<_>>())
            .bind(first_uids)
            .bind(anomalies.iter().map(|a| a.event.accepted_at.micros()).collect::<Vec<_>>())
            .execute(&self.pool)
            .await
            .map_err(sqlx_error)?;
        Ok(())
    }
}

/// Inserts the chosen events; answers which of them a known id refused. Deliveries of watched events are
/// left out: when they are due is not known yet.
pub(super) async fn insert<'c>(
    executor: impl PgExecutor<'c>,
    batch: &[Append],
    chosen: &[usize],
) -> Result<HashSet<EventUid>, StoreError> {
    let events = || chosen.iter().map(|&index| &batch[index]);
    let deliveries = || {
        let unwatched = events().filter(|append| !order::is_watched(append));
        unwatched.flat_map(|append| append.deliveries.iter().map(move |d| (&append.event, d)))
    };
    let event_column = |read: fn(&Append) -> Uuid| events().map(read).collect::<Vec<_>>();
    let event_text = |read: fn(&Append) -> &str| events().map(read).collect::<Vec<_>>();
    let event_time =
        |read: fn(&Append) -> Timestamp| events().map(|a| read(a).micros()).collect::<Vec<_>>();
    let rows = sqlx::query(APPEND)
        .bind(event_column(|a| a.event.tenant.uuid()))
        .bind(event_column(|a| a.event.uid.uuid()))
        .bind(event_text(|a| &a.event.source))
        .bind(event_text(|a| &a.event.event_id))
        .bind(event_text(|a| a.event.event_type.as_str()))
        .bind(event_text(|a| &a.event.event_version))
        .bind(events().map(|a| a.event.subject.as_deref()).collect::<Vec<_>>())
        .bind(events().map(|a| a.event.sequence).collect::<Vec<_>>())
        .bind(event_text(|a| &a.event.content_type))
        .bind(event_time(|a| a.event.occurred_at))
        .bind(event_time(|a| a.event.accepted_at))
        .bind(events().map(|a| &a.event.data[..]).collect::<Vec<_>>())
        .bind(events().map(|a| &a.content_hash[..]).collect::<Vec<_>>())
        .bind(events().map(|a| a.dedup).collect::<Vec<_>>())
        .bind(deliveries().map(|(event, _)| event.tenant.uuid()).collect::<Vec<_>>())
        .bind(deliveries().map(|(_, d)| d.id.uuid()).collect::<Vec<_>>())
        .bind(deliveries().map(|(_, d)| d.endpoint.uuid()).collect::<Vec<_>>())
        .bind(deliveries().map(|(event, _)| event.uid.uuid()).collect::<Vec<_>>())
        .bind(deliveries().map(|(_, d)| Shard::of(d.endpoint).number()).collect::<Vec<_>>())
        .bind(deliveries().map(|(_, d)| d.format.code()).collect::<Vec<_>>())
        .bind(deliveries().map(|(event, _)| event.accepted_at.micros()).collect::<Vec<_>>())
        .bind(events().map(|a| channels::text(&a.event.channels)).collect::<Vec<_>>())
        .fetch_all(executor)
        .await
        .map_err(sqlx_error)?;
    Ok(rows.iter().map(|row| EventUid::from_uuid(row.get(0))).collect())
}

fn corrupt() -> StoreError {
    StoreError::Internal("a content hash is not 32 bytes long".into())
}
