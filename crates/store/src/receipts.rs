//! `ReceiptLog` on both backends: written in groups, read by operators, pruned by age.

mod entity;
mod payload;

use crate::{error::store_error, immediate::begin_write};
use async_trait::async_trait;
use bytes::Bytes;
use sea_orm::{
    ColumnTrait as _, ConnectionTrait as _, DatabaseConnection, EntityTrait as _, QueryFilter as _,
    QueryOrder as _, QuerySelect as _, Statement,
};
use turnbuckle_domain::{
    Receipt, ReceiptFilter, ReceiptId, ReceiptLog, StoreError, TenantId, Timestamp, receipt_limits,
};
use uuid::Uuid;

const PRUNE: &str = include_str!("receipts/prune.sql");
const PRUNE_PAYLOADS: &str = include_str!("receipts/prune_payloads.sql");

/// Rows of one statement: far below what either backend can bind.
const INSERT_ROWS: usize = 500;

/// Receipts in the store.
#[derive(Clone)]
pub(crate) struct ReceiptDb {
    db: DatabaseConnection,
}

impl ReceiptDb {
    pub(crate) const fn new(db: DatabaseConnection) -> Self {
        Self { db }
    }

    fn statement(&self, sql: &str, values: Vec<sea_orm::Value>) -> Statement {
        Statement::from_sql_and_values(self.db.get_database_backend(), sql, values)
    }
}

#[async_trait]
impl ReceiptLog for ReceiptDb {
    async fn record_receipts(&self, receipts: &[Receipt]) -> Result<(), StoreError> {
        if receipts.is_empty() {
            return Ok(());
        }
        let transaction = begin_write(&self.db).await.map_err(store_error)?;
        for group in receipts.chunks(INSERT_ROWS) {
            let rows = group.iter().map(entity::encode).collect::<Result<Vec<_>, _>>()?;
            let insert = entity::Entity::insert_many(rows);
            insert.exec_without_returning(&transaction).await.map_err(store_error)?;
        }
        // One by one: each may have megabytes.
        for row in receipts.iter().filter_map(payload::encode) {
            let insert = payload::Entity::insert(row);
            insert.exec_without_returning(&transaction).await.map_err(store_error)?;
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
        receipt.payload_until = kept.as_ref().map(|kept| Timestamp::from_micros(kept.until_us));
        receipt.payload = kept.map(|kept| Bytes::from(kept.data));
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
        let limit = i64::from(receipt_limits::PRUNED_AT_ONCE);
        let transaction = begin_write(&self.db).await.map_err(store_error)?;
        let payloads = self.statement(PRUNE_PAYLOADS, vec![now.micros().into(), limit.into()]);
        let payloads = transaction.execute_raw(payloads).await.map_err(store_error)?;
        let receipts = self.statement(PRUNE, vec![first_id(oldest).into(), limit.into()]);
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
