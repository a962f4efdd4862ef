//! Writing sources.

use super::{
    entity::source,
    request,
    ring_tables::{OfSources, RingOwner},
    rings, rules,
    write::Write,
};
use sea_orm::DatabaseConnection;
use turnbuckle_domain::{ChangeContext, Error, KeyRing, Quotas, Revision, Source, Timestamp};

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
    expected: Revision,
    by: &ChangeContext,
) -> Result<Source, Error> {
    let mut write = Write::begin(db).await?;
    let parent = write.tenant_name(source.tenant).await?;
    write.remember(Some(source.tenant), (source.id.uuid(), None), by).await?;
    let updated = write.replace::<source::Entity>(&parent, source, expected).await?;
    rules::room(&write, &parent, updated.tenant, quotas).await?;
    write.commit(by).await?;
    Ok(updated)
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
    rings::wipe::<OfSources>(&mut write, source.id.uuid(), now).await?;
    write.commit(by).await
}
