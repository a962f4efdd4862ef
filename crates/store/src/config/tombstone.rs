//! Deleted resources: found, brought back, purged.

use super::{
    ConfigDb, cell,
    entity::{endpoint, event_type, retry_policy, source, subscription, tenant},
    keeps::Keeps,
    policy_versions, revoked,
    ring_tables::{OfEndpoints, OfSources, RingTables},
    rings, rules,
    table::{Identity, Table, full_name, of_tenant},
    write::Write,
};
use crate::error::store_error;
use async_trait::async_trait;
use sea_orm::{
    ColumnTrait as _, Condition, ConnectionTrait, EntityTrait, ModelTrait as _, QueryFilter as _,
    QueryOrder as _, QuerySelect as _, QueryTrait as _, Value, prelude::Uuid, sea_query::Expr,
};
use turnbuckle_domain::{
    Audited as _, ChangeContext, Endpoint, EndpointId, Error, EventType, EventTypeId, Fields, Kept,
    KeptPlace, Precondition, ResourceId, RetryPolicy, RetryPolicyId, Source, SourceId,
    Subscription, SubscriptionId, Tenant, TenantId, Timestamp, Tombstones,
};

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

    /// Brings back what was deleted along with an endpoint, in the same change; says how many came.
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
        let done = update.exec(&self.transaction).await.map_err(store_error)?;
        Ok(done.rows_affected)
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
    pub(super) async fn parent_of(&self, id: Uuid) -> Result<String, Error> {
        let slug = tenant::Entity::find_by_id(id).select_only().column(tenant::Column::Slug);
        let slug: Option<String> =
            slug.into_tuple().one(&self.transaction).await.map_err(store_error)?;
        Ok(full_name::<tenant::Entity>("", &slug.unwrap_or_else(|| id.to_string())))
    }
}

impl ConfigDb {
    /// Purges a resource that owns a ring, with the material of its keys.
    async fn purge_owner<T: RingTables<Owner: Keeps>>(
        &self,
        deleted_before: Timestamp,
        by: &ChangeContext,
    ) -> Result<Option<String>, Error> {
        let mut write = Write::begin(&self.db).await?;
        let purged = write.purge_first::<T::Owner>(deleted_before, by.at).await?;
        let Some((name, id)) = purged else {
            return Ok(None);
        };
        rings::wipe::<T>(&mut write, id, by.at).await?;
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

    /// Purges a retry policy, with its former versions.
    async fn purge_retry_policy(
        &self,
        deleted_before: Timestamp,
        by: &ChangeContext,
    ) -> Result<Option<String>, Error> {
        let mut write = Write::begin(&self.db).await?;
        let purged = write.purge_first::<retry_policy::Entity>(deleted_before, by.at).await?;
        let Some((name, id)) = purged else {
            return Ok(None);
        };
        policy_versions::forget(&write, id).await?;
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

    async fn kept_source(
        &self,
        tenant: TenantId,
        id: SourceId,
    ) -> Result<Option<Kept<Source>>, Error> {
        kept_unpurged::<source::Entity>(&self.db, tenant, id.uuid()).await
    }

    async fn deleted_source(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<Kept<Source>>, Error> {
        deleted_last::<source::Entity>(&self.db, tenant, slug.as_str()).await
    }

    async fn kept_sources(
        &self,
        tenant: TenantId,
        after: Option<&KeptPlace>,
        limit: u16,
    ) -> Result<Vec<Kept<Source>>, Error> {
        kept_list::<source::Entity>(&self.db, tenant, after, limit).await
    }

    async fn undelete_source(
        &self,
        source: &Source,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Source, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(source.tenant).await?;
        let live = write.unbury::<source::Entity>(&parent, source, now).await?;
        rules::quota::<source::Entity>(&write, &parent, live.tenant, &self.quotas).await?;
        let id = live.id.uuid();
        if let Some(ring) = rings::read::<OfSources>(&write.transaction, id).await? {
            write.note_along(Fields::new(), ring.fields());
        }
        rings::touch::<OfSources>(&write, id).await?;
        write.commit(by).await?;
        Ok(live)
    }

    async fn purge_one(
        &self,
        deleted_before: Timestamp,
        by: &ChangeContext,
    ) -> Result<Option<String>, Error> {
        if self.is_due::<endpoint::Entity>(deleted_before).await? {
            return self.purge_owner::<OfEndpoints>(deleted_before, by).await;
        }
        if self.is_due::<source::Entity>(deleted_before).await? {
            return self.purge_owner::<OfSources>(deleted_before, by).await;
        }
        if self.is_due::<subscription::Entity>(deleted_before).await? {
            return self.purge_simple::<subscription::Entity>(deleted_before, by).await;
        }
        if self.is_due::<retry_policy::Entity>(deleted_before).await? {
            return self.purge_retry_policy(deleted_before, by).await;
        }
        Ok(None)
    }

    async fn destroy_revoked(
        &self,
        revoked_before: Timestamp,
        by: &ChangeContext,
    ) -> Result<Option<String>, Error> {
        revoked::destroy(self, revoked_before, by).await
    }
}
