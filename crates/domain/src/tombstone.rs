//! Deleted resources: kept for a while, brought back, purged.
//!
//! ```text
//!  live ── delete ──► deleted ── 30 d ──► purged: id and name are left
//!    ▲                   │
//!    └──── undelete ─────┘   its name must be free
//! ```
//!
//! # Invariants
//! - A deleted resource frees its name at once; it comes back only while nobody else has it.
//! - Nothing leaves for a deleted endpoint and its keys sign nothing (I5); nothing comes in for a deleted
//!   source. Their keys stay sealed until they are purged, so that one that comes back signs as its
//!   receiver expects, and knows its sender.

use crate::{
    ChangeContext, Endpoint, EndpointId, Error, EventType, EventTypeId, ResourceId, RetryPolicy,
    RetryPolicyId, Source, SourceId, Subscription, SubscriptionId, Tenant, TenantId, Timestamp,
};
use async_trait::async_trait;
use std::time::Duration;
use uuid::Uuid;

/// How long a deleted resource can be brought back: a mistake is noticed within a monthly round.
pub const KEPT_DELETED: Duration = Duration::from_secs(30 * 24 * 3600);

/// A resource, live or deleted and not purged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept<T> {
    /// Its last state.
    pub value: T,
    /// When it was deleted; none while it lives.
    pub deleted_at: Option<Timestamp>,
}

impl<T> Kept<T> {
    /// A live one.
    #[must_use]
    pub const fn live(value: T) -> Self {
        Self { value, deleted_at: None }
    }

    /// When it will be purged, unless it is brought back.
    #[must_use]
    pub fn purge_at(&self) -> Option<Timestamp> {
        self.deleted_at.map(|at| at + KEPT_DELETED)
    }
}

/// A place in a list of live and deleted resources, which may share a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPlace {
    /// Last part of the name.
    pub slug: ResourceId,
    /// The resource of that name.
    pub uid: Uuid,
}

/// Deleted resources and those that are not, of one store with the live ones.
///
/// `undelete_*` fails with [`Error::NotFound`] when the resource is not deleted or purged already,
/// with [`Error::Stale`] when it is not as the caller read it, and with [`Error::Precondition`] when
/// its name is taken or something it needs is deleted.
#[async_trait]
pub trait Tombstones: Send + Sync + 'static {
    /// A tenant by id; deleted ones too.
    async fn kept_tenant(&self, id: TenantId) -> Result<Option<Kept<Tenant>>, Error>;
    /// An event type by id; deleted ones too.
    async fn kept_event_type(
        &self,
        tenant: TenantId,
        id: EventTypeId,
    ) -> Result<Option<Kept<EventType>>, Error>;

    /// An endpoint by id, live or deleted.
    async fn kept_endpoint(
        &self,
        tenant: TenantId,
        id: EndpointId,
    ) -> Result<Option<Kept<Endpoint>>, Error>;
    /// The deleted endpoint of this name that was deleted last.
    async fn deleted_endpoint(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<Kept<Endpoint>>, Error>;
    /// Live and deleted endpoints by name and id, after the one given.
    async fn kept_endpoints(
        &self,
        tenant: TenantId,
        after: Option<&KeptPlace>,
        limit: u16,
    ) -> Result<Vec<Kept<Endpoint>>, Error>;
    /// Brings an endpoint back, with the subscriptions that were deleted along with it and its keys.
    async fn undelete_endpoint(
        &self,
        endpoint: &Endpoint,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Endpoint, Error>;

    /// A subscription by id, live or deleted.
    async fn kept_subscription(
        &self,
        tenant: TenantId,
        id: SubscriptionId,
    ) -> Result<Option<Kept<Subscription>>, Error>;
    /// The deleted subscription of this name that was deleted last.
    async fn deleted_subscription(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<Kept<Subscription>>, Error>;
    /// Live and deleted subscriptions by name and id, after the one given.
    async fn kept_subscriptions(
        &self,
        tenant: TenantId,
        after: Option<&KeptPlace>,
        limit: u16,
    ) -> Result<Vec<Kept<Subscription>>, Error>;
    /// Brings a subscription back; its endpoint must live.
    async fn undelete_subscription(
        &self,
        subscription: &Subscription,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Subscription, Error>;

    /// A retry policy by id, live or deleted.
    async fn kept_retry_policy(
        &self,
        tenant: TenantId,
        id: RetryPolicyId,
    ) -> Result<Option<Kept<RetryPolicy>>, Error>;
    /// The deleted retry policy of this name that was deleted last.
    async fn deleted_retry_policy(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<Kept<RetryPolicy>>, Error>;
    /// Live and deleted retry policies by name and id, after the one given.
    async fn kept_retry_policies(
        &self,
        tenant: TenantId,
        after: Option<&KeptPlace>,
        limit: u16,
    ) -> Result<Vec<Kept<RetryPolicy>>, Error>;
    /// Brings a retry policy back.
    async fn undelete_retry_policy(
        &self,
        policy: &RetryPolicy,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<RetryPolicy, Error>;

    /// A source by id, live or deleted.
    async fn kept_source(
        &self,
        tenant: TenantId,
        id: SourceId,
    ) -> Result<Option<Kept<Source>>, Error>;
    /// The deleted source of this name that was deleted last.
    async fn deleted_source(
        &self,
        tenant: TenantId,
        slug: &ResourceId,
    ) -> Result<Option<Kept<Source>>, Error>;
    /// Live and deleted sources by name and id, after the one given.
    async fn kept_sources(
        &self,
        tenant: TenantId,
        after: Option<&KeptPlace>,
        limit: u16,
    ) -> Result<Vec<Kept<Source>>, Error>;
    /// Brings a source back, with its keys and its path.
    async fn undelete_source(
        &self,
        source: &Source,
        now: Timestamp,
        by: &ChangeContext,
    ) -> Result<Source, Error>;

    /// Purges one resource that was deleted before this time, the one deleted first: it cannot come
    /// back, its settings are overwritten and its keys destroyed. Says which; none when nothing is
    /// due.
    async fn purge_one(
        &self,
        deleted_before: Timestamp,
        by: &ChangeContext,
    ) -> Result<Option<String>, Error>;

    /// Destroys the material of keys of one source that were revoked before this time: it was kept to
    /// tell who still uses them, see
    /// [`incoming_limits::ALARM_WINDOW`](crate::incoming_limits::ALARM_WINDOW). Says whose ring it was;
    /// none when nothing is due.
    async fn destroy_revoked(
        &self,
        revoked_before: Timestamp,
        by: &ChangeContext,
    ) -> Result<Option<String>, Error>;
}
