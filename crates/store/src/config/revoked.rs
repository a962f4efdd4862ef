//! Material of revoked keys of sources, which is kept for the alarm only and then destroyed.

use super::{
    ConfigDb,
    entity::{source, verification_key},
    ring_tables::OfSources,
    rings,
    table::full_name,
    write::Write,
};
use crate::error::store_error;
use sea_orm::{
    ColumnTrait as _, Condition, ConnectionTrait, EntityTrait as _, QueryFilter as _,
    QueryOrder as _, QuerySelect as _, prelude::Uuid, sea_query::Expr,
};
use turnbuckle_domain::{ChangeContext, Error, Fields, KeyState, TenantId, Timestamp};
use verification_key::{Column, Entity};

fn due(revoked_before: Timestamp) -> Condition {
    Condition::all()
        .add(Column::State.eq(KeyState::Revoked.as_str()))
        .add(Column::Secret.is_not_null())
        .add(Column::RetireAtUs.lt(revoked_before.micros()))
}

/// The source whose key was revoked first, and its tenant.
async fn first(
    db: &impl ConnectionTrait,
    revoked_before: Timestamp,
) -> Result<Option<(Uuid, Uuid)>, Error> {
    let first = Entity::find()
        .filter(due(revoked_before))
        .order_by_asc(Column::RetireAtUs)
        .select_only()
        .column(Column::SourceId)
        .column(Column::TenantId)
        .limit(1)
        .into_tuple();
    Ok(first.one(db).await.map_err(store_error)?)
}

/// Destroys what is due on one ring, also on that of a deleted source, and says which ring it was. Does
/// not read what it destroys: a key that cannot be read goes like any other.
pub(super) async fn destroy(
    config: &ConfigDb,
    revoked_before: Timestamp,
    by: &ChangeContext,
) -> Result<Option<String>, Error> {
    // Looks without taking a turn among the writers: mostly nothing is due.
    if first(&config.db, revoked_before).await?.is_none() {
        return Ok(None);
    }
    let mut write = Write::begin(&config.db).await?;
    let Some((owner, tenant)) = first(&write.transaction, revoked_before).await? else {
        return Ok(None);
    };
    let of_ring = due(revoked_before).add(Column::SourceId.eq(owner));
    let keys = Entity::find().filter(of_ring.clone()).order_by_asc(Column::Position);
    let keys = keys.select_only().column(Column::Fingerprint).into_tuple::<String>();
    let fingerprints = keys.all(&write.transaction).await.map_err(store_error)?;
    let update = Entity::update_many().col_expr(Column::Secret, Expr::value(None::<Vec<u8>>));
    update.filter(of_ring).exec(&write.transaction).await.map_err(store_error)?;
    // Nodes hold it too, and read the ring anew.
    rings::touch::<OfSources>(&write, owner).await?;
    let slug = source::Entity::find_by_id(owner).select_only().column(source::Column::Slug);
    let slug: Option<String> =
        slug.into_tuple().one(&write.transaction).await.map_err(store_error)?;
    let slug = slug.unwrap_or_else(|| owner.to_string());
    let parent = write.parent_of(tenant).await?;
    let name = format!("{}/keyRing", full_name::<source::Entity>(&parent, &slug));
    let what = Fields::from([("material".to_owned(), fingerprints.join(", "))]);
    write.note((TenantId::from_uuid(tenant), name.clone()), what, Fields::new());
    write.commit(by).await?;
    Ok(Some(name))
}
