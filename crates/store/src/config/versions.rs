//! Versions of event types: found below their type, judged before they are made, gone with it.

use super::{
    entity::{event_type, event_type_version},
    table::{Identity, Table, full_name, live_by_id, of_tenant},
    write::Write,
};
use crate::error::store_error;
use event_type_version::{Column, Entity};
use sea_orm::{
    ColumnTrait as _, ConnectionTrait, DbBackend, PaginatorTrait as _, QueryFilter as _,
    QueryOrder as _, QuerySelect as _, Select, prelude::Uuid, sea_query::Expr,
};
use turnbuckle_domain::{
    Compatibility, Error, EventType, EventTypeId, EventTypeVersion, EventTypeVersionId, Fields,
    Precondition, Revision, TenantId, Timestamp, VersionName, VersionsSeen, version_limits,
};

fn live(tenant: TenantId, event_type: EventTypeId) -> Select<Entity> {
    of_tenant::<Entity>(Some(tenant.uuid()))
        .filter(Column::EventTypeId.eq(event_type.uuid()))
        .filter(Column::DeletedAtUs.is_null())
}

/// The live version of this name.
pub(super) async fn find(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    event_type: EventTypeId,
    version: &VersionName,
) -> Result<Option<EventTypeVersion>, Error> {
    let named = live(tenant, event_type).filter(Column::Version.eq(version.as_str()));
    one(db, named).await
}

/// The live version that was made last.
pub(super) async fn latest(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    event_type: EventTypeId,
) -> Result<Option<EventTypeVersion>, Error> {
    one(db, live(tenant, event_type).order_by_desc(Column::Revision).limit(1)).await
}

async fn one(
    db: &impl ConnectionTrait,
    rows: Select<Entity>,
) -> Result<Option<EventTypeVersion>, Error> {
    let row = rows.one(db).await.map_err(store_error)?;
    Ok(row.map(Entity::decode).transpose()?.map(|row| row.value))
}

/// Live versions by name, after the one given.
pub(super) async fn list(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    event_type: EventTypeId,
    after: Option<&str>,
    limit: u16,
) -> Result<Vec<EventTypeVersion>, Error> {
    let mut page = live(tenant, event_type);
    if let Some(after) = after {
        page = page.filter(Column::Version.gt(after));
    }
    let page = page.order_by_asc(Column::Version).limit(u64::from(limit));
    let rows = page.all(db).await.map_err(store_error)?;
    rows.into_iter().map(|row| Ok(Entity::decode(row)?.value)).collect()
}

async fn latest_id(
    write: &Write,
    version: &EventTypeVersion,
) -> Result<Option<EventTypeVersionId>, Error> {
    let newest = live(version.tenant, version.event_type).order_by_desc(Column::Revision).limit(1);
    let id = newest.select_only().column(Column::Id).into_tuple::<Uuid>();
    let id = id.one(&write.transaction).await.map_err(store_error)?;
    Ok(id.map(EventTypeVersionId::from_uuid))
}

/// The event type that a version belongs to, and its full name.
pub(super) async fn owner(
    write: &Write,
    version: &EventTypeVersion,
) -> Result<(EventType, String), Error> {
    let parent = write.tenant_name(version.tenant).await?;
    let id = version.event_type.to_string();
    let wanted = Identity {
        id: version.event_type.uuid(),
        tenant: Some(version.tenant.uuid()),
        name: &id,
        revision: Revision::ZERO,
    };
    let owner = live_by_id::<event_type::Entity>(&write.transaction, &parent, &wanted).await?;
    let name = full_name::<event_type::Entity>(&parent, owner.type_name.as_str());
    Ok((owner, name))
}

/// What the caller has judged is still so, and there is room for one more.
pub(super) async fn may_follow(
    write: &Write,
    (owner, name): &(EventType, String),
    version: &EventTypeVersion,
    seen: VersionsSeen,
) -> Result<(), Error> {
    let latest = latest_id(write, version).await?;
    if seen != (VersionsSeen { event_type: owner.meta.revision, latest }) {
        let current = owner.meta.revision.etag();
        return Err(Error::Stale { resource: name.clone(), current });
    }
    let count = live(version.tenant, version.event_type).count(&write.transaction);
    let count = usize::try_from(count.await.map_err(store_error)?).unwrap_or(usize::MAX);
    if count < version_limits::VERSIONS {
        return schemas_have_room(write, version).await;
    }
    Err(Error::Precondition {
        kind: Precondition::TooManyVersions,
        subject: name.clone(),
        message: format!("{name} has {count} versions and can have no more: delete old ones first"),
    })
}

/// The tenant's schemas together are not larger than every node can hold. Reads the lengths of all of
/// them, which are kept beside the texts: some milliseconds for thousands, and versions are made rarely.
async fn schemas_have_room(write: &Write, version: &EventTypeVersion) -> Result<(), Error> {
    let sum = match write.transaction.get_database_backend() {
        DbBackend::Postgres => "coalesce(sum(octet_length(schema)), 0)",
        _ => "coalesce(sum(length(cast(schema as blob))), 0)",
    };
    let all =
        of_tenant::<Entity>(Some(version.tenant.uuid())).filter(Column::DeletedAtUs.is_null());
    let bytes = all.select_only().column_as(Expr::cust(sum), "bytes").into_tuple::<i64>();
    let bytes = bytes.one(&write.transaction).await.map_err(store_error)?.unwrap_or_default();
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(version.schema.len());
    let most = version_limits::TENANT_SCHEMA_BYTES;
    if bytes <= most {
        return Ok(());
    }
    let subject = write.tenant_name(version.tenant).await?;
    Err(Error::Precondition {
        kind: Precondition::TooManyVersions,
        message: format!(
            "the schemas of {subject} would have {bytes} bytes together and can have {most}: delete \
             versions that nobody publishes any more first"
        ),
        subject,
    })
}

/// The version is not what the next one is compared with.
pub(super) async fn may_go(
    write: &Write,
    (owner, name): &(EventType, String),
    version: &EventTypeVersion,
) -> Result<(), Error> {
    let rule = owner.compatibility;
    if rule == Compatibility::None || latest_id(write, version).await? != Some(version.id) {
        return Ok(());
    }
    let subject = full_name::<Entity>(name, version.version.as_str());
    Err(Error::Precondition {
        kind: Precondition::LatestVersion,
        message: format!(
            "{subject} is the latest version, which the next one must be compatible with ({}): \
             create a newer one first, or set the event type's compatibility to none",
            rule.as_str()
        ),
        subject,
    })
}

/// Makes tombstones of all versions of an event type. The record names them below it; their schemas
/// are not read.
pub(super) async fn bury_of_type(
    write: &mut Write,
    owner: &EventType,
    now: Timestamp,
) -> Result<(), Error> {
    let rows = live(owner.tenant, owner.id).select_only().columns([Column::Id, Column::Version]);
    let rows = rows.into_tuple::<(Uuid, String)>().all(&write.transaction);
    let rows = rows.await.map_err(store_error)?;
    let along: Fields = rows
        .into_iter()
        .map(|(id, version)| {
            let field = format!("{}.{version}", Entity::COLLECTION);
            (field, EventTypeVersionId::from_uuid(id).to_string())
        })
        .collect();
    write.note_along(along, Fields::new());
    write.bury_rows::<Entity>(Column::EventTypeId, owner.id.uuid(), now).await
}
