//! `DeliveryQueue` on Postgres.

use super::{PostgresQueue, settle};
use crate::{channels, error::sqlx_error, micros};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use sqlx::{Row as _, postgres::PgRow};
use std::{collections::HashSet, sync::Arc, time::Duration};
use turnbuckle_domain::{
    CLAIM_BYTES_MAX, Claimed, DeliveryId, DeliveryQueue, EndpointId, Event, EventOrder, EventUid,
    Heartbeat, LaneClaim, LiveDelivery, PayloadFormat, PendingLane, Settled, Settlement, Shard,
    ShardLease, StoreError, TenantId, Timestamp, TypeName, WakeHint, WorkerId,
};

const HEARTBEAT: &str = include_str!("sql/heartbeat.sql");
const ACQUIRE: &str = include_str!("sql/acquire.sql");
const PENDING: &str = include_str!("sql/pending_lanes.sql");
const CLAIM: &str = include_str!("sql/claim_due.sql");
const RELEASE: &str = "update shard_lease set expires_at_us = 0, worker_id = null \
                       where worker_id = $1 and ($2::smallint[] is null or shard = any($2))";
const RETIRE: &str = "delete from worker where worker_id = $1";

#[async_trait]
impl DeliveryQueue for PostgresQueue {
    async fn heartbeat(&self, worker: WorkerId, ttl: Duration) -> Result<Heartbeat, StoreError> {
        let row = sqlx::query(HEARTBEAT)
            .bind(worker.uuid())
            .bind(micros(ttl))
            .fetch_one(&self.pool)
            .await
            .map_err(sqlx_error)?;
        let shards: Vec<i16> = row.get(0);
        let epochs: Vec<i64> = row.get(1);
        let leases = shards.into_iter().zip(epochs).map(lease).collect();
        let workers = usize::try_from(row.get::<i64, _>(2)).unwrap_or(1);
        Ok(Heartbeat { leases, workers })
    }

    async fn acquire(
        &self,
        worker: WorkerId,
        count: usize,
        ttl: Duration,
    ) -> Result<Vec<ShardLease>, StoreError> {
        let rows = sqlx::query(ACQUIRE)
            .bind(worker.uuid())
            .bind(i64::try_from(count).unwrap_or(i64::MAX))
            .bind(micros(ttl))
            .fetch_all(&self.pool)
            .await
            .map_err(sqlx_error)?;
        Ok(rows.iter().map(|row| lease((row.get(0), row.get(1)))).collect())
    }

    async fn release(&self, worker: WorkerId, shards: Option<&[Shard]>) -> Result<(), StoreError> {
        let numbers = shards.map(|list| list.iter().map(|s| s.number()).collect::<Vec<_>>());
        sqlx::query(RELEASE)
            .bind(worker.uuid())
            .bind(numbers)
            .execute(&self.pool)
            .await
            .map_err(sqlx_error)?;
        self.hint_freed().await?;
        if shards.is_none() {
            let retire = sqlx::query(RETIRE).bind(worker.uuid());
            retire.execute(&self.pool).await.map_err(sqlx_error)?;
        }
        Ok(())
    }

    async fn pending(&self, shards: &[Shard]) -> Result<Vec<PendingLane>, StoreError> {
        let numbers: Vec<i16> = shards.iter().map(|shard| shard.number()).collect();
        let rows =
            sqlx::query(PENDING).bind(numbers).fetch_all(&self.pool).await.map_err(sqlx_error)?;
        let lane = |row: &PgRow| PendingLane {
            endpoint: EndpointId::from_uuid(row.get(0)),
            due_at: Timestamp::from_micros(row.get(1)),
            first: DeliveryId::from_uuid(row.get(2)),
        };
        Ok(rows.iter().map(lane).collect())
    }

    async fn claim(&self, lanes: &[LaneClaim], now: Timestamp) -> Result<Vec<Claimed>, StoreError> {
        let mut rows = sqlx::query(CLAIM)
            .bind(lanes.iter().map(|lane| lane.endpoint.uuid()).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.shard.number()).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.after.0.micros()).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.after.1.uuid()).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| i32::from(lane.limit)).collect::<Vec<_>>())
            .bind(now.micros())
            .fetch(&self.pool);
        let (mut found, mut bytes) = (Vec::new(), 0);
        // Row by row: the rest of an answer that is too large is read past and never held.
        while bytes < CLAIM_BYTES_MAX
            && let Some(row) = rows.try_next().await.map_err(sqlx_error)?
        {
            let row = readable(claimed(&row));
            let event = row.as_ref().and_then(|row| row.event.as_ref());
            bytes += event.map_or(0, |event| event.data.len());
            found.extend(row);
        }
        drop(rows);
        // The join with the events keeps no order.
        found.sort_by_key(|claimed| (claimed.delivery.due_at, claimed.delivery.id));
        Ok(found)
    }

    async fn hint(&self, endpoints: &[EndpointId]) -> Result<(), StoreError> {
        self.send_hints(endpoints).await
    }

    async fn listen(&self, to: Arc<dyn WakeHint>) -> Result<(), StoreError> {
        self.pass_hints_on(to).await
    }

    async fn settle(
        &self,
        worker: WorkerId,
        batch: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let mut seen = HashSet::with_capacity(batch.len());
        // Of a delivery named twice the first turn counts: one statement cannot write a row twice.
        let turns: Vec<(usize, &Settlement)> =
            batch.iter().enumerate().filter(|(_, turn)| seen.insert(turn.delivery)).collect();
        let stale = settle::write(&self.pool, worker, turns.iter().map(|(_, turn)| *turn)).await?;
        let mut answers = vec![Settled::Stale; batch.len()];
        let mut late = Vec::new();
        for (index, turn) in turns {
            if stale.contains(&turn.delivery.uuid()) {
                late.push(turn);
            } else {
                answers[index] = Settled::Applied;
            }
        }
        settle::record_late(&self.pool, worker, &late).await?;
        Ok(answers)
    }
}

const fn lease((shard, epoch): (i16, i64)) -> ShardLease {
    ShardLease { shard: Shard::from_number(shard), epoch }
}

/// A row that this program cannot read must not hold back the others of its claim (I13).
pub(super) fn readable<T>(row: Result<T, StoreError>) -> Option<T> {
    let tell = |error: &StoreError| {
        tracing::error!(error = error as &dyn std::error::Error, "a delivery cannot be read");
    };
    row.inspect_err(tell).ok()
}

pub(super) fn claimed(row: &PgRow) -> Result<Claimed, StoreError> {
    let tenant = TenantId::from_uuid(row.get(0));
    let delivery = LiveDelivery {
        id: DeliveryId::from_uuid(row.get(1)),
        tenant,
        endpoint: EndpointId::from_uuid(row.get(2)),
        shard: Shard::from_number(row.get(3)),
        format: PayloadFormat::from_code(row.get(4)).ok_or_else(|| corrupt("format"))?,
        attempts: u32::try_from(row.get::<i32, _>(5)).map_err(|_| corrupt("attempts"))?,
        round_start: u32::try_from(row.get::<i32, _>(6)).map_err(|_| corrupt("round_start"))?,
        round_at: Timestamp::from_micros(row.get(7)),
        due_at: Timestamp::from_micros(row.get(8)),
    };
    let Some(source) = row.get::<Option<String>, _>(10) else {
        return Ok(Claimed { delivery, event: None });
    };
    let event = Event {
        uid: EventUid::from_uuid(row.get(9)),
        tenant,
        source,
        event_id: row.get(11),
        event_type: TypeName::new(row.get::<String, _>(12)).map_err(|_| corrupt("event_type"))?,
        event_version: row.get(13),
        subject: row.get(14),
        sequence: row.get(15),
        content_type: row.get(16),
        occurred_at: Timestamp::from_micros(row.get(17)),
        accepted_at: Timestamp::from_micros(row.get(18)),
        data: Bytes::from(row.get::<Vec<u8>, _>(19)),
        channels: channels::parse(row.get::<Option<&str>, _>(20))
            .ok_or_else(|| corrupt("channels"))?,
        order: row
            .get::<Option<&str>, _>(21)
            .map(|text| EventOrder::parse(text).ok_or_else(|| corrupt("event_order")))
            .transpose()?,
    };
    Ok(Claimed { delivery, event: Some(Arc::new(event)) })
}

fn corrupt(column: &'static str) -> StoreError {
    StoreError::Internal(format!("a delivery or event has an impossible {column}").into())
}
