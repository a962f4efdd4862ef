//! Ports of configuration: written by the control plane, followed by the data planes.

use crate::{
    ApiTokenStore, AuditTrail, ChangeContext, ConfigDelta, DenialLog, Endpoint, EndpointId, Error,
    EventType, EventTypeId, EventTypeVersion, Fields, KeyId, KeyOwner, KeyRing, RequestLog,
    ResourceId, RetryPolicy, RetryPolicyId, Revision, Source, SourcePosition, StoreError,
    Subscription, Tenant, TenantId, Timestamp, Tombstones, TypeName, VersionName, VersionsSeen,
};
use async_trait::async_trait;
use std::collections::HashMap;

/// Rows read at once where a provided method has to scan.
const SCAN_ROWS: u16 = 1_000;

/// Configuration, written by the control plane only. Every change raises the revision as the
/// first statement of its own transaction, which makes writers take turns: a revision that is visible
/// means that every lower one is. A change that changes nothing is not made by callers.
///
/// `create_*` fails with [`Error::AlreadyExists`]. `update_*` replaces the row when its revision is
/// still `expected`, else fails with [`Error::Stale`]; [`Error::NotFound`] when it is gone. All
/// return the row with its new revision. Deleted rows stay as tombstones and free their name, except
/// those of tenants and API tokens.
/// return the row with its new revision. Deleted rows stay as tombstones and free their name; see
/// [`Tombstones`].
///
/// `create_*` and `update_key_ring` note the request's id, when it has one, with what was made: a
/// repeat is found by [`RequestLog`] and fails here with [`Error::AlreadyExists`]. `create_*` fails
/// with [`Error::QuotaExceeded`] when the tenant has as much as it may.
///
/// `by` says who makes the change: the store records it in the same transaction. Under
/// [`ChangeContext::validate_only`] everything is checked and answered as it would be, and nothing
/// is changed or recorded.
#[async_trait]
pub trait ConfigStore:
    ConfigSource + AuditTrail + ApiTokenStore + DenialLog + RequestLog + Tombstones
{
    /// Adds a tenant. Fails with [`Error::Precondition`] when a deleted one had the name: what is
    /// bound to the name must not fit another tenant.
    async fn create_tenant(&self, tenant: Tenant, by: &ChangeContext) -> Result<Tenant, Error>;
    /// Finds a tenant by name.
    async fn tenant(&self, slug: &ResourceId) -> Result<Option<Tenant>, Error>;
    /// Lists tenants by name, after the one given.
    async fn tenants(&self, after: Option<&str>, limit: u16) -> Result<Vec<Tenant>, Error>;
    /// Replaces a tenant.
    async fn update_tenant(
        &self,
        tenant: Tenant,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<Tenant, Error>;
    /// Deletes a tenant. Fails with [`Error::Precondition`] while it has endpoints or sources.
    async fn delete_tenant(
        &self,
        tenant: &Tenant,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error>;

    /// Adds an event type.
    async fn create_event_type(
        &self,
        event_type: EventType,
        by: &ChangeContext,
    ) -> Result<EventType, Error>;
    /// Finds an event type.
    async fn event_type(
        &self,
        tenant: TenantId,
        name: &TypeName,
    ) -> Result<Option<EventType>, Error>;
    /// Lists event types by name, after the one given.
    async fn event_types(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<EventType>, Error>;
    /// Replaces an event type.
    async fn update_event_type(
        &self,
        event_type: EventType,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<EventType, Error>;
    /// Deletes an event type with its versions.
    async fn delete_event_type(
        &self,
        event_type: &EventType,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error>;

    /// Adds a version of an event type, judged by its caller to fit what it has `seen`. Fails with
    /// [`Error::Stale`] when that is no longer so, and with [`Error::Precondition`] when the type has
    /// as many versions as it can have.
    async fn create_event_type_version(
        &self,
        version: EventTypeVersion,
        seen: VersionsSeen,
        by: &ChangeContext,
    ) -> Result<EventTypeVersion, Error>;
    /// Finds a version of an event type.
    async fn event_type_version(
        &self,
        tenant: TenantId,
        event_type: EventTypeId,
        version: &VersionName,
    ) -> Result<Option<EventTypeVersion>, Error>;
    /// The version of an event type that was made last.
    async fn latest_event_type_version(
        &self,
        tenant: TenantId,
        event_type: EventTypeId,
    ) -> Result<Option<EventTypeVersion>, Error>;
    /// Lists versions of an event type by version, after the one given.
    async fn event_type_versions(
        &self,
        tenant: TenantId,
        event_type: EventTypeId,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<EventTypeVersion>, Error>;
    /// Deletes a version. Fails with [`Error::Precondition`] for the latest one while the event type
    /// asks for compatibility.
    async fn delete_event_type_version(
        &self,
        version: &EventTypeVersion,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error>;

    /// Adds a retry policy.
    async fn create_retry_policy(
        &self,
        policy: RetryPolicy,
        by: &ChangeContext,
    ) -> Result<RetryPolicy, Error>;
    /// Finds a retry policy.
    async fn retry_policy(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<RetryPolicy>, Error>;
    /// Lists retry policies by name, after the one given.
    async fn retry_policies(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<RetryPolicy>, Error>;
    /// Last parts of the names of these retry policies, as [`ConfigStore::endpoint_slugs`].
    async fn retry_policy_slugs(
        &self,
        tenant: TenantId,
        ids: &[RetryPolicyId],
    ) -> Result<HashMap<RetryPolicyId, ResourceId>, Error> {
        let mut slugs = HashMap::with_capacity(ids.len());
        let mut after: Option<String> = None;
        loop {
            let page = self.retry_policies(tenant, after.as_deref(), SCAN_ROWS).await?;
            let wanted = page.iter().filter(|row| ids.contains(&row.id));
            slugs.extend(wanted.map(|row| (row.id, row.slug.clone())));
            let full = page.len() >= usize::from(SCAN_ROWS);
            match page.last() {
                Some(last) if full && slugs.len() < ids.len() => {
                    after = Some(last.slug.as_str().to_owned());
                }
                _ => return Ok(slugs),
            }
        }
    }
    /// What a live retry policy was, at versions below the one given, the newest first: at most
    /// [`retry_limits::VERSIONS_KEPT`](crate::retry_limits::VERSIONS_KEPT) of them are kept, by
    /// [`ConfigStore::update_retry_policy`], until the policy is purged.
    async fn former_retry_policies(
        &self,
        policy: &RetryPolicy,
        before: i64,
        limit: u16,
    ) -> Result<Vec<RetryPolicy>, Error>;
    /// Replaces a retry policy, and keeps what it was as a former version.
    async fn update_retry_policy(
        &self,
        policy: RetryPolicy,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<RetryPolicy, Error>;
    /// Deletes a retry policy. Fails with [`Error::Precondition`] while an endpoint uses it.
    async fn delete_retry_policy(
        &self,
        policy: &RetryPolicy,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error>;

    /// Adds an endpoint with its key ring. Both get the same revision.
    async fn create_endpoint(
        &self,
        endpoint: Endpoint,
        ring: KeyRing,
        by: &ChangeContext,
    ) -> Result<Endpoint, Error>;
    /// Finds an endpoint.
    async fn endpoint(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<Endpoint>, Error>;
    /// Lists endpoints by name, after the one given.
    async fn endpoints(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<Endpoint>, Error>;
    /// Last parts of the names of these endpoints, as far as they exist: rows refer by id, requests by
    /// name. Provided by scanning; a store that can look ids up does so. `ids` holds each id once.
    async fn endpoint_slugs(
        &self,
        tenant: TenantId,
        ids: &[EndpointId],
    ) -> Result<HashMap<EndpointId, ResourceId>, Error> {
        let mut slugs = HashMap::with_capacity(ids.len());
        let mut after: Option<String> = None;
        loop {
            let page = self.endpoints(tenant, after.as_deref(), SCAN_ROWS).await?;
            let wanted = page.iter().filter(|row| ids.contains(&row.id));
            slugs.extend(wanted.map(|row| (row.id, row.slug.clone())));
            let full = page.len() >= usize::from(SCAN_ROWS);
            match page.last() {
                Some(last) if full && slugs.len() < ids.len() => {
                    after = Some(last.slug.as_str().to_owned());
                }
                _ => return Ok(slugs),
            }
        }
    }
    /// Replaces an endpoint.
    async fn update_endpoint(
        &self,
        endpoint: Endpoint,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<Endpoint, Error>;
    /// Deletes an endpoint with its subscriptions; its keys sign nothing from then on.
    async fn delete_endpoint(
        &self,
        endpoint: &Endpoint,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error>;

    /// Reads a key ring.
    async fn key_ring(&self, tenant: TenantId, owner: KeyOwner) -> Result<KeyRing, Error>;
    /// Records that somebody is shown the secret of a key, and gives its ring. Nothing else changes.
    async fn record_reveal(
        &self,
        tenant: TenantId,
        owner: KeyOwner,
        key: KeyId,
        by: &ChangeContext,
    ) -> Result<KeyRing, Error>;
    /// Records what somebody does with a resource that is no configuration. Nothing else changes.
    async fn record_action(
        &self,
        tenant: TenantId,
        resource: String,
        what: Fields,
        by: &ChangeContext,
    ) -> Result<(), Error>;
    /// Replaces a key ring when its revision is still `expected`. What is sealed of a key that stays
    /// is kept as it is stored: a key's material never changes, but the key-encryption key that it
    /// is under may.
    async fn update_key_ring(
        &self,
        tenant: TenantId,
        owner: KeyOwner,
        ring: KeyRing,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<KeyRing, Error>;

    /// Adds a subscription.
    async fn create_subscription(
        &self,
        subscription: Subscription,
        by: &ChangeContext,
    ) -> Result<Subscription, Error>;
    /// Finds a subscription.
    async fn subscription(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<Subscription>, Error>;
    /// Lists subscriptions by name, after the one given.
    async fn subscriptions(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<Subscription>, Error>;
    /// Replaces a subscription.
    async fn update_subscription(
        &self,
        subscription: Subscription,
        expected: Revision,
        by: &ChangeContext,
    ) -> Result<Subscription, Error>;
    /// Deletes a subscription.
    async fn delete_subscription(
        &self,
        subscription: &Subscription,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error>;

    /// Adds a source with its key ring, which may be empty. Both get the same revision.
    async fn create_source(
        &self,
        source: Source,
        ring: KeyRing,
        by: &ChangeContext,
    ) -> Result<Source, Error>;
    /// Finds a source.
    async fn source(&self, tenant: TenantId, slug: &ResourceId) -> Result<Option<Source>, Error>;
    /// Lists sources by name, after the one given.
    async fn sources(
        &self,
        tenant: TenantId,
        after: Option<&str>,
        limit: u16,
    ) -> Result<Vec<Source>, Error>;
    /// Replaces a source. When its scheme changes, `ring` is the revision of the ring whose keys the
    /// caller found to fit: [`Error::Stale`] when it is another one by then. Such a change gives the ring
    /// a new revision, so that no key that was held against the scheme before is put on it.
    async fn update_source(
        &self,
        source: Source,
        expected: Revision,
        ring: Option<Revision>,
        by: &ChangeContext,
    ) -> Result<Source, Error>;
    /// Deletes a source; its keys verify nothing from then on.
    async fn delete_source(
        &self,
        source: &Source,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Revision, Error>;
}

/// Configuration as data planes read it.
#[async_trait]
pub trait ConfigSource: Send + Sync + 'static {
    /// The present revision.
    async fn revision(&self) -> Result<Revision, StoreError>;

    /// Everything that changed after `known`, read in one consistent snapshot.
    async fn changes_since(&self, known: Revision) -> Result<ConfigDelta, StoreError>;

    /// Where the source stands.
    async fn position(&self) -> Result<SourcePosition, StoreError>;

    /// Returns when there may be something new. A hint: who waits for it polls too. A source that
    /// has to be asked never tells.
    async fn changed(&self) {
        std::future::pending().await
    }
}
