//! `turnbuckle node …`

use super::{error::Usage, global::Session};
use turnbuckle_domain::NodeId;
use turnbuckle_proto::v1;

/// First part of a node's full name.
const COLLECTION: &str = "nodes/";

/// What can be done with nodes.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// Lists nodes by role and name.
    List {
        /// Only those that reported within the last 30 seconds.
        #[arg(long)]
        live: bool,
    },
    /// Shows one node: its revision, what it could not use, what it holds back.
    Get(NodeName),
    /// Lets a node apply the snapshot that it holds back, because more than half of its configuration
    /// would go. Look at it first with `node get`.
    Accept {
        /// Which one.
        #[command(flatten)]
        node: NodeName,
        /// Revision of the held snapshot as shown [default: the one held now].
        #[arg(long, value_name = "N")]
        revision: Option<i64>,
    },
}

/// Names a node.
#[derive(Clone, Debug, clap::Args)]
pub struct NodeName {
    /// Such as delivery.web-1.
    pub name: String,
}

impl NodeName {
    fn full(&self) -> Result<String, Usage> {
        let short = self.name.strip_prefix(COLLECTION).unwrap_or(&self.name);
        match NodeId::parse(short) {
            Some(id) => Ok(format!("{COLLECTION}{id}")),
            None => Err(Usage(format!(
                "{:?} names no node; use role and name, such as delivery.web-1",
                self.name
            ))),
        }
    }
}

pub(super) async fn run(verb: Verb, session: &mut Session) -> anyhow::Result<()> {
    let mut nodes = session.client.nodes();
    match verb {
        Verb::List { live } => {
            let list = nodes.list_nodes(v1::ListNodesRequest { live }).await?.into_inner();
            session.output.many(&list.nodes)
        }
        Verb::Get(node) => {
            let name = node.full()?;
            let node = nodes.get_node(v1::GetNodeRequest { name }).await?;
            session.output.one(node.get_ref())
        }
        Verb::Accept { node, revision } => {
            let name = node.full()?;
            let request = v1::GetNodeRequest { name: name.clone() };
            let held = nodes.get_node(request).await?.into_inner().held.unwrap_or_default();
            let request = v1::AcceptSnapshotRequest {
                name,
                revision: revision.unwrap_or(held.revision),
                epoch: match held.epoch.as_str() {
                    "" => anyhow::bail!("the node holds no snapshot back"),
                    epoch => epoch.to_owned(),
                },
            };
            let node = nodes.accept_snapshot(request).await?;
            session.output.one(node.get_ref())?;
            session.output.note(&format!(
                "accepted: {} of {} resources go within about 5 seconds",
                held.removed, held.present
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_may_be_named_short_or_full() {
        for given in ["delivery.web-1", "nodes/delivery.web-1"] {
            let name = NodeName { name: given.to_owned() };
            assert_eq!(name.full().unwrap(), "nodes/delivery.web-1");
        }
        for bad in ["web-1", "nodes/", "nodes/web.1", "tenants/acme"] {
            assert!(NodeName { name: bad.to_owned() }.full().is_err(), "{bad}");
        }
    }
}
