//! `DeliveryQueue` on SQLite.

use super::EmbeddedQueue;
use crate::{channels, micros};
use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row, params, types::Type};
use std::{collections::HashSet, sync::Arc, time::Duration};
use turnbuckle_domain::{
    Attempt, CLAIM_BYTES_MAX, Claimed, DeliveryId, DeliveryQueue, DeliveryState, EndpointId, Event,
    EventOrder, EventUid, FinishReason, Heartbeat, LaneClaim, LiveDelivery, Next, PayloadFormat,
    PendingLane, Settled, Settlement, Shard, ShardLease, StoreError, TenantId, Timestamp, TypeName,
    WorkerId,
};
use uuid::Uuid;

const CLAIM: &str = include_str!("sql/claim_due.sql");
const NEXT_PENDING: &str = include_str!("sql/next_pending_lane.sql");
const FILE: &str = include_str!("sql/file_delivery.sql");
pub(super) const REMOVE: &str = "delete from delivery where tenant_id = ?1 and id = ?2";
const RETRY: &str = include_str!("sql/retry_delivery.sql");
pub(super) const INSERT_ATTEMPT: &str = include_str!("sql/insert_attempt.sql");
const COUNT_LATE: &str = include_str!("sql/count_late_attempt.sql");
const HELD: &str = "select shard, epoch from shard_lease where worker_id = ?1 order by shard";

#[async_trait]
impl DeliveryQueue for EmbeddedQueue {
    async fn heartbeat(&self, worker: WorkerId, ttl: Duration) -> Result<Heartbeat, StoreError> {
        let now = self.clock.now();
        self.writer.run(move |connection| heartbeat(connection, worker, now, ttl)).await
    }

    async fn acquire(
        &self,
        worker: WorkerId,
        count: usize,
        ttl: Duration,
    ) -> Result<Vec<ShardLease>, StoreError> {
        let now = self.clock.now();
        self.writer.run(move |connection| acquire(connection, worker, count, now, ttl)).await
    }

    async fn release(&self, worker: WorkerId, shards: Option<&[Shard]>) -> Result<(), StoreError> {
        let shards: Option<Vec<Shard>> = shards.map(<[Shard]>::to_vec);
        self.writer.run(move |connection| release(connection, worker, shards.as_deref())).await
    }

    async fn pending(&self, shards: &[Shard]) -> Result<Vec<PendingLane>, StoreError> {
        let shards = shards.to_vec();
        self.reader.run(move |connection| pending(connection, &shards)).await
    }

    async fn claim(&self, lanes: &[LaneClaim], now: Timestamp) -> Result<Vec<Claimed>, StoreError> {
        let lanes = lanes.to_vec();
        self.reader.run(move |connection| claim(connection, &lanes, now)).await
    }

    async fn settle(
        &self,
        worker: WorkerId,
        batch: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        let batch: Arc<[Settlement]> = batch.into();
        self.writer.run(move |connection| settle(connection, worker, &batch)).await
    }
}

fn heartbeat(
    connection: &Connection,
    worker: WorkerId,
    now: Timestamp,
    ttl: Duration,
) -> rusqlite::Result<Heartbeat> {
    let worker = worker.uuid().into_bytes();
    let expires = (now + ttl).micros();
    connection.execute(
        "insert into worker (worker_id, expires_at_us) values (?1, ?2) \
         on conflict do update set expires_at_us = excluded.expires_at_us",
        params![worker, expires],
    )?;
    connection.execute(
        "update shard_lease set expires_at_us = ?2 where worker_id = ?1",
        params![worker, expires],
    )?;
    let workers: i64 = connection.query_row(
        "select count(*) from worker where expires_at_us > ?1",
        [now.micros()],
        |row| row.get(0),
    )?;
    Ok(Heartbeat {
        leases: held(connection, &worker)?,
        workers: usize::try_from(workers).unwrap_or(1),
    })
}

fn held(connection: &Connection, worker: &[u8; 16]) -> rusqlite::Result<Vec<ShardLease>> {
    connection.prepare_cached(HELD)?.query_map([worker], lease)?.collect()
}

fn acquire(
    connection: &Connection,
    worker: WorkerId,
    count: usize,
    now: Timestamp,
    ttl: Duration,
) -> rusqlite::Result<Vec<ShardLease>> {
    let mut statement = connection.prepare_cached(
        "update shard_lease set worker_id = ?1, epoch = epoch + 1, expires_at_us = ?2 \
         where shard in (select shard from shard_lease where expires_at_us < ?3 order by shard limit ?4) \
         returning shard, epoch",
    )?;
    let limit = i64::try_from(count).unwrap_or(i64::MAX);
    let worker = worker.uuid().into_bytes();
    let bound = params![worker, (now + ttl).micros(), now.micros(), limit];
    statement.query_map(bound, lease)?.collect()
}

fn release(
    connection: &Connection,
    worker: WorkerId,
    shards: Option<&[Shard]>,
) -> rusqlite::Result<()> {
    let worker = worker.uuid().into_bytes();
    let Some(shards) = shards else {
        connection.execute(
            "update shard_lease set worker_id = null, expires_at_us = 0 where worker_id = ?1",
            [worker],
        )?;
        connection.execute("delete from worker where worker_id = ?1", [worker])?;
        return Ok(());
    };
    let mut statement = connection.prepare_cached(
        "update shard_lease set worker_id = null, expires_at_us = 0 \
         where worker_id = ?1 and shard = ?2",
    )?;
    for shard in shards {
        statement.execute(params![worker, shard.number()])?;
    }
    Ok(())
}

fn lease(row: &Row<'_>) -> rusqlite::Result<ShardLease> {
    Ok(ShardLease { shard: Shard::from_number(row.get(0)?), epoch: row.get(1)? })
}

fn pending(connection: &Connection, shards: &[Shard]) -> rusqlite::Result<Vec<PendingLane>> {
    let mut statement = connection.prepare_cached(NEXT_PENDING)?;
    let mut lanes = Vec::new();
    for shard in shards {
        let mut after = Uuid::nil();
        loop {
            let next = statement
                .query_row(params![shard.number(), after.as_bytes()], |row| {
                    Ok(PendingLane {
                        endpoint: EndpointId::from_uuid(uuid(row, 0)?),
                        due_at: Timestamp::from_micros(row.get(1)?),
                        first: DeliveryId::from_uuid(uuid(row, 2)?),
                    })
                })
                .optional()?;
            let Some(lane) = next else { break };
            after = lane.endpoint.uuid();
            lanes.push(lane);
        }
    }
    Ok(lanes)
}

fn claim(
    connection: &Connection,
    lanes: &[LaneClaim],
    now: Timestamp,
) -> rusqlite::Result<Vec<Claimed>> {
    let mut statement = connection.prepare_cached(CLAIM)?;
    let mut claimed = Vec::new();
    let mut bytes = 0;
    for lane in lanes {
        let (due_at, id) = lane.after;
        let bound = params![
            lane.shard.number(),
            lane.endpoint.uuid().into_bytes(),
            now.micros(),
            due_at.micros(),
            id.uuid().into_bytes(),
            lane.limit,
        ];
        for row in statement.query_map(bound, read_claimed)? {
            if bytes >= CLAIM_BYTES_MAX {
                return Ok(claimed);
            }
            match row {
                Ok(row) => {
                    bytes += row.event.as_ref().map_or(0, |event| event.data.len());
                    claimed.push(row);
                }
                // A row that this program cannot read must not hold back the others (I13).
                Err(error @ rusqlite::Error::InvalidColumnType(..)) => {
                    tracing::error!(%error, "a delivery cannot be read");
                }
                Err(error) => return Err(error),
            }
        }
    }
    Ok(claimed)
}

pub(super) fn read_claimed(row: &Row<'_>) -> rusqlite::Result<Claimed> {
    let tenant = TenantId::from_uuid(uuid(row, 0)?);
    let delivery = LiveDelivery {
        id: DeliveryId::from_uuid(uuid(row, 1)?),
        tenant,
        endpoint: EndpointId::from_uuid(uuid(row, 2)?),
        shard: Shard::from_number(row.get(3)?),
        format: PayloadFormat::from_code(row.get(4)?).ok_or_else(|| corrupt(4))?,
        attempts: row.get(5)?,
        round_start: row.get(6)?,
        round_at: Timestamp::from_micros(row.get(7)?),
        due_at: Timestamp::from_micros(row.get(8)?),
    };
    let Some(source) = row.get::<_, Option<String>>(10)? else {
        return Ok(Claimed { delivery, event: None });
    };
    let event = Event {
        uid: EventUid::from_uuid(uuid(row, 9)?),
        tenant,
        source,
        event_id: row.get(11)?,
        event_type: TypeName::new(row.get::<_, String>(12)?).map_err(|_| corrupt(12))?,
        event_version: row.get(13)?,
        subject: row.get(14)?,
        sequence: row.get(15)?,
        content_type: row.get(16)?,
        occurred_at: Timestamp::from_micros(row.get(17)?),
        accepted_at: Timestamp::from_micros(row.get(18)?),
        data: Bytes::from(row.get::<_, Vec<u8>>(19)?),
        channels: channels::parse(row.get::<_, Option<String>>(20)?.as_deref())
            .ok_or_else(|| corrupt(20))?,
        order: row
            .get::<_, Option<String>>(21)?
            .map(|text| EventOrder::parse(&text).ok_or_else(|| corrupt(21)))
            .transpose()?,
    };
    Ok(Claimed { delivery, event: Some(Arc::new(event)) })
}

fn settle(
    connection: &Connection,
    worker: WorkerId,
    batch: &[Settlement],
) -> rusqlite::Result<Vec<Settled>> {
    let held: HashSet<ShardLease> =
        held(connection, worker.uuid().as_bytes())?.into_iter().collect();
    let mut writes = Writes::prepare(connection)?;
    batch
        .iter()
        .map(|settlement| {
            if held.contains(&settlement.lease) {
                writes.settle(settlement)
            } else {
                Ok(Settled::Stale)
            }
        })
        .collect()
}

/// What a settlement may need, looked up once for a batch.
struct Writes<'c> {
    retry: CachedStatement<'c>,
    file: CachedStatement<'c>,
    remove: CachedStatement<'c>,
    attempt: CachedStatement<'c>,
    late: CachedStatement<'c>,
}

impl<'c> Writes<'c> {
    fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            retry: connection.prepare_cached(RETRY)?,
            file: connection.prepare_cached(FILE)?,
            remove: connection.prepare_cached(REMOVE)?,
            attempt: connection.prepare_cached(INSERT_ATTEMPT)?,
            late: connection.prepare_cached(COUNT_LATE)?,
        })
    }

    fn settle(&mut self, settlement: &Settlement) -> rusqlite::Result<Settled> {
        let applied = match settlement.next {
            Next::Retry { due_at } => self.reschedule(settlement, due_at)?,
            Next::Finish { state, reason } => self.finish(settlement, state, reason)?,
        };
        if let Some(attempt) = &settlement.attempt
            && (applied || self.count_late(settlement)?)
        {
            self.insert_attempt(settlement, attempt)?;
        }
        Ok(if applied { Settled::Applied } else { Settled::Stale })
    }

    fn reschedule(&mut self, settlement: &Settlement, due_at: Timestamp) -> rusqlite::Result<bool> {
        let changed = self.retry.execute(params![
            settlement.tenant.uuid().as_bytes(),
            settlement.delivery.uuid().as_bytes(),
            settlement.attempts_before,
            settlement.attempts_after(),
            due_at.micros(),
        ])?;
        Ok(changed == 1)
    }

    /// Files first and removes then: a `returning` would open and drop a temporary tree for each row.
    fn finish(
        &mut self,
        settlement: &Settlement,
        state: DeliveryState,
        reason: Option<FinishReason>,
    ) -> rusqlite::Result<bool> {
        let tenant = settlement.tenant.uuid().into_bytes();
        let id = settlement.delivery.uuid().into_bytes();
        let filed = self.file.execute(params![
            tenant,
            id,
            settlement.attempts_before,
            state.code(),
            reason.map(FinishReason::as_str),
            settlement.attempts_after(),
            settlement.at.micros(),
        ])?;
        if filed == 1 {
            self.remove.execute(params![tenant, id])?;
        }
        Ok(filed == 1)
    }

    /// Counts an attempt whose delivery was finished while it ran.
    fn count_late(&mut self, settlement: &Settlement) -> rusqlite::Result<bool> {
        let changed = self.late.execute(params![
            settlement.tenant.uuid().as_bytes(),
            settlement.delivery.uuid().as_bytes(),
            settlement.attempts_before,
            settlement.attempts_after(),
        ])?;
        Ok(changed == 1)
    }

    fn insert_attempt(
        &mut self,
        settlement: &Settlement,
        attempt: &Attempt,
    ) -> rusqlite::Result<()> {
        self.attempt.execute(params![
            settlement.tenant.uuid().as_bytes(),
            settlement.delivery.uuid().as_bytes(),
            settlement.attempts_after(),
            attempt.started_at.micros(),
            micros(attempt.duration),
            attempt.outcome,
            attempt.status,
            attempt.detail,
            attempt.retry_delay.map(micros),
            attempt.retry_after_honoured,
        ])?;
        Ok(())
    }
}

pub(super) fn uuid(row: &Row<'_>, column: usize) -> rusqlite::Result<Uuid> {
    row.get(column).map(Uuid::from_bytes)
}

fn corrupt(column: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, "impossible value".into(), Type::Text)
}
