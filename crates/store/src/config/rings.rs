//! Key rings: a row for the ring, a row for each key, always changed together. The same for every kind
//! of owner; [`RingTables`] says where.

use super::{
    aside::{Aside, Place},
    cell::Malformed,
    entity::{endpoint, signing_key, source},
    ring_tables::{OfEndpoints, OfSources, RingOwner, RingTables},
    rules,
    table::{Identity, Table, full_name, live_by_id},
    write::Write,
};
use crate::error::store_error;
use sea_orm::{
    ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _, QueryTrait as _,
    prelude::Uuid,
    sea_query::{CaseStatement, Expr, ExprTrait as _, SelectStatement},
};
use std::collections::HashMap;
use turnbuckle_domain::{
    Audited as _, Error, Fields, Key, KeyId, KeyOwner, KeyRing, KeyState, Revision, RotationPause,
    StoreError, TenantId, Timestamp,
};

/// Last part of the name of a key ring.
const KEY_RING: &str = "keyRing";

fn ring_name<T: RingTables>(parent: &str, owner: &str) -> String {
    format!("{}/{KEY_RING}", full_name::<T::Owner>(parent, owner))
}

/// Stores the ring of a new owner.
pub(super) async fn insert<T: RingTables>(
    write: &mut Write,
    owner: RingOwner,
    ring: &KeyRing,
) -> Result<(), Error> {
    write.note_along(Fields::new(), ring.fields());
    let row = T::encode_ring(owner, write.revision);
    let insert = T::Ring::insert(row).exec_without_returning(&write.transaction);
    insert.await.map_err(store_error)?;
    insert_keys::<T>(write, owner, ring).await
}

/// Replaces a ring that still has the revision `expected`.
pub(super) async fn update(
    write: &mut Write,
    parent: &str,
    (tenant, owner): (TenantId, KeyOwner),
    ring: &mut KeyRing,
    expected: Revision,
) -> Result<(), Error> {
    match owner {
        KeyOwner::Endpoint(id) => {
            let endpoint = rules::owner(write, parent, tenant, id).await?;
            let name = ring_name::<OfEndpoints>(parent, endpoint.slug.as_str());
            let before = expect::<OfEndpoints>(write, &name, id.uuid(), expected).await?;
            rules::keys_fit(ring, &endpoint, &name)?;
            keep_sealed(&before, ring);
            write.note((tenant, name), before.fields(), ring.fields());
            replace::<OfEndpoints>(write, (&endpoint).into(), ring).await
        }
        KeyOwner::Source(id) => {
            let source = rules::source(write, parent, tenant, id).await?;
            let name = ring_name::<OfSources>(parent, source.slug.as_str());
            let before = expect::<OfSources>(write, &name, id.uuid(), expected).await?;
            keep_sealed(&before, ring);
            write.note((tenant, name), before.fields(), ring.fields());
            replace::<OfSources>(write, (&source).into(), ring).await
        }
    }
}

/// The ring as it is, when that is what the caller has seen.
async fn expect<T: RingTables>(
    write: &Write,
    name: &str,
    owner: Uuid,
    expected: Revision,
) -> Result<KeyRing, Error> {
    let resource = name.to_owned();
    match read::<T>(&write.transaction, owner).await? {
        None => Err(Error::NotFound { resource }),
        Some(KeyRing { revision, .. }) if revision != expected => {
            Err(Error::Stale { resource, current: revision.etag() })
        }
        Some(before) => Ok(before),
    }
}

/// Replaces all keys of a ring. The value is complete: a key it lacks was dropped by the domain.
async fn replace<T: RingTables>(
    write: &Write,
    owner: RingOwner,
    ring: &KeyRing,
) -> Result<(), Error> {
    let keys = T::Key::delete_many().filter(T::KEY_OWNER.eq(owner.id));
    keys.exec(&write.transaction).await.map_err(store_error)?;
    insert_keys::<T>(write, owner, ring).await?;
    set_pause::<T>(write, owner.id, ring.pause.as_ref()).await?;
    touch::<T>(write, owner.id).await
}

/// Keeps what is sealed as it is stored. The caller read the ring some time ago; since then a record
/// may have been moved to another key-encryption key, and the former may be about to go.
fn keep_sealed(stored: &KeyRing, ring: &mut KeyRing) {
    for key in ring.keys.iter_mut().filter(|key| key.secret.is_some()) {
        let present = stored.keys.iter().find(|known| known.id == key.id);
        if let Some(secret) = present.and_then(|known| known.secret.clone()) {
            key.secret = Some(secret);
        }
    }
}

/// What is known of a key of a live owner's ring; the name is the key's.
pub(super) async fn key_of(
    write: &mut Write,
    parent: &str,
    (tenant, owner): (TenantId, KeyOwner),
    key: KeyId,
) -> Result<(KeyRing, String), Error> {
    let (name, ring) = match owner {
        KeyOwner::Endpoint(id) => {
            let endpoint = rules::owner(write, parent, tenant, id).await?;
            let name = full_name::<endpoint::Entity>(parent, endpoint.slug.as_str());
            (name, read::<OfEndpoints>(&write.transaction, id.uuid()).await?)
        }
        KeyOwner::Source(id) => {
            let source = rules::source(write, parent, tenant, id).await?;
            let name = full_name::<source::Entity>(parent, source.slug.as_str());
            (name, read::<OfSources>(&write.transaction, id.uuid()).await?)
        }
    };
    Ok((ring.unwrap_or_default(), format!("{name}/keys/{key}")))
}

/// Destroys the material of all keys of an owner.
pub(super) async fn wipe<T: RingTables>(
    write: &mut Write,
    owner: Uuid,
    now: Timestamp,
) -> Result<(), Error> {
    match read::<T>(&write.transaction, owner).await {
        Ok(Some(ring)) => write.note_along(ring.fields(), Fields::new()),
        // A key that cannot be read is destroyed all the same.
        Ok(None) | Err(StoreError::Internal(_)) => {}
        Err(error @ StoreError::Unavailable(_)) => return Err(error.into()),
    }
    let now = now.micros();
    let retire_at = Expr::col(T::KEY_RETIRE_AT);
    let ended = CaseStatement::new().case(retire_at.clone().lt(now), retire_at).finally(now);
    let reason = Expr::col(T::KEY_REVOKE_REASON).if_null(T::OWNER_DELETED);
    let update = T::Key::update_many()
        .col_expr(T::KEY_STATE, Expr::value(KeyState::Revoked.as_str()))
        .col_expr(T::KEY_SECRET, Expr::value(None::<Vec<u8>>))
        .col_expr(T::KEY_REVOKE_REASON, reason)
        .col_expr(T::KEY_RETIRE_AT, ended.into())
        .filter(T::KEY_OWNER.eq(owner));
    T::unhold(update).exec(&write.transaction).await.map_err(store_error)?;
    set_pause::<T>(write, owner, None).await?;
    touch::<T>(write, owner).await
}

/// Reads the ring of a live owner.
pub(super) async fn read_live(
    db: &impl ConnectionTrait,
    parent: &str,
    tenant: TenantId,
    owner: KeyOwner,
) -> Result<KeyRing, Error> {
    match owner {
        KeyOwner::Endpoint(id) => {
            read_named::<OfEndpoints>(db, parent, tenant, (id.uuid(), &id.to_string())).await
        }
        KeyOwner::Source(id) => {
            read_named::<OfSources>(db, parent, tenant, (id.uuid(), &id.to_string())).await
        }
    }
}

async fn read_named<T: RingTables>(
    db: &impl ConnectionTrait,
    parent: &str,
    tenant: TenantId,
    (id, name): (Uuid, &str),
) -> Result<KeyRing, Error> {
    let tenant = Some(tenant.uuid());
    let wanted = Identity { id, tenant, name, revision: Revision::ZERO };
    let owner = live_by_id::<T::Owner>(db, parent, &wanted).await?;
    let ring = read::<T>(db, id).await?;
    ring.ok_or_else(|| Error::NotFound {
        resource: ring_name::<T>(parent, T::Owner::identity(&owner).name),
    })
}

/// Reads the ring of an owner.
pub(super) async fn read<T: RingTables>(
    db: &impl ConnectionTrait,
    owner: Uuid,
) -> Result<Option<KeyRing>, StoreError> {
    let ring = T::Ring::find().filter(T::RING_OWNER.eq(owner)).one(db).await;
    let Some(ring) = ring.map_err(store_error)? else { return Ok(None) };
    let keys = T::Key::find().filter(T::KEY_OWNER.eq(owner)).order_by_asc(T::KEY_POSITION);
    let keys = keys.all(db).await.map_err(store_error)?.into_iter();
    let keys = keys.map(|row| Ok(T::decode_key(row)?.1)).collect::<Result<_, StoreError>>()?;
    Ok(Some(T::decode_ring(&ring, keys)))
}

/// Rings of live owners that changed after a revision, oldest change first. One with a key that cannot
/// be read is set aside as a whole: with fewer keys it would be another ring.
pub(super) async fn changed_since<T: RingTables>(
    db: &impl ConnectionTrait,
    known: Revision,
    aside: &mut Aside,
) -> Result<Vec<(T::Id, KeyRing)>, StoreError> {
    let changed = T::Ring::find()
        .filter(T::RING_REVISION.gt(known.0))
        .filter(T::RING_OWNER.in_subquery(live_owners::<T>()));
    let owners = changed.clone().select_only().column(T::RING_OWNER).into_query();
    let keys =
        T::Key::find().filter(T::KEY_OWNER.in_subquery(owners)).order_by_asc(T::KEY_POSITION);
    let mut keys_of: HashMap<Uuid, Result<Vec<Key>, Malformed>> = HashMap::new();
    for row in keys.all(db).await.map_err(store_error)? {
        let known = keys_of.entry(T::key_owner(&row)).or_insert_with(|| Ok(Vec::new()));
        match (T::decode_key(row), &mut *known) {
            (Ok((_, key)), Ok(keys)) => keys.push(key),
            (Err(malformed), _) => *known = Err(malformed),
            (Ok(_), Err(_)) => {}
        }
    }
    let rings = changed.order_by_asc(T::RING_REVISION).order_by_asc(T::RING_OWNER);
    let rings = rings.all(db).await.map_err(store_error)?;
    let mut readable = Vec::with_capacity(rings.len());
    for row in &rings {
        let owner = T::owner(row);
        match keys_of.remove(&owner).unwrap_or(Ok(Vec::new())) {
            Ok(keys) => readable.push((T::id(owner), T::decode_ring(row, keys))),
            Err(malformed) => {
                let ring = T::decode_ring(row, Vec::new());
                let name = owner_name::<T>(db, owner).await?;
                let revision = ring.revision.0;
                aside.put(T::KIND, Place { id: owner, name, revision, deleted: false }, &malformed);
            }
        }
    }
    Ok(readable)
}

/// The last part of an owner's name, whatever else its row holds.
async fn owner_name<T: RingTables>(
    db: &impl ConnectionTrait,
    owner: Uuid,
) -> Result<String, StoreError> {
    let named = T::Owner::find().filter(T::Owner::ID.eq(owner)).select_only();
    let name: Option<String> =
        named.column(T::Owner::NAME).into_tuple().one(db).await.map_err(store_error)?;
    Ok(name.unwrap_or_default())
}

fn live_owners<T: RingTables>() -> SelectStatement {
    T::Owner::find()
        .select_only()
        .column(T::Owner::ID)
        .filter(T::Owner::DELETED.is_null())
        .into_query()
}

async fn insert_keys<T: RingTables>(
    write: &Write,
    owner: RingOwner,
    ring: &KeyRing,
) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(ring.keys.len());
    for (position, key) in ring.keys.iter().enumerate() {
        let place = signing_key::Place { tenant: owner.tenant, owner: owner.id, position };
        rows.push(T::encode_key(key, &place)?);
    }
    if rows.is_empty() {
        return Ok(());
    }
    let insert = T::Key::insert_many(rows).exec_without_returning(&write.transaction);
    insert.await.map_err(store_error)?;
    Ok(())
}

/// Stores whether the rotation is paused, where it can be.
async fn set_pause<T: RingTables>(
    write: &Write,
    owner: Uuid,
    pause: Option<&RotationPause>,
) -> Result<(), Error> {
    if let Some(update) = T::set_pause(pause) {
        let update = update.filter(T::RING_OWNER.eq(owner));
        update.exec(&write.transaction).await.map_err(store_error)?;
    }
    Ok(())
}

/// Makes the ring a changed one, so that followers read it again.
pub(super) async fn touch<T: RingTables>(write: &Write, owner: Uuid) -> Result<(), Error> {
    let update = T::Ring::update_many()
        .col_expr(T::RING_REVISION, Expr::value(write.revision.0))
        .filter(T::RING_OWNER.eq(owner));
    update.exec(&write.transaction).await.map_err(store_error)?;
    Ok(())
}
