//! `EventLog` on Postgres.

use super::PostgresQueue;
use crate::{
    channels,
    error::sqlx_error,
    first::{
        FirstSeen, Key, Plan, Refused, RefusedBy, body_key_of, body_of, first_uid, lost_key, plan,
        resolve, scope_of,
    },
    micros, order,
};
use async_trait::async_trait;
use sqlx::{PgExecutor, Row as _, postgres::PgRow};
use std::collections::HashMap;
use turnbuckle_domain::{
    Append, AppendResult, EventLog, EventUid, Shard, StoreError, TenantId, Timestamp, dedup_limits,
    id_mark,
};
use uuid::Uuid;

const APPEND: &str = include_str!("sql/append_events.sql");
const FIND_FIRST: &str = include_str!("sql/find_first.sql");
const RECORD_ANOMALY: &str = include_str!("sql/record_anomaly.sql");
const FORGET_BODIES: &str = include_str!("sql/forget_bodies.sql");
const PRUNE_DEDUP: &str = include_str!("sql/prune_dedup.sql");
const PRUNE_ANOMALIES: &str = include_str!("sql/prune_anomalies.sql");

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
        if let Err(error) = self.forget_bodies(batch, &refused).await {
            // They are over soon by themselves.
            tracing::debug!(error = &error as &dyn std::error::Error, "bodies not forgotten");
        }
        Ok(results)
    }

    async fn prune_dedup(
        &self,
        now: Timestamp,
        oldest_anomaly: Timestamp,
    ) -> Result<u64, StoreError> {
        let ids = self.prune(PRUNE_DEDUP, now).await?;
        let anomalies = self.prune(PRUNE_ANOMALIES, oldest_anomaly).await?;
        Ok(ids.max(anomalies))
    }
}

impl PostgresQueue {
    async fn prune(&self, sql: &'static str, before: Timestamp) -> Result<u64, StoreError> {
        let limit = i64::from(dedup_limits::PRUNED_AT_ONCE);
        let pruned = sqlx::query(sql).bind(before.micros()).bind(limit).execute(&self.pool).await;
        Ok(pruned.map_err(sqlx_error)?.rows_affected())
    }

    /// What events left beside ids that were known: their bodies made no event.
    async fn forget_bodies(&self, batch: &[Append], refused: &Refused) -> Result<(), StoreError> {
        let left = |append: &&Append| {
            refused.get(&append.event.uid) == Some(&RefusedBy::Id) && body_of(append).is_some()
        };
        let left: Vec<&Append> =
            if refused.is_empty() { Vec::new() } else { batch.iter().filter(left).collect() };
        if left.is_empty() {
            return Ok(());
        }
        let keys: Vec<Key> = left.iter().filter_map(|append| body_key_of(append)).collect();
        sqlx::query(FORGET_BODIES)
            .bind(keys.iter().map(|(tenant, ..)| tenant.uuid()).collect::<Vec<_>>())
            .bind(keys.iter().map(|(_, key, _)| key.as_str()).collect::<Vec<_>>())
            .bind(keys.iter().map(|(.., source)| source.as_str()).collect::<Vec<_>>())
            .bind(left.iter().map(|append| append.event.uid.uuid()).collect::<Vec<_>>())
            .execute(&self.pool)
            .await
            .map_err(sqlx_error)?;
        Ok(())
    }

    async fn find_first(
        &self,
        batch: &[Append],
        plan: &Plan,
        refused: &Refused,
    ) -> Result<HashMap<Key, FirstSeen>, StoreError> {
        if refused.is_empty() {
            return Ok(HashMap::new());
        }
        let lost = |&index: &usize| {
            let by = refused.get(&batch[index].event.uid)?;
            Some(lost_key(&batch[index], *by))
        };
        let keys: Vec<Key> = plan.writers.iter().filter_map(lost).collect();
        let rows = sqlx::query(FIND_FIRST)
            .bind(keys.iter().map(|(tenant, ..)| tenant.uuid()).collect::<Vec<_>>())
            .bind(keys.iter().map(|(_, key, _)| key.as_str()).collect::<Vec<_>>())
            .bind(keys.iter().map(|(.., source)| source.as_str()).collect::<Vec<_>>())
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

/// Inserts the chosen events; answers which of them a known key refused. Deliveries of watched events are
/// left out: when they are due is not known yet.
pub(super) async fn insert<'c>(
    executor: impl PgExecutor<'c>,
    batch: &[Append],
    chosen: &[usize],
) -> Result<Refused, StoreError> {
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
        .bind(events().map(|a| a.dedup.map(|rule| micros(rule.window))).collect::<Vec<_>>())
        .bind(deliveries().map(|(event, _)| event.tenant.uuid()).collect::<Vec<_>>())
        .bind(deliveries().map(|(_, d)| d.id.uuid()).collect::<Vec<_>>())
        .bind(deliveries().map(|(_, d)| d.endpoint.uuid()).collect::<Vec<_>>())
        .bind(deliveries().map(|(event, _)| event.uid.uuid()).collect::<Vec<_>>())
        .bind(deliveries().map(|(_, d)| Shard::of(d.endpoint).number()).collect::<Vec<_>>())
        .bind(deliveries().map(|(_, d)| d.format.code()).collect::<Vec<_>>())
        .bind(deliveries().map(|(event, _)| event.accepted_at.micros()).collect::<Vec<_>>())
        .bind(events().map(|a| channels::text(&a.event.channels)).collect::<Vec<_>>())
        .bind(events().map(|a| body_of(a).map(|body| body.key())).collect::<Vec<_>>())
        .bind(events().map(|a| body_of(a).map(|body| micros(body.window))).collect::<Vec<_>>())
        .bind(events().map(|a| body_of(a).map(|_| mark_of(a))).collect::<Vec<_>>())
        .bind(events().map(|a| scope_of(a)).collect::<Vec<_>>())
        .fetch_all(executor)
        .await
        .map_err(sqlx_error)?;
    let refused = |row: &PgRow| {
        let by = if row.get(1) { RefusedBy::Body } else { RefusedBy::Id };
        (EventUid::from_uuid(row.get(0)), by)
    };
    Ok(rows.iter().map(refused).collect())
}

fn mark_of(append: &Append) -> Vec<u8> {
    id_mark(&append.event.event_id).to_vec()
}

fn corrupt() -> StoreError {
    StoreError::Internal("a content hash is not 32 bytes long".into())
}
