//! Health of endpoints, and notices. Health is read, added to and written back in one transaction, under
//! the locks of its rows, so that workers that hand a shard over lose nothing of each other's.

use super::{
    ConfigDb,
    entity::{endpoint, endpoint_health, notice},
    table::{by_id, full_name},
    write::Write,
};
use crate::{error::store_error, immediate::begin_write};
use async_trait::async_trait;
use sea_orm::{
    ColumnTrait as _, ConnectionTrait, EntityTrait as _, QueryFilter as _, QueryOrder as _,
    QuerySelect as _, QueryTrait as _, prelude::Uuid, sea_query::OnConflict,
};
use std::collections::HashMap;
use turnbuckle_domain::{
    ChangeContext, DisableCause, Endpoint, EndpointHealth, EndpointId, EndpointState, Error,
    HealthChange, HealthStore, Notice, OperationKind, OperationalEvent, Revision, StoreError,
    TenantId, Timestamp,
};

/// Everything but the key is replaced.
fn replacing() -> OnConflict {
    use endpoint_health::Column;
    OnConflict::column(Column::EndpointId)
        .update_columns([
            Column::CleanSinceUs,
            Column::LastSuccessUs,
            Column::LastFailureUs,
            Column::FailingSinceUs,
            Column::FailingUntilUs,
            Column::Failures,
            Column::FailureClass,
        ])
        .to_owned()
}

async fn put(
    db: &impl ConnectionTrait,
    rows: impl IntoIterator<Item = endpoint_health::ActiveModel>,
) -> Result<(), StoreError> {
    let insert = endpoint_health::Entity::insert_many(rows).on_conflict(replacing());
    insert.exec_without_returning(db).await.map_err(store_error)?;
    Ok(())
}

/// The rows of these endpoints, locked until the transaction ends. Those that are missing are made first,
/// since a row that is not there cannot be locked.
async fn locked(
    db: &impl ConnectionTrait,
    mut fresh: Vec<EndpointHealth>,
) -> Result<HashMap<Uuid, EndpointHealth>, StoreError> {
    use endpoint_health::{Column, Entity};
    // Writers that meet take their locks in one order.
    fresh.sort_by_key(|health| health.endpoint.uuid());
    let ids: Vec<Uuid> = fresh.iter().map(|health| health.endpoint.uuid()).collect();
    let keep = OnConflict::column(Column::EndpointId).do_nothing().to_owned();
    let insert = Entity::insert_many(fresh.iter().map(endpoint_health::encode)).on_conflict(keep);
    insert.exec_without_returning(db).await.map_err(store_error)?;
    let rows =
        Entity::find().filter(Column::EndpointId.is_in(ids)).order_by_asc(Column::EndpointId);
    let rows = rows.lock_exclusive().all(db).await.map_err(store_error)?;
    let read = |row| endpoint_health::decode(row).map(|health| (health.endpoint.uuid(), health));
    Ok(rows.into_iter().map(read).collect::<Result<_, _>>()?)
}

async fn locked_one(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    endpoint: EndpointId,
) -> Result<EndpointHealth, StoreError> {
    let fresh = EndpointHealth::new(tenant, endpoint);
    let mut rows = locked(db, vec![fresh.clone()]).await?;
    Ok(rows.remove(&endpoint.uuid()).unwrap_or(fresh))
}

/// An endpoint that is enabled begins with a clean clock, in the transaction that enables it.
pub(super) async fn cleaned(
    write: &Write,
    before: &Endpoint,
    after: &Endpoint,
    at: Timestamp,
) -> Result<(), StoreError> {
    if before.is_active() || !after.is_active() {
        return Ok(());
    }
    let mut health = locked_one(&write.transaction, after.tenant, after.id).await?;
    health.clean(at);
    put(&write.transaction, [endpoint_health::encode(&health)]).await
}

/// Forgets the health of endpoints that are purged.
pub(crate) async fn forget(db: &impl ConnectionTrait) -> Result<(), StoreError> {
    let known = endpoint::Entity::find().select_only().column(endpoint::Column::Id);
    let gone = endpoint_health::Entity::delete_many()
        .filter(endpoint_health::Column::EndpointId.not_in_subquery(known.into_query()));
    gone.exec(db).await.map_err(store_error)?;
    Ok(())
}

/// What a tenant is told. It names the endpoint; nothing in it comes from the receiver.
fn notice(endpoint: &Endpoint, cause: DisableCause, reason: &str, by: &ChangeContext) -> Notice {
    let data = serde_json::json!({
        "endpoint": endpoint.slug.as_str(),
        "cause": cause.as_str(),
        "reason": reason,
    });
    Notice {
        id: by.id.uuid(),
        at: by.at,
        event: OperationalEvent {
            tenant: endpoint.tenant,
            kind: OperationKind::EndpointDisabled,
            subject: format!("endpoints/{}", endpoint.slug),
            data,
        },
    }
}

#[async_trait]
impl HealthStore for ConfigDb {
    async fn add_health(
        &self,
        changes: &[HealthChange],
    ) -> Result<Vec<EndpointHealth>, StoreError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let transaction = begin_write(&self.db).await.map_err(store_error)?;
        let fresh = |change: &HealthChange| EndpointHealth::new(change.tenant, change.endpoint);
        let mut rows = locked(&transaction, changes.iter().map(fresh).collect()).await?;
        for change in changes {
            if let Some(health) = rows.get_mut(&change.endpoint.uuid()) {
                health.add(change);
            }
        }
        put(&transaction, rows.values().map(endpoint_health::encode)).await?;
        transaction.commit().await.map_err(store_error)?;
        Ok(rows.into_values().collect())
    }

    async fn health(
        &self,
        tenant: TenantId,
        endpoints: &[EndpointId],
    ) -> Result<Vec<EndpointHealth>, StoreError> {
        use endpoint_health::{Column, Entity};
        let rows = Entity::find()
            .filter(Column::EndpointId.is_in(endpoints.iter().map(|id| id.uuid())))
            .filter(Column::TenantId.eq(tenant.uuid()));
        let rows = rows.all(&self.db).await.map_err(store_error)?;
        Ok(rows.into_iter().map(endpoint_health::decode).collect::<Result<_, _>>()?)
    }

    async fn disable_unhealthy(
        &self,
        tenant: TenantId,
        id: EndpointId,
        cause: DisableCause,
        by: &ChangeContext,
    ) -> Result<Option<Revision>, Error> {
        // Dropped where nothing is done: then there is no revision either.
        let mut write = Write::begin(&self.db).await?;
        let found = by_id::<endpoint::Entity>(&write.transaction, Some(tenant.uuid()), id.uuid());
        let Some(found) = found.await?.filter(|found| !found.deleted) else { return Ok(None) };
        let mut endpoint = found.value;
        let health = locked_one(&write.transaction, tenant, id).await?;
        let Some(reason) = cause.reason(&health).filter(|_| endpoint.is_active()) else {
            return Ok(None);
        };
        let expected = endpoint.meta.revision;
        endpoint.state = EndpointState::Disabled { reason: reason.clone() };
        endpoint.meta.updated_at = by.at;
        let parent = write.tenant_name(tenant).await?;
        write.replace::<endpoint::Entity>(&parent, &endpoint, expected).await?;
        let row = notice::encode(&notice(&endpoint, cause, &reason, by));
        let insert = notice::Entity::insert(row).exec_without_returning(&write.transaction);
        insert.await.map_err(store_error)?;
        let name = full_name::<endpoint::Entity>(&parent, endpoint.slug.as_str());
        let revision = write.commit(by).await?;
        tracing::warn!(endpoint.name = name, reason, "an endpoint was disabled");
        Ok(Some(revision))
    }

    async fn notices(&self, limit: u16) -> Result<Vec<Notice>, StoreError> {
        use notice::{Column, Entity};
        let oldest = Entity::find().order_by_asc(Column::AtUs).order_by_asc(Column::Id);
        let rows = oldest.limit(u64::from(limit)).all(&self.db).await.map_err(store_error)?;
        Ok(rows.into_iter().map(notice::decode).collect::<Result<_, _>>()?)
    }

    async fn notices_told(&self, ids: &[Uuid]) -> Result<(), StoreError> {
        let told = notice::Column::Id.is_in(ids.iter().copied());
        let delete = notice::Entity::delete_many().filter(told);
        delete.exec(&self.db).await.map_err(store_error)?;
        Ok(())
    }
}
