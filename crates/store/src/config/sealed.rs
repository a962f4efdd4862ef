//! Sealed records as a whole, and moving them to another key-encryption key.
//!
//! A move takes the lock that every change of configuration takes, so that no change that read the
//! record before can write it back; but it makes no revision, since nothing that a node uses changes.

use super::{
    ConfigDb,
    cell::HiddenBytes,
    entity::{config_revision, keyring_canary, keyring_rewrap},
    ring_tables::{OfEndpoints, OfSources, RingTables},
    write::{Write, write_options},
};
use crate::error::store_error;
use async_trait::async_trait;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait as _, ConnectionTrait, DatabaseConnection, DatabaseTransaction, EntityTrait as _,
    QueryFilter as _, QueryOrder as _, QuerySelect as _, TransactionTrait as _,
    sea_query::{Expr, OnConflict},
};
use turnbuckle_domain::{
    ChangeContext, Epoch, Error, Fields, KeyId, KeyOwner, KeyringCanary, PLATFORM, RewrapBatch,
    RewrapProgress, SealedRecord, SealedRecords, SealedSecret, StoreError, Timestamp,
};

/// Takes the lock of changes and changes nothing.
const LOCK: &str = "update config_revision set revision = revision where id = 1";

async fn begin_locked(db: &DatabaseConnection) -> Result<DatabaseTransaction, StoreError> {
    let options = write_options(db.get_database_backend());
    let transaction = db.begin_with_options(options).await.map_err(store_error)?;
    transaction.execute_unprepared(LOCK).await.map_err(store_error)?;
    Ok(transaction)
}

async fn read(db: &impl ConnectionTrait) -> Result<Option<RewrapProgress>, StoreError> {
    let row = keyring_rewrap::Entity::find_by_id(keyring_rewrap::ONLY).one(db).await;
    Ok(row.map_err(store_error)?.map(keyring_rewrap::decode).transpose()?)
}

async fn write(db: &impl ConnectionTrait, progress: &RewrapProgress) -> Result<(), StoreError> {
    use keyring_rewrap::Column;
    let replace = OnConflict::column(Column::Id)
        .update_columns([
            Column::ToKeyId,
            Column::AfterKeyId,
            Column::Moved,
            Column::Unreadable,
            Column::StartedAtUs,
            Column::UpdatedAtUs,
            Column::FinishedAtUs,
        ])
        .to_owned();
    let insert =
        keyring_rewrap::Entity::insert(keyring_rewrap::encode(progress)?).on_conflict(replace);
    insert.exec_without_returning(db).await.map_err(store_error)?;
    Ok(())
}

/// Sealed records of one kind of ring, in the order of their keys' ids.
async fn page<T: RingTables>(
    db: &impl ConnectionTrait,
    after: Option<KeyId>,
    limit: u16,
) -> Result<Vec<SealedRecord>, StoreError> {
    let mut page = T::Key::find().filter(T::KEY_SECRET.is_not_null());
    if let Some(after) = after {
        page = page.filter(T::KEY_ID.gt(after.uuid()));
    }
    let page = page.order_by_asc(T::KEY_ID).limit(u64::from(limit));
    let rows = page.all(db).await.map_err(store_error)?.into_iter();
    Ok(rows.map(T::sealed).collect::<Result<_, _>>()?)
}

/// Replaces a record that is as it was read; tells whether it was.
async fn replace<T: RingTables>(
    db: &impl ConnectionTrait,
    record: &SealedRecord,
    sealed: &SealedSecret,
) -> Result<bool, StoreError> {
    let bytes = |secret: &SealedSecret| HiddenBytes(secret.as_bytes().to_vec());
    let update = T::Key::update_many()
        .col_expr(T::KEY_SECRET, Expr::value(bytes(sealed)))
        .filter(T::KEY_ID.eq(record.context.key.uuid()))
        .filter(T::KEY_SECRET.eq(bytes(&record.sealed)));
    Ok(update.exec(db).await.map_err(store_error)?.rows_affected > 0)
}

/// Whoever keeps a copy of the configuration has records under the key before: another epoch makes
/// them read everything anew.
async fn begin_epoch(db: &impl ConnectionTrait, next: Epoch) -> Result<(), StoreError> {
    let update = config_revision::Entity::update_many()
        .col_expr(config_revision::Column::Epoch, Expr::value(next.uuid()));
    update.exec(db).await.map_err(store_error)?;
    Ok(())
}

fn fresh(to: &str, now: Timestamp) -> RewrapProgress {
    RewrapProgress {
        to: to.to_owned(),
        after: None,
        moved: 0,
        unreadable: 0,
        started_at: now,
        updated_at: now,
        finished_at: None,
    }
}

#[async_trait]
impl SealedRecords for ConfigDb {
    async fn keyring_canaries(&self) -> Result<Vec<KeyringCanary>, StoreError> {
        let rows = keyring_canary::Entity::find().order_by_asc(keyring_canary::Column::KeyId);
        let rows = rows.all(&self.db).await.map_err(store_error)?;
        Ok(rows.into_iter().map(keyring_canary::decode).collect())
    }

    async fn add_keyring_canary(&self, canary: &KeyringCanary) -> Result<(), StoreError> {
        let row = keyring_canary::ActiveModel {
            key_id: Set(canary.key_id.clone()),
            sealed: Set(HiddenBytes(canary.sealed.as_bytes().to_vec())),
            created_at_us: Set(canary.created_at.micros()),
        };
        let keep = OnConflict::column(keyring_canary::Column::KeyId).do_nothing().to_owned();
        let insert = keyring_canary::Entity::insert(row).on_conflict(keep);
        insert.exec_without_returning(&self.db).await.map_err(store_error)?;
        Ok(())
    }

    async fn drop_keyring_canary(&self, key_id: &str) -> Result<(), StoreError> {
        let delete = keyring_canary::Entity::delete_by_id(key_id);
        delete.exec(&self.db).await.map_err(store_error)?;
        Ok(())
    }

    async fn sealed_records(
        &self,
        after: Option<KeyId>,
        limit: u16,
    ) -> Result<Vec<SealedRecord>, StoreError> {
        // Ids are one order over both kinds: the first of either are among the first of both.
        let mut records = page::<OfEndpoints>(&self.db, after, limit).await?;
        records.extend(page::<OfSources>(&self.db, after, limit).await?);
        records.sort_by_key(|record| record.context.key);
        records.truncate(usize::from(limit));
        Ok(records)
    }

    async fn record_rewrap(&self, to: &str, by: &ChangeContext) -> Result<(), Error> {
        let mut write = Write::begin(&self.db).await?;
        let what = Fields::from([("rewrap.to".to_owned(), to.to_owned())]);
        write.note((PLATFORM, "keyring".to_owned()), Fields::new(), what);
        write.commit(by).await?;
        Ok(())
    }

    async fn rewrap_progress(&self) -> Result<Option<RewrapProgress>, StoreError> {
        read(&self.db).await
    }

    async fn begin_rewrap(&self, to: &str, now: Timestamp) -> Result<RewrapProgress, StoreError> {
        let transaction = begin_locked(&self.db).await?;
        let open = read(&transaction).await?;
        let open = open.filter(|open| open.to == to && open.finished_at.is_none());
        let progress = match open {
            Some(open) => open,
            None => {
                let begun = fresh(to, now);
                write(&transaction, &begun).await?;
                begun
            }
        };
        transaction.commit().await.map_err(store_error)?;
        Ok(progress)
    }

    async fn rewrap_batch(&self, batch: &RewrapBatch) -> Result<RewrapProgress, StoreError> {
        let transaction = begin_locked(&self.db).await?;
        let open = read(&transaction).await?.unwrap_or_else(|| fresh(&batch.to, batch.now));
        if open.to != batch.to {
            // Somebody began to move records to another key: this runner is to stop.
            return Ok(open);
        }
        let mut next = RewrapProgress { updated_at: batch.now, ..open };
        for (record, sealed) in &batch.moves {
            let moved = match record.context.owner {
                KeyOwner::Endpoint(_) => {
                    replace::<OfEndpoints>(&transaction, record, sealed).await?
                }
                KeyOwner::Source(_) => replace::<OfSources>(&transaction, record, sealed).await?,
            };
            next.moved += u64::from(moved);
        }
        // Another runner may have been here before.
        if next.after < Some(batch.up_to) {
            next.after = Some(batch.up_to);
            next.unreadable += batch.unreadable;
        }
        write(&transaction, &next).await?;
        transaction.commit().await.map_err(store_error)?;
        Ok(next)
    }

    async fn finish_rewrap(
        &self,
        to: &str,
        next: Epoch,
        now: Timestamp,
    ) -> Result<RewrapProgress, StoreError> {
        let transaction = begin_locked(&self.db).await?;
        let mut progress = read(&transaction).await?.unwrap_or_else(|| fresh(to, now));
        if progress.to == to && progress.finished_at.is_none() {
            progress.updated_at = now;
            progress.finished_at = Some(now);
            write(&transaction, &progress).await?;
            if progress.moved > 0 {
                begin_epoch(&transaction, next).await?;
            }
        }
        transaction.commit().await.map_err(store_error)?;
        Ok(progress)
    }
}
