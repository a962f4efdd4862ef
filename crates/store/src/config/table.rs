//! What the tables of named, revisioned, soft-deleted resources have in common.

use super::{
    aside::{Aside, Place},
    cell::{self, Malformed},
};
use crate::error::store_error;
use sea_orm::{
    ActiveModelTrait, ColumnTrait as _, ConnectionTrait, EntityTrait, IntoActiveModel,
    ModelTrait as _, QueryFilter as _, QueryOrder as _, QuerySelect as _, Select, Value,
    prelude::Uuid,
};
use turnbuckle_domain::{
    Audited, Deletable, Error, Meta, ResourceId, ResourceKind, Revision, StoreError, TenantId,
};

/// How a resource is found.
pub(super) struct Identity<'a> {
    pub(super) id: Uuid,
    /// None for tenants themselves.
    pub(super) tenant: Option<Uuid>,
    /// Last part of its name.
    pub(super) name: &'a str,
    pub(super) revision: Revision,
}

/// A table whose rows are resources with a name.
pub(super) trait Table:
    EntityTrait<
        Model: Send + Sync + IntoActiveModel<Self::ActiveModel>,
        ActiveModel: ActiveModelTrait<Entity = Self> + Send,
        Column: Send + Sync,
    >
{
    type Resource: Audited + Clone + Send + Sync;

    /// Second to last part of a resource's name.
    const COLLECTION: &'static str;
    /// What its rows are called where configuration is followed.
    const KIND: ResourceKind;
    const ID: Self::Column;
    /// None for tenants themselves.
    const TENANT: Option<Self::Column>;
    const NAME: Self::Column;
    const CREATED: Self::Column;
    const UPDATED: Self::Column;
    const DELETED: Self::Column;
    const REVISION: Self::Column;

    fn identity(resource: &Self::Resource) -> Identity<'_>;
    fn meta(resource: &mut Self::Resource) -> &mut Meta;
    /// A live row.
    fn encode(resource: &Self::Resource) -> Result<Self::ActiveModel, Malformed>;
    fn decode(row: Self::Model) -> Result<Deletable<Self::Resource>, Malformed>;
}

/// The full name of a resource; `parent` is the name of its tenant, or empty for tenants.
pub(super) fn full_name<E: Table>(parent: &str, name: &str) -> String {
    let slash = if parent.is_empty() { "" } else { "/" };
    format!("{parent}{slash}{}/{name}", E::COLLECTION)
}

/// Rows of one tenant; all rows for tenants themselves. The one place that ties a query to a tenant
/// (I12).
pub(super) fn of_tenant<E: Table>(tenant: Option<Uuid>) -> Select<E> {
    match (E::TENANT, tenant) {
        (Some(column), Some(tenant)) => E::find().filter(column.eq(tenant)),
        _ => E::find(),
    }
}

/// The live resource with this name.
pub(super) async fn find<E: Table>(
    db: &impl ConnectionTrait,
    tenant: Option<Uuid>,
    name: &str,
) -> Result<Option<E::Resource>, Error> {
    let live = of_tenant::<E>(tenant).filter(E::DELETED.is_null());
    let row = live.filter(E::NAME.eq(name)).one(db).await.map_err(store_error)?;
    Ok(row.map(E::decode).transpose()?.map(|row| row.value))
}

/// Live resources by name, after the one given.
pub(super) async fn list<E: Table>(
    db: &impl ConnectionTrait,
    tenant: Option<Uuid>,
    after: Option<&str>,
    limit: u16,
) -> Result<Vec<E::Resource>, Error> {
    let mut live = of_tenant::<E>(tenant).filter(E::DELETED.is_null());
    if let Some(after) = after {
        live = live.filter(E::NAME.gt(after));
    }
    let page = live.order_by_asc(E::NAME).limit(u64::from(limit));
    let rows = page.all(db).await.map_err(store_error)?;
    rows.into_iter().map(|row| Ok(E::decode(row)?.value)).collect()
}

/// Names of the live resources among these ids, by the primary key.
pub(super) async fn names<E: Table>(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    ids: impl Iterator<Item = Uuid>,
) -> Result<Vec<(Uuid, ResourceId)>, Error> {
    let live = of_tenant::<E>(Some(tenant.uuid())).filter(E::DELETED.is_null());
    let columns = live.filter(E::ID.is_in(ids)).select_only().column(E::ID).column(E::NAME);
    let rows: Vec<(Uuid, String)> = columns.into_tuple().all(db).await.map_err(store_error)?;
    rows.into_iter().map(|(id, name)| Ok((id, cell::resource_id(name)?))).collect()
}

/// The row with this id, also a deleted one.
pub(super) async fn by_id<E: Table>(
    db: &impl ConnectionTrait,
    tenant: Option<Uuid>,
    id: Uuid,
) -> Result<Option<Deletable<E::Resource>>, Error> {
    let rows = of_tenant::<E>(tenant).filter(E::ID.eq(id));
    let row = rows.one(db).await.map_err(store_error)?;
    Ok(row.map(E::decode).transpose()?)
}

/// The live resource with this id. Else [`Error::NotFound`] with its full name, which a tombstone
/// still knows and `name` stands in for where nothing is left.
pub(super) async fn live_by_id<E: Table>(
    db: &impl ConnectionTrait,
    parent: &str,
    wanted: &Identity<'_>,
) -> Result<E::Resource, Error> {
    match by_id::<E>(db, wanted.tenant, wanted.id).await? {
        Some(Deletable { value, deleted: false }) => Ok(value),
        Some(Deletable { value, deleted: true }) => {
            Err(Error::NotFound { resource: full_name::<E>(parent, E::identity(&value).name) })
        }
        None => Err(Error::NotFound { resource: full_name::<E>(parent, wanted.name) }),
    }
}

/// Rows changed after a revision, oldest change first. Who knows nothing needs no tombstones. Rows that
/// cannot be read are set aside.
pub(super) async fn changed_since<E: Table>(
    db: &impl ConnectionTrait,
    known: Revision,
    aside: &mut Aside,
) -> Result<Vec<Deletable<E::Resource>>, StoreError> {
    let mut rows = E::find().filter(E::REVISION.gt(known.0));
    if known == Revision::ZERO {
        rows = rows.filter(E::DELETED.is_null());
    }
    let rows = rows.order_by_asc(E::REVISION).order_by_asc(E::ID).all(db).await;
    let rows = rows.map_err(store_error)?;
    let mut readable = Vec::with_capacity(rows.len());
    for row in rows {
        let place = place::<E>(&row);
        match E::decode(row) {
            Ok(row) => readable.push(row),
            Err(malformed) => aside.put(E::KIND, place, &malformed),
        }
    }
    Ok(readable)
}

/// What a row is, also one that cannot be read otherwise.
fn place<E: Table>(row: &E::Model) -> Place {
    let text = |value: Value| match value {
        Value::String(text) => text.unwrap_or_default(),
        _ => String::new(),
    };
    let number = |value: Value| match value {
        Value::BigInt(number) => number,
        _ => None,
    };
    let id = match row.get(E::ID) {
        Value::Uuid(id) => id.unwrap_or_default(),
        _ => Uuid::nil(),
    };
    Place {
        id,
        name: text(row.get(E::NAME)),
        revision: number(row.get(E::REVISION)).unwrap_or_default(),
        deleted: number(row.get(E::DELETED)).is_some(),
    }
}
