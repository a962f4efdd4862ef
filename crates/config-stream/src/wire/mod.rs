//! Configuration as it travels: domain values to records and back.
//!
//! Both ways name every field of a value. A field that is added to one does not compile until it
//! travels too.

mod decode;
mod encode;

pub use decode::{Header, Record, Unusable, decode, header};
pub use encode::{Encoded, encode};

use sha2::{Digest as _, Sha256};
use turnbuckle_domain::{Epoch, NodeRole, ResourceKind};
use turnbuckle_proto::v1::{self, ConfigKind};
use uuid::Uuid;

/// Most bytes of resources in one message. Messages of gRPC are refused above 4 MiB, and the largest
/// resource, an endpoint with all its headers, has less than 200 KiB.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// Number of the form in which configuration is sent. Raise it when a role gets a kind of resource
/// that it did not get before, or a record gets a field: what a node already has was sent without it,
/// and is sent anew then.
pub const SCHEMA: u32 = 1;

/// An epoch as nodes know it. It names the history and the form in which it was sent, so that a node
/// whose state was sent in another form, by an older or a newer control plane, has a state of another
/// epoch: it reads everything anew, and so does every plane in it. People and the store see the
/// history's own epoch.
#[must_use]
pub const fn wire_epoch(epoch: Epoch) -> Epoch {
    Epoch::from_uuid(Uuid::from_u128(epoch.uuid().as_u128() ^ SCHEMA as u128))
}

/// The history's own epoch; one that nobody knows when the state was sent in another form.
#[must_use]
pub const fn domain_epoch(epoch: Epoch) -> Epoch {
    wire_epoch(epoch)
}

/// Names a resource on the stream. Sorts so that what others need comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// What it is; also a number that this program does not know.
    pub kind: i32,
    /// Its unique id.
    pub id: Uuid,
}

/// Whether nodes of this role get resources of this kind. The only place that decides it.
#[must_use]
pub const fn is_for(role: NodeRole, kind: ConfigKind) -> bool {
    match kind {
        ConfigKind::Unspecified => false,
        ConfigKind::Tenant => true,
        ConfigKind::EventType
        | ConfigKind::RetryPolicy
        | ConfigKind::KeyRing
        | ConfigKind::Endpoint
        | ConfigKind::Subscription
        | ConfigKind::EventTypeVersion
        | ConfigKind::ApiToken => matches!(role, NodeRole::Delivery),
        ConfigKind::SourceKeyRing | ConfigKind::Source => matches!(role, NodeRole::Ingress),
    }
}

/// The name of a kind for people.
#[must_use]
pub fn kind_name(kind: i32) -> &'static str {
    domain_kind(kind).map_or("unknown", ResourceKind::as_str)
}

/// A kind on the wire.
#[must_use]
pub const fn wire_kind(kind: ResourceKind) -> ConfigKind {
    match kind {
        ResourceKind::Tenant => ConfigKind::Tenant,
        ResourceKind::EventType => ConfigKind::EventType,
        ResourceKind::EventTypeVersion => ConfigKind::EventTypeVersion,
        ResourceKind::RetryPolicy => ConfigKind::RetryPolicy,
        ResourceKind::KeyRing => ConfigKind::KeyRing,
        ResourceKind::Endpoint => ConfigKind::Endpoint,
        ResourceKind::Subscription => ConfigKind::Subscription,
        ResourceKind::SourceKeyRing => ConfigKind::SourceKeyRing,
        ResourceKind::Source => ConfigKind::Source,
        ResourceKind::ApiToken => ConfigKind::ApiToken,
    }
}

/// A kind from the wire; none when this program does not know it.
#[must_use]
pub fn domain_kind(kind: i32) -> Option<ResourceKind> {
    Some(match ConfigKind::try_from(kind).ok()? {
        ConfigKind::Unspecified => return None,
        ConfigKind::Tenant => ResourceKind::Tenant,
        ConfigKind::EventType => ResourceKind::EventType,
        ConfigKind::EventTypeVersion => ResourceKind::EventTypeVersion,
        ConfigKind::RetryPolicy => ResourceKind::RetryPolicy,
        ConfigKind::KeyRing => ResourceKind::KeyRing,
        ConfigKind::Endpoint => ResourceKind::Endpoint,
        ConfigKind::Subscription => ResourceKind::Subscription,
        ConfigKind::SourceKeyRing => ResourceKind::SourceKeyRing,
        ConfigKind::Source => ResourceKind::Source,
        ConfigKind::ApiToken => ResourceKind::ApiToken,
    })
}

/// A role on the wire.
#[must_use]
pub const fn wire_role(role: NodeRole) -> v1::NodeRole {
    match role {
        NodeRole::Delivery => v1::NodeRole::Delivery,
        NodeRole::Ingress => v1::NodeRole::Ingress,
    }
}

/// A role from the wire.
#[must_use]
pub fn domain_role(role: i32) -> Option<NodeRole> {
    match v1::NodeRole::try_from(role).ok()? {
        v1::NodeRole::Unspecified => None,
        v1::NodeRole::Delivery => Some(NodeRole::Delivery),
        v1::NodeRole::Ingress => Some(NodeRole::Ingress),
    }
}

/// The hash over the resources of a snapshot, in their order.
#[derive(Debug, Clone, Default)]
pub struct SnapshotHash(Sha256);

impl SnapshotHash {
    /// Takes in the next resource.
    pub fn add(&mut self, resource: &[u8]) {
        self.0.update(u32::try_from(resource.len()).unwrap_or(u32::MAX).to_be_bytes());
        self.0.update(resource);
    }

    /// The hash.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests;
