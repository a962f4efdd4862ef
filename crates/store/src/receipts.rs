//! `ReceiptLog` on both backends: written in groups, read by operators, pruned by age.

mod entity;
mod payload;

use crate::{
    embedded::EmbeddedQueue, error::store_error, immediate::begin_write, postgres::partitions,
};
use async_trait::async_trait;
use bytes::Bytes;
use sea_orm::{
    ColumnTrait as _, ConnectionTrait as _, DatabaseConnection, DbBackend, EntityTrait as _,
    QueryFilter as _, QueryOrder as _, QuerySelect as _, QueryTrait as _, Statement,
};
use turnbuckle_domain::{
    Receipt, ReceiptFilter, ReceiptId, ReceiptLog, StoreError, TenantId, Timestamp, receipt_limits,
};
use uuid::Uuid;

const PRUNE_POSTGRES: &str = include_str!("receipts/prune_postgres.sql");
const PRUNE_SQLITE: &str = include_str!("receipts/prune_sqlite.sql");
const PRUNE_PAYLOADS: &str = include_str!("receipts/prune_payloads.sql");

/// Rows of one statement: far below what either backend can bind.
const INSERT_ROWS: usize = 500;

/// Longest wait for the lock on all receipts that dropping a day needs: whoever writes one waits behind
/// it, and a dead letter's sender waits for that.
const DROP_LOCK_WAIT: &str = "200ms";

/// Receipts in the store.
#[derive(Clone)]
pub(crate) struct ReceiptDb {
    db: DatabaseConnection,
    /// Writes on SQLite: receipts come as often as events, and share their commits.
    writer: Option<EmbeddedQueue>,
}

impl ReceiptDb {
    pub(crate) const fn new(db: DatabaseConnection) -> Self {
        Self { db, writer: None }
    }

    /// On SQLite.
    pub(crate) const fn embedded(db: DatabaseConnection, writer: EmbeddedQueue) -> Self {
        Self { db, writer: Some(writer) }
    }

    fn inserts(&self, receipts: &[Receipt]) -> Result<Vec<Statement>, StoreError> {
        let backend = self.db.get_database_backend();
        let mut statements = Vec::new();
        for group in receipts.chunks(INSERT_ROWS) {
            let rows = group.iter().map(entity::encode).collect::<Result<Vec<_>, _>>()?;
            statements.push(entity::Entity::insert_many(rows).build(backend));
        }
        // One by one: each may have megabytes.
        for row in receipts.iter().filter_map(payload::encode) {
            statements.push(payload::Entity::insert(row?).build(backend));
        }
        Ok(statements)
    }

    fn statement(&self, sql: &str, values: Vec<sea_orm::Value>) -> Statement {
        Statement::from_sql_and_values(self.db.get_database_backend(), sql, values)
    }

    /// Drops the partitions of whole days before this time. Each in a transaction of its own, and only
    /// when nobody has to wait for it: the next run tries again.
    async fn drop_days_before(&self, oldest: Timestamp) -> Result<(), StoreError> {
        let values = vec!["receipt".into(), partitions::day_of(oldest).into()];
        let ask = self.statement(partitions::OLD_PARTITIONS, values);
        let old = self.db.query_all_raw(ask).await.map_err(store_error)?;
        for row in old {
            let name: String = row.try_get_by_index(0).map_err(store_error)?;
            let transaction = begin_write(&self.db).await.map_err(store_error)?;
            let bound = format!("set local lock_timeout = '{DROP_LOCK_WAIT}'");
            transaction.execute_unprepared(&bound).await.map_err(store_error)?;
            // The name is made of a constant and digits, as the query sees to.
            let drop = format!("drop table if exists {name}");
            if let Err(error) = transaction.execute_unprepared(&drop).await {
                tracing::debug!(error = &error as &dyn std::error::Error, "a day was not dropped");
                transaction.rollback().await.map_err(store_error)?;
                continue;
            }
            transaction.commit().await.map_err(store_error)?;
        }
        Ok(())
    }
}

#[async_trait]
impl ReceiptLog for ReceiptDb {
    async fn record_receipts(&self, receipts: &[Receipt]) -> Result<(), StoreError> {
        if receipts.is_empty() {
            return Ok(());
        }
        let inserts = self.inserts(receipts)?;
        if let Some(writer) = &self.writer {
            return writer.execute(inserts).await;
        }
        let transaction = begin_write(&self.db).await.map_err(store_error)?;
        for insert in inserts {
            transaction.execute_raw(insert).await.map_err(store_error)?;
        }
        transaction.commit().await.map_err(store_error)
    }

    async fn receipt(
        &self,
        tenant: TenantId,
        id: ReceiptId,
    ) -> Result<Option<Receipt>, StoreError> {
        let key = (tenant.uuid(), id.uuid());
        let found = entity::Entity::find_by_id(key).one(&self.db).await.map_err(store_error)?;
        let Some(row) = found else { return Ok(None) };
        let kept = payload::Entity::find_by_id(key).one(&self.db).await.map_err(store_error)?;
        let mut receipt = entity::decode(row)?;
        if let Some(kept) = kept {
            receipt.payload_until = Some(Timestamp::from_micros(kept.until_us));
            receipt.context = payload::context(kept.context.as_deref())?;
            receipt.payload = Some(Bytes::from(kept.data));
        }
        Ok(Some(receipt))
    }

    async fn receipts(
        &self,
        tenant: TenantId,
        filter: &ReceiptFilter,
        after: Option<ReceiptId>,
        limit: u16,
    ) -> Result<Vec<Receipt>, StoreError> {
        use entity::Column;
        let mut query = entity::Entity::find().filter(Column::TenantId.eq(tenant.uuid()));
        if let Some(after) = after {
            query = query.filter(Column::Id.lt(after.uuid()));
        }
        if let Some(source) = filter.source {
            query = query.filter(Column::SourceId.eq(source.uuid()));
        }
        if let Some(decision) = filter.decision {
            query = query.filter(Column::Decision.eq(decision.as_str()));
        }
        if let Some(event_id) = &filter.event_id {
            query = query.filter(Column::EventId.eq(event_id.as_str()));
        }
        let query = query.order_by_desc(Column::Id).limit(u64::from(limit));
        let rows = query.all(&self.db).await.map_err(store_error)?;
        rows.into_iter().map(entity::decode).collect()
    }

    async fn prune_receipts(&self, oldest: Timestamp, now: Timestamp) -> Result<u64, StoreError> {
        let prune = match self.db.get_database_backend() {
            DbBackend::Postgres => {
                self.drop_days_before(oldest).await?;
                PRUNE_POSTGRES
            }
            _ => PRUNE_SQLITE,
        };
        let limit = i64::from(receipt_limits::PRUNED_AT_ONCE);
        let transaction = begin_write(&self.db).await.map_err(store_error)?;
        let payloads = self.statement(PRUNE_PAYLOADS, vec![now.micros().into(), limit.into()]);
        let payloads = transaction.execute_raw(payloads).await.map_err(store_error)?;
        let receipts = self.statement(prune, vec![first_id(oldest).into(), limit.into()]);
        let pruned = transaction.execute_raw(receipts).await.map_err(store_error)?;
        transaction.commit().await.map_err(store_error)?;
        // There may be more of either.
        Ok(pruned.rows_affected().max(payloads.rows_affected()))
    }
}

/// The lowest id of that time: ids carry milliseconds in their first 48 bits.
fn first_id(at: Timestamp) -> Uuid {
    let millis = u128::try_from(at.micros() / 1_000).unwrap_or(0);
    Uuid::from_u128(millis << 80)
}
