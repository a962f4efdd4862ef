//! Key rings: a row for the ring, a row for each key, always changed together.

use super::{
    entity::{endpoint, key_ring, signing_key},
    write::Write,
};
use crate::error::store_error;
use sea_orm::{
    ActiveValue::Set,
    ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _, QueryTrait as _,
    prelude::Uuid,
    sea_query::{CaseStatement, Expr, ExprTrait as _, SelectStatement},
};
use std::collections::HashMap;
use turnbuckle_domain::{
    Audited as _, Endpoint, EndpointId, Error, Fields, Key, KeyRing, KeyState, Revision,
    RotationPause, StoreError, Timestamp,
};

/// Why the keys of a deleted endpoint are revoked.
const ENDPOINT_DELETED: &str = "endpoint deleted";

/// Stores the ring of a new endpoint.
pub(super) async fn insert(
    write: &mut Write,
    owner: &Endpoint,
    ring: &KeyRing,
) -> Result<(), Error> {
    write.note_along(Fields::new(), ring.fields());
    let row = key_ring::ActiveModel {
        endpoint_id: Set(owner.id.uuid()),
        tenant_id: Set(owner.tenant.uuid()),
        revision: Set(write.revision.0),
        pause_reason: Set(None),
        paused_at_us: Set(None),
        resumed_at_us: Set(None),
    };
    let insert = key_ring::Entity::insert(row).exec_without_returning(&write.transaction);
    insert.await.map_err(store_error)?;
    insert_keys(write, owner, ring).await
}

/// Replaces all keys of a ring. The value is complete: a key it lacks was dropped by the domain.
pub(super) async fn replace(write: &Write, owner: &Endpoint, ring: &KeyRing) -> Result<(), Error> {
    let keys = signing_key::Entity::delete_many()
        .filter(signing_key::Column::EndpointId.eq(owner.id.uuid()));
    keys.exec(&write.transaction).await.map_err(store_error)?;
    insert_keys(write, owner, ring).await?;
    touch(write, owner.id, ring.pause.as_ref()).await
}

/// Keeps what is sealed as it is stored. The caller read the ring some time ago; since then a record
/// may have been moved to another key-encryption key, and the former may be about to go.
pub(super) fn keep_sealed(stored: &KeyRing, ring: &mut KeyRing) {
    for key in ring.keys.iter_mut().filter(|key| key.secret.is_some()) {
        let present = stored.keys.iter().find(|known| known.id == key.id);
        if let Some(secret) = present.and_then(|known| known.secret.clone()) {
            key.secret = Some(secret);
        }
    }
}

/// Destroys the material of all keys of an endpoint.
pub(super) async fn wipe(
    write: &mut Write,
    owner: EndpointId,
    now: Timestamp,
) -> Result<(), Error> {
    if let Some(ring) = read(&write.transaction, owner).await? {
        write.note_along(ring.fields(), Fields::new());
    }
    let now = now.micros();
    let retire_at = Expr::col(signing_key::Column::RetireAtUs);
    let ended = CaseStatement::new().case(retire_at.clone().lt(now), retire_at).finally(now);
    let update = signing_key::Entity::update_many()
        .col_expr(signing_key::Column::State, Expr::value(KeyState::Revoked.as_str()))
        .col_expr(signing_key::Column::Secret, Expr::value(None::<Vec<u8>>))
        .col_expr(signing_key::Column::RevokeReason, Expr::value(ENDPOINT_DELETED))
        .col_expr(signing_key::Column::Held, Expr::value(0_i16))
        .col_expr(signing_key::Column::RetireAtUs, ended.into())
        .filter(signing_key::Column::EndpointId.eq(owner.uuid()))
        .filter(signing_key::Column::State.ne(KeyState::Revoked.as_str()));
    update.exec(&write.transaction).await.map_err(store_error)?;
    touch(write, owner, None).await
}

/// Reads the ring of an endpoint.
pub(super) async fn read(
    db: &impl ConnectionTrait,
    owner: EndpointId,
) -> Result<Option<KeyRing>, StoreError> {
    let ring = key_ring::Entity::find_by_id(owner.uuid()).one(db).await.map_err(store_error)?;
    let Some(ring) = ring else { return Ok(None) };
    let keys = signing_key::Entity::find()
        .filter(signing_key::Column::EndpointId.eq(owner.uuid()))
        .order_by_asc(signing_key::Column::Position);
    let keys = keys.all(db).await.map_err(store_error)?;
    let keys = keys.into_iter().map(signing_key::decode).collect::<Result<_, _>>()?;
    let (pause, revision) = (key_ring::pause(&ring), Revision(ring.revision));
    Ok(Some(KeyRing { keys, pause, revision }))
}

/// Rings of live endpoints that changed after a revision, oldest change first.
pub(super) async fn changed_since(
    db: &impl ConnectionTrait,
    known: Revision,
) -> Result<Vec<(EndpointId, KeyRing)>, StoreError> {
    let changed = key_ring::Entity::find()
        .filter(key_ring::Column::Revision.gt(known.0))
        .filter(key_ring::Column::EndpointId.in_subquery(live_endpoints()));
    let owners = changed.clone().select_only().column(key_ring::Column::EndpointId).into_query();
    let keys = signing_key::Entity::find()
        .filter(signing_key::Column::EndpointId.in_subquery(owners))
        .order_by_asc(signing_key::Column::Position);
    let mut keys_of: HashMap<Uuid, Vec<Key>> = HashMap::new();
    for row in keys.all(db).await.map_err(store_error)? {
        keys_of.entry(row.endpoint_id).or_default().push(signing_key::decode(row)?);
    }
    let rings =
        changed.order_by_asc(key_ring::Column::Revision).order_by_asc(key_ring::Column::EndpointId);
    let rings = rings.all(db).await.map_err(store_error)?;
    let with_keys = rings.into_iter().map(|ring| {
        let keys = keys_of.remove(&ring.endpoint_id).unwrap_or_default();
        let (pause, revision) = (key_ring::pause(&ring), Revision(ring.revision));
        (EndpointId::from_uuid(ring.endpoint_id), KeyRing { keys, pause, revision })
    });
    Ok(with_keys.collect())
}

fn live_endpoints() -> SelectStatement {
    endpoint::Entity::find()
        .select_only()
        .column(endpoint::Column::Id)
        .filter(endpoint::Column::DeletedAtUs.is_null())
        .into_query()
}

async fn insert_keys(write: &Write, owner: &Endpoint, ring: &KeyRing) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(ring.keys.len());
    for (position, key) in ring.keys.iter().enumerate() {
        let place =
            signing_key::Place { tenant: owner.tenant.uuid(), endpoint: owner.id.uuid(), position };
        rows.push(signing_key::encode(key, &place)?);
    }
    if rows.is_empty() {
        return Ok(());
    }
    let insert = signing_key::Entity::insert_many(rows).exec_without_returning(&write.transaction);
    insert.await.map_err(store_error)?;
    Ok(())
}

async fn touch(
    write: &Write,
    owner: EndpointId,
    pause: Option<&RotationPause>,
) -> Result<(), Error> {
    use key_ring::Column;
    let paused_at = pause.map(|pause| pause.at.micros());
    let resumed_at = pause.and_then(|pause| pause.resumed_at).map(Timestamp::micros);
    let update = key_ring::Entity::update_many()
        .col_expr(Column::Revision, Expr::value(write.revision.0))
        .col_expr(Column::PauseReason, Expr::value(pause.map(|pause| pause.reason.clone())))
        .col_expr(Column::PausedAtUs, Expr::value(paused_at))
        .col_expr(Column::ResumedAtUs, Expr::value(resumed_at))
        .filter(key_ring::Column::EndpointId.eq(owner.uuid()));
    update.exec(&write.transaction).await.map_err(store_error)?;
    Ok(())
}
