//! Use cases of nodes: who works by which configuration, and what waits for an operator.

use crate::{Dependencies, Distribution, by::By};
use std::sync::Arc;
use turnbuckle_domain::{
    Caller, ConfigPosition, Error, NodeId, NodeReport, Timestamp, node_limits,
};

/// A node beside where the store stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeView {
    pub(crate) report: NodeReport,
    pub(crate) newest: ConfigPosition,
    pub(crate) now: Timestamp,
}

/// Nodes, and where the store stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeList {
    pub(crate) nodes: Vec<NodeView>,
    pub(crate) newest: ConfigPosition,
}

/// Lets a node apply a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AcceptSnapshot {
    pub(crate) node: NodeId,
    pub(crate) snapshot: ConfigPosition,
}

/// What can be done with nodes.
pub(crate) struct Nodes(pub(crate) Arc<Distribution>, pub(crate) Arc<Dependencies>);

impl Nodes {
    /// All nodes that are remembered, or only those that can be counted on.
    pub(crate) async fn list(&self, caller: &Caller, only_live: bool) -> Result<NodeList, Error> {
        unbound(caller)?;
        let now = self.0.clock().now();
        let newest = self.0.source().position().await?.at;
        let within = match only_live {
            true => node_limits::LIVE_WITHIN,
            false => node_limits::FORGOTTEN_AFTER,
        };
        let reports = self.0.nodes().nodes(now - within).await?;
        let nodes = reports.into_iter().map(|report| NodeView { report, newest, now }).collect();
        Ok(NodeList { nodes, newest })
    }

    pub(crate) async fn get(&self, caller: &Caller, node: &NodeId) -> Result<NodeView, Error> {
        let list = self.list(caller, false).await?;
        let found = list.nodes.into_iter().find(|view| view.report.id() == *node);
        found.ok_or_else(|| Error::NotFound { resource: name(node) })
    }

    pub(crate) async fn accept(
        &self,
        by: &By,
        command: &AcceptSnapshot,
    ) -> Result<NodeView, Error> {
        let AcceptSnapshot { node, snapshot } = command;
        let view = self.get(&by.caller, node).await?;
        let held = view.report.held.map(|held| held.at);
        if held != Some(*snapshot) {
            let message = match held {
                None => "the node holds no snapshot back: there is nothing to accept".to_owned(),
                Some(held) => format!(
                    "the node holds another snapshot back, revision {} of epoch {}: look at it and \
                     accept that one",
                    held.revision.0, held.epoch
                ),
            };
            return Err(Error::invalid("revision", message));
        }
        tracing::warn!(
            subject = by.caller.subject,
            node = %node,
            config.revision = snapshot.revision.0,
            config.epoch = %snapshot.epoch,
            "an operator lets a node apply a snapshot that takes away more than half"
        );
        if self.0.nodes().accept_snapshot(node, *snapshot, &by.change).await? {
            return Ok(view);
        }
        Err(Error::NotFound { resource: name(node) })
    }
}

/// Nodes serve every tenant, and what they refuse belongs to any: a caller who is bound to a tenant
/// does not see them (I12).
fn unbound(caller: &Caller) -> Result<(), Error> {
    if caller.tenant.is_some() { Err(Error::PermissionDenied) } else { Ok(()) }
}

/// The resource name of a node.
pub(crate) fn name(node: &NodeId) -> String {
    format!("nodes/{node}")
}
