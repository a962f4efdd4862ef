//! Writing configuration. Every method is one transaction; see [`Write`].

use super::{
    ConfigDb,
    entity::{endpoint, event_type, retry_policy, subscription, tenant},
    rings, rules,
    table::{Identity, find, full_name, list, live_by_id, names},
    write::{Write, begin_snapshot, tenant_name},
};
use crate::error::store_error;
use async_trait::async_trait;
use std::collections::HashMap;
use turnbuckle_domain::{
    Audited as _, ChangeContext, ConfigStore, Endpoint, EndpointId, Error, EventType, Fields,
    KeyId, KeyRing, ResourceId, RetryPolicy, RetryPolicyId, Revision, Subscription, Tenant,
    TenantId, Timestamp, TypeName,
};

/// Last part of the name of an endpoint's key ring.
const KEY_RING: &str = "keyRing";

fn ring_name(parent: &str, endpoint: &str) -> String {
    format!("{}/{KEY_RING}", full_name::<endpoint::Entity>(parent, endpoint))
}

#[async_trait]
impl ConfigStore for ConfigDb {
    async fn create_tenant(&self, tenant: Tenant, by: &ChangeContext) -> Result<Tenant, Error> {
        let mut write = Write::begin(&self.db).await?;
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
        write.bury_along::<retry_policy::Entity>(retry_policy::Column::TenantId, id, now).await?;
        write.commit(by).await
    }

    async fn create_event_type(
        &self,
        event_type: EventType,
        by: &ChangeContext,
    ) -> Result<EventType, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(event_type.tenant).await?;
        let created = write.insert::<event_type::Entity>(&parent, &event_type).await?;
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
        write.commit(by).await
    }

    async fn create_retry_policy(
        &self,
        policy: RetryPolicy,
        by: &ChangeContext,
    ) -> Result<RetryPolicy, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(policy.tenant).await?;
        let created = write.insert::<retry_policy::Entity>(&parent, &policy).await?;
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

    async fn update_retry_policy(
        &self,
        policy: RetryPolicy,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<RetryPolicy, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(policy.tenant).await?;
        let updated = write.replace::<retry_policy::Entity>(&parent, &policy, expected).await?;
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
        rules::retry_policy_lives(&write, &parent, &endpoint).await?;
        let created = write.insert::<endpoint::Entity>(&parent, &endpoint).await?;
        rings::insert(&mut write, &created, &ring).await?;
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
        if let Some(ring) = rings::read(&write.transaction, endpoint.id).await? {
            let name = format!("{parent}/endpoints/{}", endpoint.slug);
            rules::keys_fit(&ring, &endpoint, &name)?;
        }
        let updated = write.replace::<endpoint::Entity>(&parent, &endpoint, expected).await?;
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
        rings::wipe(&mut write, endpoint.id, now).await?;
        write.commit(by).await
    }

    async fn key_ring(&self, tenant: TenantId, endpoint: EndpointId) -> Result<KeyRing, Error> {
        let snapshot = begin_snapshot(&self.db).await?;
        let parent = tenant_name(&snapshot, tenant).await?;
        let id = endpoint.to_string();
        let wanted = Identity {
            id: endpoint.uuid(),
            tenant: Some(tenant.uuid()),
            name: &id,
            revision: Revision::ZERO,
        };
        let owner = live_by_id::<endpoint::Entity>(&snapshot, &parent, &wanted).await?;
        let ring = rings::read(&snapshot, endpoint).await?;
        snapshot.commit().await.map_err(store_error)?;
        ring.ok_or_else(|| Error::NotFound { resource: ring_name(&parent, owner.slug.as_str()) })
    }

    async fn record_reveal(
        &self,
        tenant: TenantId,
        endpoint: EndpointId,
        key: KeyId,
        by: &ChangeContext,
    ) -> Result<KeyRing, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(tenant).await?;
        let owner = rules::owner(&write, &parent, tenant, endpoint).await?;
        let endpoint_name = full_name::<endpoint::Entity>(&parent, owner.slug.as_str());
        let resource = format!("{endpoint_name}/keys/{key}");
        let ring = rings::read(&write.transaction, endpoint).await?.unwrap_or_default();
        let Some(shown) = ring.keys.iter().find(|known| known.id == key) else {
            return Err(Error::NotFound { resource });
        };
        let what = Fields::from([("revealed".to_owned(), shown.fingerprint.clone())]);
        write.note((tenant, resource), Fields::new(), what);
        write.commit(by).await?;
        Ok(ring)
    }

    async fn update_key_ring(
        &self,
        tenant: TenantId,
        endpoint: EndpointId,
        mut ring: KeyRing,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<KeyRing, Error> {
        let mut write = Write::begin(&self.db).await?;
        let parent = write.tenant_name(tenant).await?;
        let owner = rules::owner(&write, &parent, tenant, endpoint).await?;
        let resource = ring_name(&parent, owner.slug.as_str());
        match rings::read(&write.transaction, endpoint).await? {
            None => return Err(Error::NotFound { resource }),
            Some(KeyRing { revision, .. }) if revision != expected => {
                return Err(Error::Stale { resource, current: revision.etag() });
            }
            Some(before) => {
                rules::keys_fit(&ring, &owner, &resource)?;
                rings::keep_sealed(&before, &mut ring);
                write.note((tenant, resource), before.fields(), ring.fields());
                rings::replace(&write, &owner, &ring).await?;
            }
        }
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
        rules::owner(&write, &parent, subscription.tenant, subscription.endpoint).await?;
        let created = write.insert::<subscription::Entity>(&parent, &subscription).await?;
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
}
