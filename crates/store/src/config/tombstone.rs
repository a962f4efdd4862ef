//! Deleted resources: found, brought back, purged.

use super::{
    ConfigDb,
    cell::{self, HiddenText},
    entity::{endpoint, event_type, retry_policy, subscription, tenant},
    ring_tables::OfEndpoints,
    rings, rules,
    table::{Identity, Table, full_name, of_tenant},
    write::Write,
};
use crate::error::store_error;
use async_trait::async_trait;
use sea_orm::{
    ColumnTrait as _, Condition, ConnectionTrait, EntityTrait, ModelTrait as _, QueryFilter as _,
    QueryOrder as _, QuerySelect as _, QueryTrait as _, Value,
    prelude::Uuid,
    sea_query::{Expr, SimpleExpr},
};
use turnbuckle_domain::{
    Audited as _, ChangeContext, Endpoint, EndpointId, Error, EventType, EventTypeId, Fields, Kept,
    KeptPlace, Precondition, ResourceId, RetryPolicy, RetryPolicyId, RetryRule, Subscription,
    SubscriptionId, Tenant, TenantId, Timestamp, Tombstones,
};

/// What stands in the place of a purged URL: a name that leads nowhere, by its top-level domain.
const PURGED_URL: &str = "https://purged.invalid/";
/// What stands in the place of purged pairs.
const NO_PAIRS: &str = "{}";
/// What stands in the place of purged patterns.
const NO_PATTERNS: &str = "[]";

/// A kind of resource that stays for a while when it is deleted.
pub(super) trait Keeps: Table {
    const PURGED: Self::Column;

    /// The id as resources show it.
    fn uid(id: Uuid) -> String;

    /// What a purge writes over its settings.
    fn blank() -> Vec<(Self::Column, SimpleExpr)>;
}

impl Keeps for endpoint::Entity {
    const PURGED: Self::Column = endpoint::Column::PurgedAtUs;

    fn uid(id: Uuid) -> String {
        EndpointId::from_uuid(id).to_string()
    }

    fn blank() -> Vec<(Self::Column, SimpleExpr)> {
        vec![
            (endpoint::Column::DisplayName, Expr::value("")),
            (endpoint::Column::Url, Expr::value(HiddenText(PURGED_URL.to_owned()))),
            (endpoint::Column::Headers, Expr::value(HiddenText(NO_PAIRS.to_owned()))),
            (endpoint::Column::HeaderPrefix, Expr::value("")),
            // A reason is there as long as the state says so. Neither brings it back to life.
            (endpoint::Column::State, Expr::value("active")),
            (endpoint::Column::DisableReason, Expr::value(None::<String>)),
            (endpoint::Column::Labels, Expr::value(NO_PAIRS)),
        ]
    }
}

impl Keeps for subscription::Entity {
    const PURGED: Self::Column = subscription::Column::PurgedAtUs;

    fn uid(id: Uuid) -> String {
        SubscriptionId::from_uuid(id).to_string()
    }

    fn blank() -> Vec<(Self::Column, SimpleExpr)> {
        vec![
            (subscription::Column::Patterns, Expr::value(NO_PATTERNS)),
            (subscription::Column::Filter, Expr::value(None::<String>)),
            (subscription::Column::Channels, Expr::value(None::<String>)),
            (subscription::Column::Labels, Expr::value(NO_PAIRS)),
        ]
    }
}

impl Keeps for retry_policy::Entity {
    const PURGED: Self::Column = retry_policy::Column::PurgedAtUs;

    fn uid(id: Uuid) -> String {
        RetryPolicyId::from_uuid(id).to_string()
    }

    fn blank() -> Vec<(Self::Column, SimpleExpr)> {
        // The default rule always has this form.
        let rule = serde_json::to_string(&RetryRule::default()).unwrap_or_default();
        vec![
            (retry_policy::Column::Rule, Expr::value(rule)),
            (retry_policy::Column::Labels, Expr::value(NO_PAIRS)),
        ]
    }
}

/// A row with the time of its deletion.
fn kept<E: Table>(row: E::Model) -> Result<Kept<E::Resource>, Error> {
    let deleted_at = match row.get(E::DELETED) {
        Value::BigInt(micros) => cell::micros(micros),
        _ => return Err(cell::Malformed { column: "deleted_at_us" }.into()),
    };
    Ok(Kept { value: E::decode(row)?.value, deleted_at })
}

/// The row with this id, live or deleted.
async fn kept_by_id<E: Table>(
    db: &impl ConnectionTrait,
    tenant: Option<Uuid>,
    id: Uuid,
) -> Result<Option<Kept<E::Resource>>, Error> {
    let rows = of_tenant::<E>(tenant).filter(E::ID.eq(id));
    rows.one(db).await.map_err(store_error)?.map(kept::<E>).transpose()
}

/// The same, as long as it is not purged.
async fn kept_unpurged<E: Keeps>(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<Kept<E::Resource>>, Error> {
    let rows = of_tenant::<E>(Some(tenant.uuid())).filter(E::PURGED.is_null());
    let row = rows.filter(E::ID.eq(id)).one(db).await.map_err(store_error)?;
    row.map(kept::<E>).transpose()
}

/// The last deleted one of this name.
async fn deleted_last<E: Keeps>(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    name: &str,
) -> Result<Option<Kept<E::Resource>>, Error> {
    let deleted = of_tenant::<E>(Some(tenant.uuid()))
        .filter(E::DELETED.is_not_null())
        .filter(E::PURGED.is_null())
        .filter(E::NAME.eq(name))
        .order_by_desc(E::DELETED)
        .order_by_desc(E::REVISION);
    deleted.one(db).await.map_err(store_error)?.map(kept::<E>).transpose()
}

/// Live and deleted ones by name and id, after the place given.
async fn kept_list<E: Keeps>(
    db: &impl ConnectionTrait,
    tenant: TenantId,
    after: Option<&KeptPlace>,
    limit: u16,
) -> Result<Vec<Kept<E::Resource>>, Error> {
    let mut rows = of_tenant::<E>(Some(tenant.uuid())).filter(E::PURGED.is_null());
    if let Some(KeptPlace { slug, uid }) = after {
        let same_name = Condition::all().add(E::NAME.eq(slug.as_str())).add(E::ID.gt(*uid));
        rows = rows.filter(Condition::any().add(E::NAME.gt(slug.as_str())).add(same_name));
    }
    let page = rows.order_by_asc(E::NAME).order_by_asc(E::ID).limit(u64::from(limit));
    page.all(db).await.map_err(store_error)?.into_iter().map(kept::<E>).collect()
}

impl Write {
    /// Brings a tombstone back that is still as the caller read it. Its name must be free.
    async fn unbury<E: Keeps>(
        &mut self,
        parent: &str,
        resource: &E::Resource,
        now: Timestamp,
    ) -> Result<E::Resource, Error> {
        let Identity { id, tenant, name, revision } = E::identity(resource);
        let full = full_name::<E>(parent, name);
        let rows = of_tenant::<E>(tenant).filter(E::PURGED.is_null()).filter(E::ID.eq(id));
        let row = rows.one(&self.transaction).await.map_err(store_error)?;
        let found = row.map(kept::<E>).transpose()?;
        let Some(Kept { value: mut found, deleted_at: Some(_) }) = found else {
            return Err(Error::NotFound { resource: full });
        };
        let current = E::identity(&found).revision;
        if current != revision {
            return Err(Error::Stale { resource: full, current: current.etag() });
        }
        let wanted = E::find().select_only().column(E::NAME).filter(E::ID.eq(id));
        self.names_are_free::<E>(parent, tenant, wanted, &full).await?;
        self.revive::<E>(Condition::all().add(E::ID.eq(id)), now).await?;
        // It may be long, and its subscriptions too.
        self.needs_room = true;
        let meta = E::meta(&mut found);
        (meta.updated_at, meta.revision) = (now, self.revision);
        self.note_subject::<E>(parent, &found, Fields::new(), found.fields());
        Ok(found)
    }

    /// Brings back what was deleted along with an endpoint: in the same change. Says how many.
    async fn unbury_subscriptions(
        &mut self,
        parent: &str,
        owner: &Endpoint,
        now: Timestamp,
    ) -> Result<u64, Error> {
        use subscription::{Column, Entity};
        let along = Condition::all()
            .add(Column::EndpointId.eq(owner.id.uuid()))
            .add(Column::Revision.eq(owner.meta.revision.0))
            .add(Column::DeletedAtUs.is_not_null())
            .add(Column::PurgedAtUs.is_null());
        let tenant = Some(owner.tenant.uuid());
        let wanted = Entity::find().select_only().column(Column::Slug).filter(along.clone());
        let subject = full_name::<endpoint::Entity>(parent, owner.slug.as_str());
        self.names_are_free::<Entity>(parent, tenant, wanted.clone(), &subject).await?;
        self.revive::<Entity>(along, now).await
    }

    async fn names_are_free<E: Table>(
        &self,
        parent: &str,
        tenant: Option<Uuid>,
        wanted: sea_orm::Select<E>,
        subject: &str,
    ) -> Result<(), Error> {
        let live = of_tenant::<E>(tenant)
            .filter(E::DELETED.is_null())
            .filter(E::NAME.in_subquery(wanted.into_query()))
            .select_only()
            .column(E::NAME);
        let taken: Option<String> =
            live.into_tuple().one(&self.transaction).await.map_err(store_error)?;
        let Some(name) = taken else {
            return Ok(());
        };
        let taken = full_name::<E>(parent, &name);
        Err(Error::Precondition {
            kind: Precondition::NameTaken,
            subject: subject.to_owned(),
            message: format!(
                "the name {taken} is in use again: delete the one that has it now, then undelete"
            ),
        })
    }

    async fn revive<E: Keeps>(&self, which: Condition, now: Timestamp) -> Result<u64, Error> {
        let update = <E as EntityTrait>::update_many()
            .col_expr(E::DELETED, Expr::value(None::<i64>))
            .col_expr(E::UPDATED, Expr::value(now.micros()))
            .col_expr(E::REVISION, Expr::value(self.revision.0))
            .filter(which);
        Ok(update.exec(&self.transaction).await.map_err(store_error)?.rows_affected)
    }

    /// Overwrites the tombstone that was deleted first, when that was before this time. Says its name
    /// and id. Does not read its settings: a row that holds what it should not goes like any other.
    async fn purge_first<E: Keeps>(
        &mut self,
        deleted_before: Timestamp,
        now: Timestamp,
    ) -> Result<Option<(String, Uuid)>, Error> {
        let due = E::find()
            .filter(E::DELETED.lt(deleted_before.micros()))
            .filter(E::PURGED.is_null())
            .order_by_asc(E::DELETED)
            .select_only()
            .column(E::ID)
            .column(E::NAME)
            .columns(E::TENANT);
        let due = due.into_tuple::<(Uuid, String, Uuid)>();
        let first = due.one(&self.transaction).await.map_err(store_error)?;
        let Some((id, name, tenant)) = first else {
            return Ok(None);
        };
        let mut update = <E as EntityTrait>::update_many()
            .col_expr(E::PURGED, Expr::value(now.micros()))
            .col_expr(E::REVISION, Expr::value(self.revision.0));
        for (column, blank) in E::blank() {
            update = update.col_expr(column, blank);
        }
        update.filter(E::ID.eq(id)).exec(&self.transaction).await.map_err(store_error)?;
        let name = full_name::<E>(&self.parent_of(tenant).await?, &name);
        let before = Fields::from([("uid".to_owned(), E::uid(id))]);
        self.note((TenantId::from_uuid(tenant), name.clone()), before, Fields::new());
        Ok(Some((name, id)))
    }

    /// The name of a tenant that may be deleted.
    async fn parent_of(&self, id: Uuid) -> Result<String, Error> {
        let slug = tenant::Entity::find_by_id(id).select_only().column(tenant::Column::Slug);
        let slug: Option<String> =
            slug.into_tuple().one(&self.transaction).await.map_err(store_error)?;
        Ok(full_name::<tenant::Entity>("", &slug.unwrap_or_else(|| id.to_string())))
    }
}

impl ConfigDb {
    async fn purge_endpoint(
        &self,
        deleted_before: Timestamp,
        by: &ChangeContext,
    ) -> Result<Option<String>, Error> {
        let mut write = Write::begin(&self.db).await?;
        let purged = write.purge_first::<endpoint::Entity>(deleted_before, by.at).await?;
        let Some((name, id)) = purged else {
            return Ok(None);
        };
        rings::wipe::<OfEndpoints>(&mut write, id, by.at).await?;
        write.commit(by).await?;
        Ok(Some(name))
    }

    async fn purge_simple<E: Keeps>(
        &self,
        deleted_before: Timestamp,
        by: &ChangeContext,
    ) -> Result<Option<String>, Error> {
        let mut write = Write::begin(&self.db).await?;
        let Some((name, _)) = write.purge_first::<E>(deleted_before, by.at).await? else {
            return Ok(None);
        };
        write.commit(by).await?;
        Ok(Some(name))
    }

    /// Looks without taking a turn among the writers: mostly nothing is due.
    async fn is_due<E: Keeps>(&self, deleted_before: Timestamp) -> Result<bool, Error> {
        let due = E::find()
            .filter(E::DELETED.lt(deleted_before.micros()))
            .filter(E::PURGED.is_null())
            .select_only()
            .column(E::ID)
            .limit(1);
        let first: Option<Uuid> = due.into_tuple().one(&self.db).await.map_err(store_error)?;
        Ok(first.is_some())
    }
}

#[async_trait]
impl Tombstones for ConfigDb {
    async fn kept_tenant(&self, id: TenantId) -> Result<Option<Kept<Tenant>>, Error> {
        kept_by_id::<tenant::Entity>(&self.db, None, id.uuid()).await
    }

    async fn kept_event_type(
        &self,
        tenant: TenantId,
        id: EventTypeId,
    ) -> Result<Option<Kept<EventType>>, Error> {
        kept_by_id::<event_type::Entity>(&self.db, Some(tenant.uuid()), id.uuid()).await
    }

    async fn kept_endpoint(
        &self,
        tenant: TenantId,
        id: EndpointId,
    ) -> Result<Option<Kept<Endpoint>>, Error> {
        kept_unpurged::<endpoint::Entity>(&self.db, tenant, id.uuid()).await
    }

    async fn deleted_endpoint(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<Kept<Endpoint>>, Error> {
        deleted_last::<endpoint::Entity>(&self.db, tenant, slug.as_str()).await
    }

    async fn kept_endpoints(
        &self,
        tenant: TenantId,
        after: Option<&KeptPlace>,
        limit: u16,
    ) -> Result<Vec<Kept<Endpoint>>, Error> {
        kept_list::<endpoint::Entity>(&self.db, tenant, after, limit).await
    }

    async fn undelete_endpoint(
        &self,
        endpoint: &Endpoint,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Endpoint, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(endpoint.tenant).await?;
        let live = write.unbury::<endpoint::Entity>(&parent, endpoint, now).await?;
        rules::quota::<endpoint::Entity>(&write, &parent, live.tenant, &self.quotas).await?;
        rules::retry_policy_is_kept(&write, &parent, &live).await?;
        let ring = rings::read::<OfEndpoints>(&write.transaction, live.id.uuid()).await?;
        if let Some(ring) = ring {
            write.note_along(Fields::new(), ring.fields());
        }
        rings::touch::<OfEndpoints>(&write, live.id.uuid()).await?;
        // What was there already stays, also above a quota that was lowered meanwhile.
        if write.unbury_subscriptions(&parent, endpoint, now).await? > 0 {
            rules::quota::<subscription::Entity>(&write, &parent, live.tenant, &self.quotas)
                .await?;
        }
        write.commit(by).await?;
        Ok(live)
    }

    async fn kept_subscription(
        &self,
        tenant: TenantId,
        id: SubscriptionId,
    ) -> Result<Option<Kept<Subscription>>, Error> {
        kept_unpurged::<subscription::Entity>(&self.db, tenant, id.uuid()).await
    }

    async fn deleted_subscription(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<Kept<Subscription>>, Error> {
        deleted_last::<subscription::Entity>(&self.db, tenant, slug.as_str()).await
    }

    async fn kept_subscriptions(
        &self,
        tenant: TenantId,
        after: Option<&KeptPlace>,
        limit: u16,
    ) -> Result<Vec<Kept<Subscription>>, Error> {
        kept_list::<subscription::Entity>(&self.db, tenant, after, limit).await
    }

    async fn undelete_subscription(
        &self,
        subscription: &Subscription,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Subscription, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(subscription.tenant).await?;
        let live = write.unbury::<subscription::Entity>(&parent, subscription, now).await?;
        rules::owner_is_kept(&write, &parent, &live).await?;
        rules::quota::<subscription::Entity>(&write, &parent, live.tenant, &self.quotas).await?;
        write.commit(by).await?;
        Ok(live)
    }

    async fn kept_retry_policy(
        &self,
        tenant: TenantId,
        id: RetryPolicyId,
    ) -> Result<Option<Kept<RetryPolicy>>, Error> {
        kept_unpurged::<retry_policy::Entity>(&self.db, tenant, id.uuid()).await
    }

    async fn deleted_retry_policy(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<Kept<RetryPolicy>>, Error> {
        deleted_last::<retry_policy::Entity>(&self.db, tenant, slug.as_str()).await
    }

    async fn kept_retry_policies(
        &self,
        tenant: TenantId,
        after: Option<&KeptPlace>,
        limit: u16,
    ) -> Result<Vec<Kept<RetryPolicy>>, Error> {
        kept_list::<retry_policy::Entity>(&self.db, tenant, after, limit).await
    }

    async fn undelete_retry_policy(
        &self,
        policy: &RetryPolicy,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<RetryPolicy, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(policy.tenant).await?;
        let live = write.unbury::<retry_policy::Entity>(&parent, policy, now).await?;
        rules::quota::<retry_policy::Entity>(&write, &parent, live.tenant, &self.quotas).await?;
        write.commit(by).await?;
        Ok(live)
    }

    async fn purge_one(
        &self,
        deleted_before: Timestamp,
        by: &ChangeContext,
    ) -> Result<Option<String>, Error> {
        if self.is_due::<endpoint::Entity>(deleted_before).await? {
            return self.purge_endpoint(deleted_before, by).await;
        }
        if self.is_due::<subscription::Entity>(deleted_before).await? {
            return self.purge_simple::<subscription::Entity>(deleted_before, by).await;
        }
        if self.is_due::<retry_policy::Entity>(deleted_before).await? {
            return self.purge_simple::<retry_policy::Entity>(deleted_before, by).await;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
