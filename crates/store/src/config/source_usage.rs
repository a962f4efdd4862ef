//! Counts of what keys of sources verified. Writes only add, so any number of processes may write at once.

use super::{
    entity::{source_key_usage, verification_key},
    usage::{count, latest, sum},
};
use crate::error::store_error;
use sea_orm::{
    ActiveValue::Set, ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _,
    QueryOrder as _, QuerySelect as _, QueryTrait as _, prelude::Uuid, sea_query::OnConflict,
};
use source_key_usage::{ActiveModel, Column, Entity};
use std::collections::BTreeMap;
use turnbuckle_domain::{KeyVerifications, RingUsage, SourceId, StoreError, TenantId};

const TABLE: &str = "source_key_usage";

/// Adds a batch, one row for each key: in the order of their ids, so that writers that meet take their
/// locks in one order.
pub(super) async fn add(
    db: &impl ConnectionTrait,
    uses: &[KeyVerifications],
) -> Result<(), StoreError> {
    let mut sums: BTreeMap<Uuid, KeyVerifications> = BTreeMap::new();
    for one in uses {
        let fresh = KeyVerifications { requests: 0, ..*one };
        let sum = sums.entry(one.key.uuid()).or_insert(fresh);
        sum.requests = sum.requests.saturating_add(one.requests);
        sum.last_used_at = sum.last_used_at.max(one.last_used_at);
    }
    let mut rows = Vec::with_capacity(sums.len());
    for (key, sum) in sums {
        rows.push(ActiveModel {
            key_id: Set(key),
            tenant_id: Set(sum.tenant.uuid()),
            source_id: Set(sum.source.uuid()),
            verified: Set(count("verified", sum.requests)?),
            last_used_at_us: Set(sum.last_used_at.micros()),
        });
    }
    if rows.is_empty() {
        return Ok(());
    }
    let add = OnConflict::column(Column::KeyId)
        .value(Column::Verified, sum(TABLE, Column::Verified))
        .value(Column::LastUsedAtUs, latest(TABLE, Column::LastUsedAtUs))
        .to_owned();
    let insert = Entity::insert_many(rows).on_conflict(add).exec_without_returning(db);
    insert.await.map_err(store_error)?;
    Ok(())
}

/// What the keys of a source verified.
pub(super) async fn of(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    source: SourceId,
) -> Result<RingUsage, StoreError> {
    let rows = Entity::find()
        .filter(Column::SourceId.eq(source.uuid()))
        .filter(Column::TenantId.eq(tenant.uuid()))
        .order_by_asc(Column::KeyId);
    let rows = rows.all(db).await.map_err(store_error)?;
    let keys = rows.iter().map(source_key_usage::decode).collect::<Result<_, _>>()?;
    Ok(RingUsage { keys, answers: Vec::new() })
}

/// Forgets keys that no ring remembers.
pub(super) async fn forget(db: &impl ConnectionTrait) -> Result<(), StoreError> {
    let known = verification_key::Entity::find().select_only().column(verification_key::Column::Id);
    let gone = Entity::delete_many().filter(Column::KeyId.not_in_subquery(known.into_query()));
    gone.exec(db).await.map_err(store_error)?;
    Ok(())
}
