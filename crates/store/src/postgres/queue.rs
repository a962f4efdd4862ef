//! `DeliveryQueue` on Postgres.

use super::PostgresQueue;
use crate::{error::sqlx_error, micros};
use async_trait::async_trait;
use bytes::Bytes;
use sqlx::{Row as _, postgres::PgRow};
use std::{collections::HashSet, sync::Arc, time::Duration};
use turnbuckle_domain::{
    Attempt, Claimed, DeliveryId, DeliveryQueue, EndpointId, Event, EventUid, FinishReason,
    Heartbeat, LaneClaim, LiveDelivery, Next, PayloadFormat, PendingLane, Settled, Settlement,
    Shard, ShardLease, StoreError, TenantId, Timestamp, TypeName, WorkerId,
};
use uuid::Uuid;

const HEARTBEAT: &str = include_str!("sql/heartbeat.sql");
const ACQUIRE: &str = include_str!("sql/acquire.sql");
const PENDING: &str = include_str!("sql/pending_lanes.sql");
const CLAIM: &str = include_str!("sql/claim_due.sql");
const SETTLE: &str = include_str!("sql/settle.sql");
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
        let rows = sqlx::query(CLAIM)
            .bind(lanes.iter().map(|lane| lane.endpoint.uuid()).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.shard.number()).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.after.0.micros()).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| lane.after.1.uuid()).collect::<Vec<_>>())
            .bind(lanes.iter().map(|lane| i32::from(lane.limit)).collect::<Vec<_>>())
            .bind(now.micros())
            .fetch_all(&self.pool)
            .await
            .map_err(sqlx_error)?;
        rows.iter().map(claimed).collect()
    }

    async fn settle(
        &self,
        worker: WorkerId,
        batch: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let all = || batch.iter();
        let attempts: Vec<(&Settlement, &Attempt)> =
            all().filter_map(|s| s.attempt.as_ref().map(|attempt| (s, attempt))).collect();
        let tried = || attempts.iter().map(|(_, attempt)| *attempt);
        let duration = |value: Option<Duration>| value.map(micros);
        let rows = sqlx::query(SETTLE)
            .bind(worker.uuid())
            .bind(all().map(|s| s.tenant.uuid()).collect::<Vec<_>>())
            .bind(all().map(|s| s.delivery.uuid()).collect::<Vec<_>>())
            .bind(all().map(|s| s.lease.shard.number()).collect::<Vec<_>>())
            .bind(all().map(|s| s.lease.epoch).collect::<Vec<_>>())
            .bind(all().map(|s| count(s.attempts_before)).collect::<Vec<_>>())
            .bind(all().map(|s| count(s.attempts_after())).collect::<Vec<_>>())
            .bind(all().map(|s| state_code(&s.next)).collect::<Vec<_>>())
            .bind(all().map(|s| reason(&s.next)).collect::<Vec<_>>())
            .bind(all().map(|s| written_at(s).micros()).collect::<Vec<_>>())
            .bind(attempts.iter().map(|(s, _)| s.tenant.uuid()).collect::<Vec<_>>())
            .bind(attempts.iter().map(|(s, _)| s.delivery.uuid()).collect::<Vec<_>>())
            .bind(tried().map(|a| count(a.number)).collect::<Vec<_>>())
            .bind(tried().map(|a| a.started_at.micros()).collect::<Vec<_>>())
            .bind(tried().map(|a| micros(a.duration)).collect::<Vec<_>>())
            .bind(tried().map(|a| &*a.outcome).collect::<Vec<_>>())
            .bind(tried().map(|a| a.status.map(i32::from)).collect::<Vec<_>>())
            .bind(tried().map(|a| &*a.detail).collect::<Vec<_>>())
            .bind(tried().map(|a| duration(a.retry_delay)).collect::<Vec<_>>())
            .bind(tried().map(|a| a.retry_after_honoured).collect::<Vec<_>>())
            .fetch_all(&self.pool)
            .await
            .map_err(sqlx_error)?;
        let stale: HashSet<Uuid> = rows.iter().map(|row| row.get(0)).collect();
        let answer = |s: &Settlement| {
            if stale.contains(&s.delivery.uuid()) { Settled::Stale } else { Settled::Applied }
        };
        Ok(all().map(answer).collect())
    }
}

const fn lease((shard, epoch): (i16, i64)) -> ShardLease {
    ShardLease { shard: Shard::from_number(shard), epoch }
}

fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

pub(crate) const fn state_code(next: &Next) -> i16 {
    match next {
        Next::Retry { .. } => 0,
        Next::Finish { state, .. } => state.code(),
    }
}

pub(crate) fn reason(next: &Next) -> Option<&'static str> {
    match next {
        Next::Retry { .. } => None,
        Next::Finish { reason, .. } => reason.map(FinishReason::as_str),
    }
}

/// The one time a settlement writes: when it is due again, or when it was finished.
pub(crate) const fn written_at(settlement: &Settlement) -> Timestamp {
    match settlement.next {
        Next::Retry { due_at } => due_at,
        Next::Finish { .. } => settlement.at,
    }
}

fn claimed(row: &PgRow) -> Result<Claimed, StoreError> {
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
    };
    Ok(Claimed { delivery, event: Some(Arc::new(event)) })
}

fn corrupt(column: &'static str) -> StoreError {
    StoreError::Internal(format!("a delivery or event has an impossible {column}").into())
}
