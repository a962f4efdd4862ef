//! Writing configuration. Every method is one transaction; see [`Write`].

use super::{
    ConfigDb, api_tokens,
    entity::{
        endpoint, event_type, event_type_version, retry_policy, source, subscription, tenant,
    },
    health, policy_versions, request,
    ring_tables::OfEndpoints,
    rings, rules, sources,
    table::{by_id, find, list, names},
    versions,
    write::{Write, begin_snapshot, tenant_name},
};
use crate::error::store_error;
use async_trait::async_trait;
use std::collections::HashMap;
use turnbuckle_domain::{
    Audited as _, ChangeContext, ConfigStore, Endpoint, EndpointId, Error, EventType, EventTypeId,
    EventTypeVersion, Fields, KeyId, KeyOwner, KeyRing, ResourceId, RetryPolicy, RetryPolicyId,
    Revision, Source, Subscription, Tenant, TenantId, Timestamp, TypeName, VersionName,
    VersionsSeen,
};

#[async_trait]
impl ConfigStore for ConfigDb {
    async fn create_tenant(&self, tenant: Tenant, by: &ChangeContext) -> Result<Tenant, Error> {
        let mut write = Write::begin(&self.db).await?;
        rules::tenant_name_is_new(&write, &tenant).await?;
        write.remember(None, (tenant.id.uuid(), None), by).await?;
        let created = write.insert::<tenant::Entity>("", &tenant).await?;
        write.commit(by).await?;
        Ok(created)
    }

    async fn tenant(&self, slug: &ResourceId) -> Result<Option<Tenant>, Error> {
        find::<tenant::Entity>(&self.db, None, slug.as_str()).await
    }

    async fn tenants(&self, after: Option<&str>, limit: u16) -> Result<Vec<Tenant>, Error> {
        list::<tenant::Entity>(&self.db, None, after, limit).await
    }

    async fn update_tenant(
        &self,
        tenant: Tenant,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<Tenant, Error> {
        let mut write = Write::begin(&self.db).await?;
        let updated = write.replace::<tenant::Entity>("", &tenant, expected).await?;
        write.commit(by).await?;
        Ok(updated)
    }

    async fn delete_tenant(
        &self,
        tenant: &Tenant,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(tenant.id).await?;
        rules::tenant_is_empty(&write, &parent, tenant).await?;
        write.bury::<tenant::Entity>("", tenant, now).await?;
        let id = tenant.id.uuid();
        write.bury_along::<event_type::Entity>(event_type::Column::TenantId, id, now).await?;
        // The record names the types; their versions go without a word, being too many to read.
        let versions = event_type_version::Column::TenantId;
        write.bury_rows::<event_type_version::Entity>(versions, id, now).await?;
        write.bury_along::<retry_policy::Entity>(retry_policy::Column::TenantId, id, now).await?;
        api_tokens::revoke_along(&mut write, tenant.id, now).await?;
        write.commit(by).await
    }

    async fn create_event_type(
        &self,
        event_type: EventType,
        by: &ChangeContext,
    ) -> Result<EventType, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(event_type.tenant).await?;
        let made = (event_type.id.uuid(), None);
        write.remember(Some(event_type.tenant), made, by).await?;
        let created = write.insert::<event_type::Entity>(&parent, &event_type).await?;
        rules::quota::<event_type::Entity>(&write, &parent, created.tenant, &self.quotas).await?;
        write.commit(by).await?;
        Ok(created)
    }

    async fn event_type(
        &self,
        tenant: TenantId,
        name: &TypeName,
    ) -> Result<Option<EventType>, Error> {
        find::<event_type::Entity>(&self.db, Some(tenant.uuid()), name.as_str()).await
    }

    async fn event_types(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<EventType>, Error> {
        list::<event_type::Entity>(&self.db, Some(tenant.uuid()), after, limit).await
    }

    async fn update_event_type(
        &self,
        event_type: EventType,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<EventType, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(event_type.tenant).await?;
        let updated = write.replace::<event_type::Entity>(&parent, &event_type, expected).await?;
        rules::room(&write, &parent, updated.tenant, &self.quotas).await?;
        write.commit(by).await?;
        Ok(updated)
    }

    async fn delete_event_type(
        &self,
        event_type: &EventType,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(event_type.tenant).await?;
        write.bury::<event_type::Entity>(&parent, event_type, now).await?;
        versions::bury_of_type(&mut write, event_type, now).await?;
        write.commit(by).await
    }

    async fn create_event_type_version(
        &self,
        version: EventTypeVersion,
        seen: VersionsSeen,
        by: &ChangeContext,
    ) -> Result<EventTypeVersion, Error> {
        let mut write = Write::begin(&self.db).await?;
        let owner = versions::owner(&write, &version).await?;
        write.remember(Some(version.tenant), (version.id.uuid(), None), by).await?;
        versions::may_follow(&write, &owner, &version, seen).await?;
        let created = write.insert::<event_type_version::Entity>(&owner.1, &version).await?;
        let parent = write.tenant_name(created.tenant).await?;
        let (tenant, quotas) = (created.tenant, &self.quotas);
        rules::quota::<event_type_version::Entity>(&write, &parent, tenant, quotas).await?;
        write.commit(by).await?;
        Ok(created)
    }

    async fn event_type_version(
        &self,
        tenant: TenantId,
        event_type: EventTypeId,
        version: &VersionName,
    ) -> Result<Option<EventTypeVersion>, Error> {
        versions::find(&self.db, tenant, event_type, version).await
    }

    async fn latest_event_type_version(
        &self,
        tenant: TenantId,
        event_type: EventTypeId,
    ) -> Result<Option<EventTypeVersion>, Error> {
        versions::latest(&self.db, tenant, event_type).await
    }

    async fn event_type_versions(
        &self,
        tenant: TenantId,
        event_type: EventTypeId,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<EventTypeVersion>, Error> {
        versions::list(&self.db, tenant, event_type, after, limit).await
    }

    async fn delete_event_type_version(
        &self,
        version: &EventTypeVersion,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error> {
        let mut write = Write::begin(&self.db).await?;
        let owner = versions::owner(&write, version).await?;
        versions::may_go(&write, &owner, version).await?;
        write.bury::<event_type_version::Entity>(&owner.1, version, now).await?;
        write.commit(by).await
    }

    async fn create_retry_policy(
        &self,
        policy: RetryPolicy,
        by: &ChangeContext,
    ) -> Result<RetryPolicy, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(policy.tenant).await?;
        let made = (policy.id.uuid(), None);
        write.remember(Some(policy.tenant), made, by).await?;
        let created = write.insert::<retry_policy::Entity>(&parent, &policy).await?;
        rules::quota::<retry_policy::Entity>(&write, &parent, created.tenant, &self.quotas).await?;
        write.commit(by).await?;
        Ok(created)
    }

    async fn retry_policy(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<RetryPolicy>, Error> {
        find::<retry_policy::Entity>(&self.db, Some(tenant.uuid()), slug.as_str()).await
    }

    async fn retry_policies(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<RetryPolicy>, Error> {
        list::<retry_policy::Entity>(&self.db, Some(tenant.uuid()), after, limit).await
    }

    async fn retry_policy_slugs(
        &self,
        tenant: TenantId,
        ids: &[RetryPolicyId],
    ) -> Result<HashMap<RetryPolicyId, ResourceId>, Error> {
        let uuids = ids.iter().map(|id| id.uuid());
        let names = names::<retry_policy::Entity>(&self.db, tenant, uuids).await?;
        Ok(names.into_iter().map(|(id, name)| (RetryPolicyId::from_uuid(id), name)).collect())
    }

    async fn former_retry_policies(
        &self,
        policy: &RetryPolicy,
        before: i64,
        limit: u16,
    ) -> Result<Vec<RetryPolicy>, Error> {
        policy_versions::list(&self.db, policy, before, limit).await
    }

    async fn update_retry_policy(
        &self,
        policy: RetryPolicy,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<RetryPolicy, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(policy.tenant).await?;
        policy_versions::keep(&write, &policy).await?;
        let updated = write.replace::<retry_policy::Entity>(&parent, &policy, expected).await?;
        rules::room(&write, &parent, updated.tenant, &self.quotas).await?;
        write.commit(by).await?;
        Ok(updated)
    }

    async fn delete_retry_policy(
        &self,
        policy: &RetryPolicy,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(policy.tenant).await?;
        rules::retry_policy_is_unused(&write, &parent, policy).await?;
        write.bury::<retry_policy::Entity>(&parent, policy, now).await?;
        write.commit(by).await
    }

    async fn create_endpoint(
        &self,
        endpoint: Endpoint,
        ring: KeyRing,
        by: &ChangeContext,
    ) -> Result<Endpoint, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(endpoint.tenant).await?;
        let made = (endpoint.id.uuid(), request::newest_key(&ring));
        write.remember(Some(endpoint.tenant), made, by).await?;
        rules::retry_policy_lives(&write, &parent, &endpoint).await?;
        let created = write.insert::<endpoint::Entity>(&parent, &endpoint).await?;
        rules::quota::<endpoint::Entity>(&write, &parent, created.tenant, &self.quotas).await?;
        rings::insert::<OfEndpoints>(&mut write, (&created).into(), &ring).await?;
        write.commit(by).await?;
        Ok(created)
    }

    async fn endpoint(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<Endpoint>, Error> {
        find::<endpoint::Entity>(&self.db, Some(tenant.uuid()), slug.as_str()).await
    }

    async fn endpoints(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<Endpoint>, Error> {
        list::<endpoint::Entity>(&self.db, Some(tenant.uuid()), after, limit).await
    }

    async fn endpoint_slugs(
        &self,
        tenant: TenantId,
        ids: &[EndpointId],
    ) -> Result<HashMap<EndpointId, ResourceId>, Error> {
        let uuids = ids.iter().map(|id| id.uuid());
        let names = names::<endpoint::Entity>(&self.db, tenant, uuids).await?;
        Ok(names.into_iter().map(|(id, name)| (EndpointId::from_uuid(id), name)).collect())
    }

    async fn update_endpoint(
        &self,
        endpoint: Endpoint,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<Endpoint, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(endpoint.tenant).await?;
        rules::retry_policy_lives(&write, &parent, &endpoint).await?;
        if let Some(ring) =
            rings::read::<OfEndpoints>(&write.transaction, endpoint.id.uuid()).await?
        {
            let name = format!("{parent}/endpoints/{}", endpoint.slug);
            rules::keys_fit(&ring, &endpoint, &name)?;
        }
        let id = endpoint.id.uuid();
        let before =
            by_id::<endpoint::Entity>(&write.transaction, Some(endpoint.tenant.uuid()), id);
        let before = before.await?;
        let updated = write.replace::<endpoint::Entity>(&parent, &endpoint, expected).await?;
        if let Some(before) = before {
            health::cleaned(&write, &before.value, &updated, by.at).await?;
        }
        rules::room(&write, &parent, updated.tenant, &self.quotas).await?;
        write.commit(by).await?;
        Ok(updated)
    }

    async fn delete_endpoint(
        &self,
        endpoint: &Endpoint,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(endpoint.tenant).await?;
        write.bury::<endpoint::Entity>(&parent, endpoint, now).await?;
        let owner = subscription::Column::EndpointId;
        write.bury_along::<subscription::Entity>(owner, endpoint.id.uuid(), now).await?;
        if let Some(ring) =
            rings::read::<OfEndpoints>(&write.transaction, endpoint.id.uuid()).await?
        {
            write.note_along(ring.fields(), Fields::new());
        }
        write.commit(by).await
    }

    async fn key_ring(&self, tenant: TenantId, owner: KeyOwner) -> Result<KeyRing, Error> {
        let snapshot = begin_snapshot(&self.db).await?;
        let parent = tenant_name(&snapshot, tenant).await?;
        let ring = rings::read_live(&snapshot, &parent, tenant, owner).await?;
        snapshot.commit().await.map_err(store_error)?;
        Ok(ring)
    }

    async fn record_reveal(
        &self,
        tenant: TenantId,
        owner: KeyOwner,
        key: KeyId,
        by: &ChangeContext,
    ) -> Result<KeyRing, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(tenant).await?;
        let (ring, resource) = rings::key_of(&mut write, &parent, (tenant, owner), key).await?;
        let Some(shown) = ring.keys.iter().find(|known| known.id == key) else {
            return Err(Error::NotFound { resource });
        };
        let what = Fields::from([("revealed".to_owned(), shown.fingerprint.clone())]);
        write.note((tenant, resource), Fields::new(), what);
        write.commit(by).await?;
        Ok(ring)
    }

    async fn record_action(
        &self,
        tenant: TenantId,
        resource: String,
        what: Fields,
        by: &ChangeContext,
    ) -> Result<(), Error> {
        let mut write = Write::begin(&self.db).await?;
        write.note((tenant, resource), Fields::new(), what);
        write.commit(by).await.map(drop)
    }

    async fn update_key_ring(
        &self,
        tenant: TenantId,
        owner: KeyOwner,
        mut ring: KeyRing,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<KeyRing, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(tenant).await?;
        let made = (owner.uuid(), request::newest_key(&ring));
        write.remember(Some(tenant), made, by).await?;
        rings::update(&mut write, &parent, (tenant, owner), &mut ring, expected).await?;
        let revision = write.commit(by).await?;
        Ok(KeyRing { revision, ..ring })
    }

    async fn create_subscription(
        &self,
        subscription: Subscription,
        by: &ChangeContext,
    ) -> Result<Subscription, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(subscription.tenant).await?;
        let made = (subscription.id.uuid(), None);
        write.remember(Some(subscription.tenant), made, by).await?;
        rules::owner(&write, &parent, subscription.tenant, subscription.endpoint).await?;
        let created = write.insert::<subscription::Entity>(&parent, &subscription).await?;
        rules::quota::<subscription::Entity>(&write, &parent, created.tenant, &self.quotas).await?;
        write.commit(by).await?;
        Ok(created)
    }

    async fn subscription(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<Subscription>, Error> {
        find::<subscription::Entity>(&self.db, Some(tenant.uuid()), slug.as_str()).await
    }

    async fn subscriptions(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<Subscription>, Error> {
        list::<subscription::Entity>(&self.db, Some(tenant.uuid()), after, limit).await
    }

    async fn update_subscription(
        &self,
        subscription: Subscription,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<Subscription, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(subscription.tenant).await?;
        rules::owner(&write, &parent, subscription.tenant, subscription.endpoint).await?;
        let updated =
            write.replace::<subscription::Entity>(&parent, &subscription, expected).await?;
        rules::room(&write, &parent, updated.tenant, &self.quotas).await?;
        write.commit(by).await?;
        Ok(updated)
    }

    async fn delete_subscription(
        &self,
        subscription: &Subscription,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(subscription.tenant).await?;
        write.bury::<subscription::Entity>(&parent, subscription, now).await?;
        write.commit(by).await
    }

    async fn create_source(
        &self,
        source: Source,
        ring: KeyRing,
        by: &ChangeContext,
    ) -> Result<Source, Error> {
        sources::create((&self.db, &self.quotas), &source, &ring, by).await
    }

    async fn source(&self, tenant: TenantId, slug: &ResourceId) -> Result<Option<Source>, Error> {
        find::<source::Entity>(&self.db, Some(tenant.uuid()), slug.as_str()).await
    }

    async fn sources(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<Source>, Error> {
        list::<source::Entity>(&self.db, Some(tenant.uuid()), after, limit).await
    }

    async fn update_source(
        &self,
        source: Source,
        expected: Revision,
        ring: Option<Revision>,
        by: &ChangeContext,
    ) -> Result<Source, Error> {
        sources::update((&self.db, &self.quotas), &source, (expected, ring), by).await
    }

    async fn delete_source(
        &self,
        source: &Source,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error> {
        sources::delete(&self.db, source, now, by).await
    }
}
