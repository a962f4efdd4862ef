//! Writing sources.

use super::{
    entity::source,
    request,
    ring_tables::{OfSources, RingOwner},
    rings, rules,
    table::{by_id, full_name},
    write::Write,
};
use sea_orm::DatabaseConnection;
use turnbuckle_domain::{
    Audited as _, ChangeContext, Error, Fields, KeyRing, Quotas, Revision, Source, Timestamp,
};

pub(super) async fn create(
    (db, quotas): (&DatabaseConnection, &Quotas),
    source: &Source,
    ring: &KeyRing,
    by: &ChangeContext,
) -> Result<Source, Error> {
    let mut write = Write::begin(db).await?;
    let parent = write.tenant_name(source.tenant).await?;
    let made = (source.id.uuid(), request::newest_key(ring));
    write.remember(Some(source.tenant), made, by).await?;
    let created = write.insert::<source::Entity>(&parent, source).await?;
    rules::quota::<source::Entity>(&write, &parent, created.tenant, quotas).await?;
    rings::insert::<OfSources>(&mut write, RingOwner::from(&created), ring).await?;
    write.commit(by).await?;
    Ok(created)
}

pub(super) async fn update(
    (db, quotas): (&DatabaseConnection, &Quotas),
    source: &Source,
    (expected, ring): (Revision, Option<Revision>),
    by: &ChangeContext,
) -> Result<Source, Error> {
    let mut write = Write::begin(db).await?;
    let parent = write.tenant_name(source.tenant).await?;
    write.remember(Some(source.tenant), (source.id.uuid(), None), by).await?;
    if scheme_changes(&write, source).await? {
        keys_were_seen(&write, &parent, source, ring).await?;
        rings::touch::<OfSources>(&write, source.id.uuid()).await?;
    }
    let updated = write.replace::<source::Entity>(&parent, source, expected).await?;
    rules::room(&write, &parent, updated.tenant, quotas).await?;
    write.commit(by).await?;
    Ok(updated)
}

async fn scheme_changes(write: &Write, source: &Source) -> Result<bool, Error> {
    let (tenant, id) = (source.tenant.uuid(), source.id.uuid());
    let current = by_id::<source::Entity>(&write.transaction, Some(tenant), id).await?;
    Ok(current.is_some_and(|current| !current.deleted && current.value.scheme != source.scheme))
}

/// The keys that the caller held against the new scheme are the ones that are on the ring now.
async fn keys_were_seen(
    write: &Write,
    parent: &str,
    source: &Source,
    seen: Option<Revision>,
) -> Result<(), Error> {
    let ring = rings::read::<OfSources>(&write.transaction, source.id.uuid()).await?;
    let current = ring.unwrap_or_default().revision;
    if seen == Some(current) {
        return Ok(());
    }
    let name = full_name::<source::Entity>(parent, source.slug.as_str());
    Err(Error::Stale { resource: format!("{name}/keyRing"), current: current.etag() })
}

pub(super) async fn delete(
    db: &DatabaseConnection,
    source: &Source,
    now: Timestamp,
    by: &ChangeContext,
) -> Result<Revision, Error> {
    let mut write = Write::begin(db).await?;
    let parent = write.tenant_name(source.tenant).await?;
    write.bury::<source::Entity>(&parent, source, now).await?;
    if let Some(ring) = rings::read::<OfSources>(&write.transaction, source.id.uuid()).await? {
        write.note_along(ring.fields(), Fields::new());
    }
    write.commit(by).await
}
