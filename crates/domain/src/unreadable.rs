//! Resources that are in the store and cannot be read there (I13).
//!
//! A row that no code of ours wrote, by a hand or a broken disk, must not keep everybody from the
//! configuration: it is named in the change it belongs to, and all others go on. Who follows keeps the
//! version before and says so.

use crate::{
    ApiTokenId, ConfigDelta, EndpointId, EventTypeId, EventTypeVersionId, RefusedResource,
    RetryPolicyId, Revision, SourceId, SubscriptionId, TenantId, node_limits,
};
use std::fmt;
use uuid::Uuid;

/// What kind of resource something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResourceKind {
    /// A tenant.
    Tenant,
    /// An event type.
    EventType,
    /// A version of an event type.
    EventTypeVersion,
    /// A retry policy.
    RetryPolicy,
    /// The keys of an endpoint; named by the endpoint.
    KeyRing,
    /// An endpoint.
    Endpoint,
    /// A subscription.
    Subscription,
    /// The keys of a source; named by the source.
    SourceKeyRing,
    /// A source.
    Source,
    /// An API token.
    ApiToken,
}

impl ResourceKind {
    /// The name shown, as in [`RefusedResource::kind`].
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenants",
            Self::EventType => "eventTypes",
            Self::EventTypeVersion => "eventTypeVersions",
            Self::RetryPolicy => "retryPolicies",
            Self::KeyRing => "keyRings",
            Self::Endpoint => "endpoints",
            Self::Subscription => "subscriptions",
            Self::SourceKeyRing => "sourceKeyRings",
            Self::Source => "sources",
            Self::ApiToken => "apiTokens",
        }
    }

    /// An id as the resources of this kind show it; of key rings their owner's.
    #[must_use]
    pub fn uid(self, id: Uuid) -> String {
        match self {
            Self::Tenant => TenantId::from_uuid(id).to_string(),
            Self::EventType => EventTypeId::from_uuid(id).to_string(),
            Self::EventTypeVersion => EventTypeVersionId::from_uuid(id).to_string(),
            Self::RetryPolicy => RetryPolicyId::from_uuid(id).to_string(),
            Self::KeyRing | Self::Endpoint => EndpointId::from_uuid(id).to_string(),
            Self::Subscription => SubscriptionId::from_uuid(id).to_string(),
            Self::SourceKeyRing | Self::Source => SourceId::from_uuid(id).to_string(),
            Self::ApiToken => ApiTokenId::from_uuid(id).to_string(),
        }
    }
}

impl fmt::Display for ResourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A resource that the store holds in a form nobody can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableResource {
    /// What it is.
    pub kind: ResourceKind,
    /// Its unique id; of key rings their owner's.
    pub id: Uuid,
    /// Last part of its name, or of its owner's. Whatever the row holds there, cut to
    /// [`UnreadableResource::NAME_CHARS`].
    pub name: String,
    /// The revision of its last change.
    pub revision: Revision,
    /// Why, without anything of its content.
    pub reason: String,
    /// Whether it is gone: what is deleted goes all the same (I5).
    pub deleted: bool,
}

impl UnreadableResource {
    /// Longest name that is shown: names are shorter, unless they are what is broken.
    pub const NAME_CHARS: usize = 128;

    /// The same as nodes report what they refuse.
    #[must_use]
    pub fn refused(&self) -> RefusedResource {
        let reason = format!("{}: {}", self.name, self.reason);
        RefusedResource {
            kind: self.kind.to_string(),
            uid: self.kind.uid(self.id),
            revision: self.revision,
            reason: reason.chars().take(node_limits::REASON_CHARS).collect(),
        }
    }
}

/// What a follower could not take over, until it comes in a better form or goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unreadables(Vec<UnreadableResource>);

impl Unreadables {
    /// Takes over what a change says.
    pub fn apply(&mut self, delta: &ConfigDelta) {
        if self.0.is_empty() && delta.unreadable.is_empty() {
            return;
        }
        self.0.retain(|known| !delta.names(known.kind, known.id));
        self.0.extend(delta.unreadable.iter().filter(|one| !one.deleted).cloned());
    }

    /// Adds one that the follower itself cannot use.
    pub fn refuse(&mut self, one: UnreadableResource) {
        self.0.push(one);
    }

    /// As a report holds them, at most [`node_limits::REFUSED_MAX`].
    #[must_use]
    pub fn refused(&self) -> Vec<RefusedResource> {
        self.0.iter().take(node_limits::REFUSED_MAX).map(UnreadableResource::refused).collect()
    }
}

impl ConfigDelta {
    /// Whether the change says anything of this resource.
    #[must_use]
    pub fn names(&self, kind: ResourceKind, id: Uuid) -> bool {
        let is_named = match kind {
            ResourceKind::Tenant => self.tenants.iter().any(|row| row.value.id.uuid() == id),
            ResourceKind::EventType => self.event_types.iter().any(|row| row.value.id.uuid() == id),
            ResourceKind::EventTypeVersion => {
                self.event_type_versions.iter().any(|row| row.value.id.uuid() == id)
            }
            ResourceKind::RetryPolicy => {
                self.retry_policies.iter().any(|row| row.value.id.uuid() == id)
            }
            // A ring goes when its owner goes.
            ResourceKind::KeyRing => {
                self.key_rings.iter().any(|(owner, _)| owner.uuid() == id)
                    || self.is_deleted(ResourceKind::Endpoint, id)
            }
            ResourceKind::Endpoint => self.endpoints.iter().any(|row| row.value.id.uuid() == id),
            ResourceKind::Subscription => {
                self.subscriptions.iter().any(|row| row.value.id.uuid() == id)
            }
            ResourceKind::SourceKeyRing => {
                self.source_key_rings.iter().any(|(owner, _)| owner.uuid() == id)
                    || self.is_deleted(ResourceKind::Source, id)
            }
            ResourceKind::Source => self.sources.iter().any(|row| row.value.id.uuid() == id),
            ResourceKind::ApiToken => self.api_tokens.iter().any(|token| token.id.uuid() == id),
        };
        is_named || self.unreadable.iter().any(|one| (one.kind, one.id) == (kind, id))
    }

    fn is_deleted(&self, owner: ResourceKind, id: Uuid) -> bool {
        let endpoints = self.endpoints.iter().any(|row| row.deleted && row.value.id.uuid() == id);
        let sources = self.sources.iter().any(|row| row.deleted && row.value.id.uuid() == id);
        let mut unreadable = self.unreadable.iter();
        match owner {
            ResourceKind::Endpoint if endpoints => true,
            ResourceKind::Source if sources => true,
            _ => unreadable.any(|one| one.deleted && (one.kind, one.id) == (owner, id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(kind: ResourceKind, id: u128, deleted: bool) -> UnreadableResource {
        UnreadableResource {
            kind,
            id: Uuid::from_u128(id),
            name: "orders".to_owned(),
            revision: Revision(7),
            reason: "column url holds something malformed".to_owned(),
            deleted,
        }
    }

    fn delta(unreadable: Vec<UnreadableResource>) -> ConfigDelta {
        ConfigDelta { unreadable, ..ConfigDelta::default() }
    }

    #[test]
    fn what_is_unreadable_stays_so_until_it_is_named_again() {
        let mut known = Unreadables::default();
        known.apply(&delta(vec![one(ResourceKind::Endpoint, 1, false)]));
        known.apply(&delta(vec![one(ResourceKind::KeyRing, 1, false)]));
        known.apply(&ConfigDelta::default());
        let refused = known.refused();
        assert_eq!(refused.len(), 2);
        assert_eq!(refused[0].kind, "endpoints");
        assert_eq!(refused[0].reason, "orders: column url holds something malformed");
        // Gone, and its keys with it.
        known.apply(&delta(vec![one(ResourceKind::Endpoint, 1, true)]));
        assert_eq!(known, Unreadables::default());
    }
}
