//! `ReplayStore` on both backends: the rows of replays through sea-orm, their steps by hand.

mod entity;
mod filter;
mod postgres;
mod tally;

pub(crate) use tally::{Fate, Tally};

use crate::{
    embedded::EmbeddedQueue,
    error::{is_unique_violation, store_error},
    history,
    immediate::begin_write,
};
use async_trait::async_trait;
use sea_orm::{
    ColumnTrait as _, ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend,
    EntityTrait as _, PaginatorTrait as _, QueryFilter as _, QueryOrder as _, QueryResult,
    QuerySelect as _, Statement, Value,
};
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    DeliveryId, DeliveryState, EndpointId, EventUid, FinishReason, Replay, ReplayCounts,
    ReplayCreated, ReplayEnd, ReplayId, ReplayLease, ReplayRow, ReplayScope, ReplayState,
    ReplayStep, ReplayStore, ReplayTurned, ReplayWalk, RequestKey, Shard, StepDone, StoreError,
    TenantId, Timestamp, WorkerId, replay_limits,
};
use uuid::Uuid;

pub(crate) const ADVANCE: &str = include_str!("replays/advance.sql");
const UNFINISHED: [&str; 3] = ["pending", "running", "paused"];
/// Makes of one tenant take turns, so that the number of unfinished ones is exact.
const ONE_AT_A_TIME: &str = "select pg_advisory_xact_lock(hashtextextended($1::text, 7424))";
/// What waits for a process: one probe of `replay_open`, most often answered with nothing.
const DUE: &str = "select tenant_id, id from replay \
                   where state in ('pending', 'running') and lease_until_us <= $1 \
                   order by updated_at_us limit 1";
const TAKE: &str = "update replay set state = 'running', worker_id = $3, \
                    lease_token = lease_token + 1, lease_until_us = $4, updated_at_us = $5, \
                    started_at_us = coalesce(started_at_us, $5) \
                    where tenant_id = $1 and id = $2 and lease_until_us <= $5";
const RELEASE: &str = "update replay set lease_until_us = 0, worker_id = null \
                       where tenant_id = $1 and id = $2 and lease_token = $3";
/// Ended or resumed: whoever had it has it no more.
const TURN: &str = "update replay set state = $3, updated_at_us = $4, finished_at_us = $5, \
                    waiting = $6, worker_id = null, lease_until_us = 0 \
                    where tenant_id = $1 and id = $2 and state in ($7, $8, $9)";
/// One walk of `replay_age` over the rows that go.
const PRUNE: &str = "delete from replay where (tenant_id, id) in \
                     (select tenant_id, id from replay where finished_at_us < $1 \
                      order by finished_at_us limit $2)";

/// Replays in the store.
#[derive(Clone)]
pub(crate) struct ReplayDb {
    db: DatabaseConnection,
    /// Does steps on SQLite, where they share the commits of events.
    writer: Option<EmbeddedQueue>,
}

impl ReplayDb {
    pub(crate) const fn new(db: DatabaseConnection) -> Self {
        Self { db, writer: None }
    }

    /// On SQLite.
    pub(crate) const fn embedded(db: DatabaseConnection, writer: EmbeddedQueue) -> Self {
        Self { db, writer: Some(writer) }
    }

    fn is_postgres(&self) -> bool {
        self.db.get_database_backend() == DbBackend::Postgres
    }

    fn statement(&self, sql: &str, values: Vec<Value>) -> Statement {
        Statement::from_sql_and_values(self.db.get_database_backend(), sql, values)
    }

    /// Whether the tenant may have one more, and nobody else makes one meanwhile.
    async fn has_room(
        &self,
        transaction: &DatabaseTransaction,
        tenant: TenantId,
    ) -> Result<bool, StoreError> {
        if self.is_postgres() {
            let lock = self.statement(ONE_AT_A_TIME, vec![tenant.uuid().into()]);
            transaction.execute_raw(lock).await.map_err(store_error)?;
        }
        Ok(open(transaction, tenant).await? < replay_limits::OPEN_PER_TENANT)
    }
}

async fn open(db: &impl ConnectionTrait, tenant: TenantId) -> Result<u32, StoreError> {
    let count = entity::Entity::find()
        .filter(entity::Column::TenantId.eq(tenant.uuid()))
        .filter(entity::Column::State.is_in(UNFINISHED))
        .count(db)
        .await
        .map_err(store_error)?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

async fn find(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    id: ReplayId,
) -> Result<Option<(Replay, i64)>, StoreError> {
    let key = (tenant.uuid(), id.uuid());
    let row = entity::Entity::find_by_id(key).one(db).await.map_err(store_error)?;
    row.map(|row| {
        let token = row.lease_token;
        Ok((entity::decode(row)?, token))
    })
    .transpose()
}

#[async_trait]
impl ReplayStore for ReplayDb {
    async fn create_replay(
        &self,
        replay: &Replay,
        request: Option<&RequestKey>,
    ) -> Result<ReplayCreated, StoreError> {
        let transaction = begin_write(&self.db).await.map_err(store_error)?;
        if !self.has_room(&transaction, replay.tenant).await? {
            transaction.rollback().await.map_err(store_error)?;
            // A repeat is no further one.
            let again = match request {
                Some(request) => self.replay_of_request(replay.tenant, request).await?,
                None => None,
            };
            return Ok(again.unwrap_or(ReplayCreated::TooMany));
        }
        let row = entity::encode(replay, request)?;
        match entity::Entity::insert(row).exec_without_returning(&transaction).await {
            Ok(_) => {
                transaction.commit().await.map_err(store_error)?;
                Ok(ReplayCreated::Made)
            }
            Err(error) => {
                transaction.rollback().await.map_err(store_error)?;
                match request {
                    Some(request) if is_unique_violation(&error) => {
                        let made = self.replay_of_request(replay.tenant, request).await?;
                        made.ok_or_else(|| store_error(error))
                    }
                    _ => Err(store_error(error)),
                }
            }
        }
    }

    async fn replay_of_request(
        &self,
        tenant: TenantId,
        request: &RequestKey,
    ) -> Result<Option<ReplayCreated>, StoreError> {
        let row = entity::Entity::find()
            .filter(entity::Column::TenantId.eq(tenant.uuid()))
            .filter(entity::Column::RequestId.eq(request.id))
            .one(&self.db)
            .await
            .map_err(store_error)?;
        let Some(row) = row else { return Ok(None) };
        if row.request_hash.as_deref() != Some(&request.content) {
            return Ok(Some(ReplayCreated::RequestIdReused));
        }
        entity::decode(row).map(|replay| Some(ReplayCreated::Again(Box::new(replay))))
    }

    async fn replay(&self, tenant: TenantId, id: ReplayId) -> Result<Option<Replay>, StoreError> {
        Ok(find(&self.db, tenant, id).await?.map(|(replay, _)| replay))
    }

    async fn replays(
        &self,
        tenant: TenantId,
        state: Option<ReplayState>,
        after: Option<ReplayId>,
        limit: u16,
    ) -> Result<Vec<Replay>, StoreError> {
        use entity::Column;
        let mut query = entity::Entity::find().filter(Column::TenantId.eq(tenant.uuid()));
        if let Some(after) = after {
            query = query.filter(Column::Id.lt(after.uuid()));
        }
        if let Some(state) = state {
            query = query.filter(Column::State.eq(state.as_str()));
        }
        let query = query.order_by_desc(Column::Id).limit(u64::from(limit));
        let rows = query.all(&self.db).await.map_err(store_error)?;
        rows.into_iter().map(entity::decode).collect()
    }

    async fn open_replays(&self, tenant: TenantId) -> Result<u32, StoreError> {
        open(&self.db, tenant).await
    }

    async fn turn_replay(
        &self,
        tenant: TenantId,
        id: ReplayId,
        to: ReplayState,
        now: Timestamp,
    ) -> Result<ReplayTurned, StoreError> {
        let transaction = begin_write(&self.db).await.map_err(store_error)?;
        let from = ReplayState::ALL.into_iter().filter(|from| from.may_become(to));
        let mut values: Vec<Value> = vec![
            tenant.uuid().into(),
            id.uuid().into(),
            to.as_str().into(),
            now.micros().into(),
            to.is_final().then(|| now.micros()).into(),
            false.into(),
        ];
        values.extend(from.map(|state| Value::from(state.as_str())));
        // At most three states can be left; what is not needed is no state.
        values.resize(9, Value::from(""));
        let turned = self.statement(TURN, values);
        let turned = transaction.execute_raw(turned).await.map_err(store_error)?.rows_affected();
        let found = find(&transaction, tenant, id).await?;
        transaction.commit().await.map_err(store_error)?;
        Ok(match found {
            None => ReplayTurned::Missing,
            Some((replay, _)) if turned == 1 => ReplayTurned::Turned(replay, false),
            Some((replay, _)) if is_in(replay.state, to) => ReplayTurned::Turned(replay, true),
            Some((replay, _)) => ReplayTurned::Refused(replay),
        })
    }

    async fn claim_replay(
        &self,
        worker: WorkerId,
        now: Timestamp,
        lease: Duration,
    ) -> Result<Option<(Replay, ReplayLease)>, StoreError> {
        // Most often there is nothing: then nothing is locked and nobody waits.
        let due = || vec![Value::from(now.micros())];
        if self.db.query_one_raw(self.statement(DUE, due())).await.map_err(store_error)?.is_none() {
            return Ok(None);
        }
        let transaction = begin_write(&self.db).await.map_err(store_error)?;
        let choose = match self.is_postgres() {
            true => format!("{DUE} for update skip locked"),
            false => DUE.to_owned(),
        };
        let row = transaction.query_one_raw(self.statement(&choose, due())).await;
        let Some(row) = row.map_err(store_error)? else {
            transaction.rollback().await.map_err(store_error)?;
            return Ok(None);
        };
        let tenant = TenantId::from_uuid(get(&row, "tenant_id")?);
        let id = ReplayId::from_uuid(get(&row, "id")?);
        let values = vec![
            tenant.uuid().into(),
            id.uuid().into(),
            worker.uuid().into(),
            (now + lease).micros().into(),
            now.micros().into(),
        ];
        transaction.execute_raw(self.statement(TAKE, values)).await.map_err(store_error)?;
        let taken = find(&transaction, tenant, id).await?;
        transaction.commit().await.map_err(store_error)?;
        Ok(taken.map(|(replay, token)| (replay, ReplayLease { tenant, replay: id, token })))
    }

    async fn release_replay(&self, lease: &ReplayLease) -> Result<(), StoreError> {
        let values =
            vec![lease.tenant.uuid().into(), lease.replay.uuid().into(), lease.token.into()];
        self.db.execute_raw(self.statement(RELEASE, values)).await.map_err(store_error)?;
        Ok(())
    }

    async fn replay_page(
        &self,
        walk: &ReplayWalk,
        after: Option<Uuid>,
        limit: u16,
    ) -> Result<Vec<ReplayRow>, StoreError> {
        let first = after.map_or(walk.first, |after| {
            Uuid::from_u128(after.as_u128().saturating_add(1)).max(walk.first)
        });
        let mut values: Vec<Value> = vec![
            walk.tenant.uuid().into(),
            first.into(),
            walk.last.into(),
            i64::from(limit).into(),
        ];
        values.extend(walk.failures_of.map(|endpoint| Value::from(endpoint.uuid())));
        let postgres = self.is_postgres();
        let sql = match (walk.scope, walk.failures_of) {
            (ReplayScope::Events, _) => {
                values.truncate(4);
                history::EVENTS_IN_RANGE.replace("/* columns */", history::EVENT_COLUMNS)
            }
            (_, None) if postgres => include_str!("replays/page_deliveries_postgres.sql").into(),
            (_, None) => include_str!("replays/page_deliveries_sqlite.sql").into(),
            (_, Some(_)) if postgres => include_str!("replays/page_failures_postgres.sql").into(),
            (_, Some(_)) => include_str!("replays/page_failures_sqlite.sql").into(),
        };
        let rows =
            self.db.query_all_raw(self.statement(&sql, values)).await.map_err(store_error)?;
        match walk.scope {
            ReplayScope::Events => rows
                .iter()
                .map(|row| Ok(ReplayRow::Event(Box::new(history::event(row, false)?))))
                .collect(),
            ReplayScope::Deliveries => rows.iter().map(delivery).collect(),
        }
    }

    async fn pending_at(&self, endpoint: EndpointId, most: u32) -> Result<u32, StoreError> {
        // Part of delivery_due, as far as the limit.
        let sql = "select count(*) as pending from (select 1 as one from delivery \
                   where shard = $1 and endpoint_id = $2 limit $3) as found";
        let shard = i32::from(Shard::of(endpoint).number());
        let values = vec![shard.into(), endpoint.uuid().into(), i64::from(most).into()];
        let row = self.db.query_one_raw(self.statement(sql, values)).await.map_err(store_error)?;
        let counted = row.map_or(Ok(0), |row| get::<i64>(&row, "pending"))?;
        Ok(u32::try_from(counted).unwrap_or(u32::MAX))
    }

    async fn step_replay(
        &self,
        lease: &ReplayLease,
        step: &ReplayStep,
    ) -> Result<Option<StepDone>, StoreError> {
        match &self.writer {
            Some(writer) => writer.step_replay(*lease, Arc::new(step.clone())).await,
            None => postgres::step(self.db.get_postgres_connection_pool(), lease, step).await,
        }
    }

    async fn prune_replays(&self, finished_before: Timestamp) -> Result<u64, StoreError> {
        let limit = i64::from(replay_limits::PRUNED_AT_ONCE);
        let prune = self.statement(PRUNE, vec![finished_before.micros().into(), limit.into()]);
        Ok(self.db.execute_raw(prune).await.map_err(store_error)?.rows_affected())
    }
}

/// Whether a wish is fulfilled already. Resuming is, of one that nobody paused.
const fn is_in(state: ReplayState, to: ReplayState) -> bool {
    match to {
        ReplayState::Pending => matches!(state, ReplayState::Pending | ReplayState::Running),
        ReplayState::Paused => matches!(state, ReplayState::Paused),
        ReplayState::Cancelled => matches!(state, ReplayState::Cancelled),
        ReplayState::Running | ReplayState::Done | ReplayState::Failed => false,
    }
}

/// The state of a replay after a step.
pub(crate) const fn state_after(step: &ReplayStep) -> ReplayState {
    match step.end {
        None => ReplayState::Running,
        Some(ReplayEnd::Done) => ReplayState::Done,
        Some(ReplayEnd::Failed(_)) => ReplayState::Failed,
    }
}

pub(crate) fn ended_at(step: &ReplayStep) -> Option<i64> {
    step.end.as_ref().map(|_| step.now.micros())
}

/// Counters in the order of the columns.
pub(crate) fn numbers(counts: &ReplayCounts) -> [i64; 9] {
    [
        counts.looked_at,
        counts.matched,
        counts.reopened,
        counts.made,
        counts.skipped_pending,
        counts.skipped_inactive,
        counts.skipped_gone,
        counts.skipped_finished,
        counts.skipped_unwanted,
    ]
    .map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

fn get<T: sea_orm::TryGetable>(row: &QueryResult, column: &str) -> Result<T, StoreError> {
    row.try_get::<T>("", column).map_err(store_error)
}

fn delivery(row: &QueryResult) -> Result<ReplayRow, StoreError> {
    let state = i16::try_from(get::<i32>(row, "state")?).ok().and_then(DeliveryState::from_code);
    let reason = get::<Option<String>>(row, "reason")?;
    let source = get::<Option<String>>(row, "source")?;
    Ok(ReplayRow::Delivery {
        id: DeliveryId::from_uuid(get(row, "id")?),
        endpoint: EndpointId::from_uuid(get(row, "endpoint_id")?),
        event: EventUid::from_uuid(get(row, "event_uid")?),
        state: state.ok_or_else(|| entity::corrupt("state of a delivery"))?,
        // A reason that this program does not know is none that anybody can have asked for.
        reason: reason.as_deref().and_then(FinishReason::parse),
        kept: source.zip(get::<Option<String>>(row, "event_type")?),
    })
}
