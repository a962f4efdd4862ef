//! Nodes on the wire.

use super::{
    configuration::{epoch, held_message, refused_message},
    finish, single,
};
use crate::node::{AcceptSnapshot, NodeList, NodeView, name};
use turnbuckle_config_stream::wire::wire_role;
use turnbuckle_domain::{ConfigPosition, Error, NodeId, Revision, Violations};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::{duration, timestamp};

fn node_id(text: &str) -> Result<NodeId, &'static str> {
    let id = text.strip_prefix("nodes/").and_then(NodeId::parse);
    id.ok_or("use the form nodes/{role}.{name}, such as nodes/delivery.web-1")
}

pub(crate) fn get(request: v1::GetNodeRequest) -> Result<NodeId, Error> {
    single("name", node_id(&request.name))
}

pub(crate) fn accept(request: v1::AcceptSnapshotRequest) -> Result<AcceptSnapshot, Error> {
    let mut violations = Violations::new();
    let node = violations.take("name", node_id(&request.name));
    let epoch = violations.take("epoch", epoch(&request.epoch));
    if request.revision < 0 {
        violations.add("revision", "must not be negative: use the revision that the node shows");
    }
    let revision = Revision(request.revision);
    let command = || {
        let snapshot = ConfigPosition { epoch: epoch?, revision };
        Some(AcceptSnapshot { node: node?, snapshot })
    };
    finish(violations, command())
}

pub(crate) fn message(view: &NodeView) -> v1::Node {
    let NodeView { report, newest, now } = view;
    let behind = match report.epoch == newest.epoch {
        true => newest.revision.0.saturating_sub(report.applied.0).max(0),
        false => newest.revision.0,
    };
    v1::Node {
        name: name(&report.id()),
        role: wire_role(report.role).into(),
        live: report.is_live(*now),
        epoch: report.epoch.to_string(),
        applied_revision: report.applied.0,
        lag: behind,
        staleness: Some(duration(report.staleness)),
        refused: report.refused.iter().map(refused_message).collect(),
        held: report.held.as_ref().map(held_message),
        version: report.version.clone(),
        start_time: Some(timestamp(report.started_at)),
        report_time: Some(timestamp(report.reported_at)),
    }
}

pub(crate) fn messages(list: &NodeList) -> v1::ListNodesResponse {
    v1::ListNodesResponse {
        nodes: list.nodes.iter().map(message).collect(),
        epoch: list.newest.epoch.to_string(),
        revision: list.newest.revision.0,
    }
}
