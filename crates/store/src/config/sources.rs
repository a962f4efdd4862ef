//! Writing sources.

use super::{
    entity::source,
    ring_tables::{OfSources, RingOwner},
    rings,
    write::Write,
};
use sea_orm::DatabaseConnection;
use turnbuckle_domain::{ChangeContext, Error, KeyRing, Revision, Source, Timestamp};

pub(super) async fn create(
    db: &DatabaseConnection,
    source: &Source,
    ring: &KeyRing,
    by: &ChangeContext,
) -> Result<Source, Error> {
    let mut write = Write::begin(db).await?;
    let parent = write.tenant_name(source.tenant).await?;
    let created = write.insert::<source::Entity>(&parent, source).await?;
    rings::insert::<OfSources>(&mut write, RingOwner::from(&created), ring).await?;
    write.commit(by).await?;
    Ok(created)
}

pub(super) async fn update(
    db: &DatabaseConnection,
    source: &Source,
    expected: Revision,
    by: &ChangeContext,
) -> Result<Source, Error> {
    let mut write = Write::begin(db).await?;
    let parent = write.tenant_name(source.tenant).await?;
    let updated = write.replace::<source::Entity>(&parent, source, expected).await?;
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
