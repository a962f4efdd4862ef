//! Nodes: processes that work by the configuration, and what they say of it.

use crate::{
    ChangeContext, ConfigPosition, Epoch, Error, ResourceId, Revision, StoreError, Timestamp,
};
use async_trait::async_trait;
use std::{fmt, time::Duration};

/// Bounds of nodes, each with its reason.
pub mod node_limits {
    use std::time::Duration;

    /// A node reports at least this often, changed or not.
    pub const REPORT_EVERY: Duration = Duration::from_secs(5);
    /// A node that said nothing for six reports is not counted on.
    pub const LIVE_WITHIN: Duration = Duration::from_secs(30);
    /// A node that said nothing for a week has gone for good; its row goes too.
    pub const FORGOTTEN_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);
    /// Refused resources kept of one report: more are a fault of their own, and all alike.
    pub const REFUSED_MAX: usize = 50;
    /// Longest reason of a refusal: one line.
    pub const REASON_CHARS: usize = 200;
    /// Longest version of a program.
    pub const VERSION_CHARS: usize = 63;
    /// A snapshot of fewer resources may take away as many as it likes: what is so small is also
    /// made again quickly, and cleaning up a first try must not need an operator.
    pub const HOLD_FROM: usize = 10;
}

/// What a node does with the configuration, and so which part of it the node gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeRole {
    /// Publishes and delivers.
    Delivery,
    /// Takes in what third parties send.
    Ingress,
}

impl NodeRole {
    /// All roles.
    pub const ALL: [Self; 2] = [Self::Delivery, Self::Ingress];

    /// The name stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delivery => "delivery",
            Self::Ingress => "ingress",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// Names a node. Roles of one process are nodes of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId {
    /// What it does.
    pub role: NodeRole,
    /// Its name among the nodes of its role; chosen by whoever starts it, and kept over restarts.
    pub name: ResourceId,
}

impl NodeId {
    /// Reads the text form, `delivery.web-1`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (role, name) = text.split_once('.')?;
        Some(Self { role: NodeRole::parse(role)?, name: ResourceId::new(name).ok()? })
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.role.as_str(), self.name)
    }
}

/// A resource that a node could not use. It works on with the version before, if it had one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedResource {
    /// What kind of resource it is, such as `endpoints`.
    pub kind: String,
    /// Its unique id.
    pub uid: String,
    /// The revision that was refused.
    pub revision: Revision,
    /// Why, without anything of its content.
    pub reason: String,
}

/// A snapshot that would take away so much that a node waits for an operator's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldSnapshot {
    /// Which state it is.
    pub at: ConfigPosition,
    /// Resources that the node has.
    pub present: u32,
    /// How many of them would go.
    pub removed: u32,
}

/// What a node last said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// Who.
    pub node: ResourceId,
    /// What it does.
    pub role: NodeRole,
    /// The history that its revision belongs to.
    pub epoch: Epoch,
    /// The revision that it works by.
    pub applied: Revision,
    /// When it said so, by the control plane's clock.
    pub reported_at: Timestamp,
    /// When its process began.
    pub started_at: Timestamp,
    /// Version of its program.
    pub version: String,
    /// Resources it could not use.
    pub refused: Vec<RefusedResource>,
    /// How long ago it was last proved that nothing newer was committed.
    pub staleness: Duration,
    /// A snapshot it does not dare to apply.
    pub held: Option<HeldSnapshot>,
}

impl NodeReport {
    /// The node's name with its role.
    #[must_use]
    pub fn id(&self) -> NodeId {
        NodeId { role: self.role, name: self.node.clone() }
    }

    /// Whether the node can be counted on: it reported not long ago.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        now.since(self.reported_at) <= node_limits::LIVE_WITHIN
    }

    /// Whether the node works by everything up to this state.
    #[must_use]
    pub fn has(&self, wanted: ConfigPosition) -> bool {
        self.epoch == wanted.epoch && self.applied >= wanted.revision
    }
}

/// Reports of nodes, kept where every control plane finds them.
#[async_trait]
pub trait NodeReports: Send + Sync + 'static {
    /// Keeps a report in place of the node's last one, and gives the snapshot that an operator
    /// accepted for this node, if any.
    async fn report_node(&self, report: &NodeReport) -> Result<Option<ConfigPosition>, StoreError>;

    /// The last report of every node that reported at this time or later, by role and name.
    async fn nodes(&self, alive_since: Timestamp) -> Result<Vec<NodeReport>, StoreError>;

    /// Lets a node apply a held snapshot, and records who did in the same transaction. False when there
    /// is no such node.
    async fn accept_snapshot(
        &self,
        node: &NodeId,
        snapshot: ConfigPosition,
        by: &ChangeContext,
    ) -> Result<bool, Error>;

    /// Makes `next` the epoch when `after` is still the present one: somebody has seen a higher
    /// revision of it than there is, so the store was set back.
    async fn begin_epoch(&self, after: Epoch, next: Epoch) -> Result<(), StoreError>;
}

/// Keeps reports of the nodes of its own process, or passes them on to the control plane.
#[async_trait]
pub trait ReportSink: Send + Sync + 'static {
    /// Takes a report; gives the snapshot that an operator accepted for this node, if any.
    ///
    /// # Errors
    /// When it was not kept. The next report makes up for it.
    async fn report(&self, report: NodeReport) -> Result<Option<ConfigPosition>, Error>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_node_is_named_by_role_and_name() {
        let id = NodeId::parse("delivery.web-1").unwrap();
        assert_eq!((id.role, id.name.as_str()), (NodeRole::Delivery, "web-1"));
        assert_eq!(id.to_string(), "delivery.web-1");
        for bad in ["", "delivery", "delivery.", "control-plane.a", "ingress.A", "ingress.a.b"] {
            assert_eq!(NodeId::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_revision_of_another_epoch_counts_for_nothing() {
        let (old, new) =
            (Epoch::from_uuid(Uuid::from_u128(1)), Epoch::from_uuid(Uuid::from_u128(2)));
        let report = NodeReport {
            node: ResourceId::new("web-1").unwrap(),
            role: NodeRole::Delivery,
            epoch: old,
            applied: Revision(7),
            reported_at: Timestamp::from_micros(0),
            started_at: Timestamp::EPOCH,
            version: String::new(),
            refused: Vec::new(),
            staleness: Duration::ZERO,
            held: None,
        };
        let at = |epoch, revision| ConfigPosition { epoch, revision: Revision(revision) };
        assert!(report.has(at(old, 7)) && report.has(at(old, 6)));
        assert!(!report.has(at(old, 8)) && !report.has(at(new, 1)));
        assert!(report.is_live(Timestamp::EPOCH + node_limits::LIVE_WITHIN));
        assert!(!report.is_live(Timestamp::EPOCH + node_limits::LIVE_WITHIN * 2));
    }
}
