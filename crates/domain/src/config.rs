//! Revisions, and changes of configuration as data planes receive them.

use crate::{
    ApiToken, Endpoint, EndpointId, EventType, EventTypeVersion, KeyRing, RetryPolicy, Source,
    SourceId, Subscription, Tenant, Timestamp, UnreadableResource,
};
use std::fmt;
use uuid::Uuid;

/// Number of a configuration state. Only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub i64);

impl Revision {
    /// Before the first change.
    pub const ZERO: Self = Self(0);

    /// The strong, quoted etag of a resource last changed at this revision.
    #[must_use]
    pub fn etag(self) -> String {
        format!("\"{}\"", self.0)
    }

    /// Reads an etag made by [`Revision::etag`].
    #[must_use]
    pub fn from_etag(etag: &str) -> Option<Self> {
        etag.strip_prefix('"')?.strip_suffix('"')?.parse().ok().map(Self)
    }
}

/// Names one history of the configuration. A store that was set back, or made anew, begins another
/// one: revisions of different epochs cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Epoch(Uuid);

impl Epoch {
    /// Wraps the random id that the store keeps.
    #[must_use]
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The id inside.
    #[must_use]
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One state of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ConfigPosition {
    /// The history it belongs to.
    pub epoch: Epoch,
    /// Its number there.
    pub revision: Revision,
}

/// Where a source of configuration stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourcePosition {
    /// The newest state it can hand out.
    pub at: ConfigPosition,
    /// Whether that state has everything that was committed before it was asked for, so that what
    /// it lacks does not exist.
    pub is_proven: bool,
}

/// When a resource was made and last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meta {
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Revision of the last change; set by the store.
    pub revision: Revision,
}

/// A resource, or the note that it was deleted. Absence never means deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletable<T> {
    /// Its last state.
    pub value: T,
    /// Whether it is gone.
    pub deleted: bool,
}

/// Everything that changed after a revision, in its present form.
#[derive(Debug, Clone, Default)]
pub struct ConfigDelta {
    /// The history that the revision belongs to.
    pub epoch: Epoch,
    /// The state this leads to.
    pub revision: Revision,
    /// Changed tenants.
    pub tenants: Vec<Deletable<Tenant>>,
    /// Changed event types.
    pub event_types: Vec<Deletable<EventType>>,
    /// Changed versions of event types: made or gone, since they never change.
    pub event_type_versions: Vec<Deletable<EventTypeVersion>>,
    /// Changed retry policies.
    pub retry_policies: Vec<Deletable<RetryPolicy>>,
    /// Changed endpoints.
    pub endpoints: Vec<Deletable<Endpoint>>,
    /// Changed key rings; a ring goes when its endpoint goes.
    pub key_rings: Vec<(EndpointId, KeyRing)>,
    /// Changed subscriptions.
    pub subscriptions: Vec<Deletable<Subscription>>,
    /// Changed sources.
    pub sources: Vec<Deletable<Source>>,
    /// Changed key rings of sources; a ring goes when its source goes.
    pub source_key_rings: Vec<(SourceId, KeyRing)>,
    /// Changed API tokens; a revoked one is no longer taken.
    pub api_tokens: Vec<ApiToken>,
    /// Changed resources that the store cannot read. They are in none of the lists above.
    pub unreadable: Vec<UnreadableResource>,
}
