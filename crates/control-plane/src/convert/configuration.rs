//! The configuration stream on the wire; what it carries is in the crate of the stream.

use super::finish;
use std::time::Duration;
use turnbuckle_config_stream::wire::{domain_epoch, domain_role, wire_epoch};
use turnbuckle_domain::{
    ConfigPosition, Epoch, Error, HeldSnapshot, NodeId, NodeReport, RefusedResource, ResourceId,
    Revision, Timestamp, Violations, node_limits,
};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::{from_duration, from_timestamp};

/// Longest kind and uid of a refused resource: a word and a UUID.
const NAME_CHARS: usize = 63;

/// A node that asks for a stream, and the state that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Watch {
    pub(crate) node: NodeId,
    pub(crate) known: Option<ConfigPosition>,
}

/// Reads an epoch.
pub(super) fn epoch(text: &str) -> Result<Epoch, &'static str> {
    let uuid = text.parse().map(Epoch::from_uuid);
    uuid.map_err(|_| "is no epoch: use the one that the server gave, a UUID")
}

/// Reads an epoch that a node sends.
fn node_epoch(text: &str) -> Result<Epoch, &'static str> {
    epoch(text).map(domain_epoch)
}

fn node(violations: &mut Violations, name: &str, role: i32) -> Option<NodeId> {
    let name = violations.take("node", ResourceId::new(name));
    let role = domain_role(role).ok_or("is required: NODE_ROLE_DELIVERY or NODE_ROLE_INGRESS");
    let role = violations.take("role", role);
    Some(NodeId { role: role?, name: name? })
}

fn revision(violations: &mut Violations, field: &str, revision: i64) -> Revision {
    if revision < 0 {
        violations.add(field, "must not be negative");
    }
    Revision(revision)
}

pub(crate) fn watch(request: v1::WatchRequest) -> Result<Watch, Error> {
    let mut violations = Violations::new();
    let node = node(&mut violations, &request.node, request.role);
    let known = match request.epoch.as_str() {
        "" => None,
        text => violations.take("epoch", node_epoch(text)),
    };
    let revision = revision(&mut violations, "known_revision", request.known_revision);
    let known = known.map(|epoch| ConfigPosition { epoch, revision });
    finish(violations, node.map(|node| Watch { node, known }))
}

pub(crate) fn get_revision(request: v1::GetRevisionRequest) -> Result<NodeId, Error> {
    let mut violations = Violations::new();
    let node = node(&mut violations, &request.node, request.role);
    finish(violations, node)
}

pub(crate) fn revision_message(at: &ConfigPosition) -> v1::GetRevisionResponse {
    v1::GetRevisionResponse { epoch: wire_epoch(at.epoch).to_string(), revision: at.revision.0 }
}

pub(crate) fn report(request: v1::ReportAppliedRequest) -> Result<NodeReport, Error> {
    let mut violations = Violations::new();
    let node = node(&mut violations, &request.node, request.role);
    let epoch = violations.take("epoch", node_epoch(&request.epoch));
    let applied = revision(&mut violations, "revision", request.revision);
    let started_at = request.start_time.as_ref().and_then(from_timestamp);
    let started_at = violations.take("start_time", started_at.ok_or("is required"));
    let staleness = request.staleness.as_ref().map_or(Some(Duration::ZERO), from_duration);
    let staleness =
        violations.take("staleness", staleness.ok_or("is no duration, or a negative one"));
    short(&mut violations, "version", &request.version, node_limits::VERSION_CHARS);
    let held = held(&mut violations, request.held.as_ref());
    let refused = refused(&mut violations, request.refused);
    let report = || {
        let NodeId { role, name } = node?;
        Some(NodeReport {
            node: name,
            role,
            epoch: epoch?,
            applied,
            // Set when it is kept: the node's clock does not count.
            reported_at: Timestamp::EPOCH,
            started_at: started_at?,
            version: request.version,
            refused,
            staleness: staleness?,
            held,
        })
    };
    let report = report();
    finish(violations, report)
}

fn short(violations: &mut Violations, field: &str, text: &str, limit: usize) {
    if text.chars().count() > limit || text.contains(char::is_control) {
        violations
            .add(field, format!("has control characters or is longer than {limit} characters"));
    }
}

fn held(violations: &mut Violations, held: Option<&v1::HeldSnapshot>) -> Option<HeldSnapshot> {
    let held = held?;
    let epoch = violations.take("held.epoch", node_epoch(&held.epoch));
    let revision = revision(violations, "held.revision", held.revision);
    let mut count = |field: &str, count: i64| {
        let fits = u32::try_from(count).map_err(|_| "is no number of resources");
        violations.take(field, fits)
    };
    let (present, removed) =
        (count("held.present", held.present), count("held.removed", held.removed));
    let at = ConfigPosition { epoch: epoch?, revision };
    Some(HeldSnapshot { at, present: present?, removed: removed? })
}

/// More than are kept are dropped: a node that refuses so much shows enough by the first ones.
fn refused(violations: &mut Violations, refused: Vec<v1::RefusedResource>) -> Vec<RefusedResource> {
    let kept = refused.into_iter().take(node_limits::REFUSED_MAX).enumerate();
    kept.map(|(index, refused)| {
        let v1::RefusedResource { kind, uid, revision: at, reason } = refused;
        let field = |part: &str| format!("refused[{index}].{part}");
        short(violations, &field("kind"), &kind, NAME_CHARS);
        short(violations, &field("uid"), &uid, NAME_CHARS);
        short(violations, &field("reason"), &reason, node_limits::REASON_CHARS);
        let revision = revision(violations, &field("revision"), at);
        RefusedResource { kind, uid, revision, reason }
    })
    .collect()
}

pub(crate) fn report_message(accepted: Option<&ConfigPosition>) -> v1::ReportAppliedResponse {
    v1::ReportAppliedResponse {
        accepted_epoch: accepted.map(|at| wire_epoch(at.epoch).to_string()).unwrap_or_default(),
        accepted_revision: accepted.map_or(0, |at| at.revision.0),
    }
}

pub(super) fn refused_message(refused: &RefusedResource) -> v1::RefusedResource {
    v1::RefusedResource {
        kind: refused.kind.clone(),
        uid: refused.uid.clone(),
        revision: refused.revision.0,
        reason: refused.reason.clone(),
    }
}

pub(super) fn held_message(held: &HeldSnapshot) -> v1::HeldSnapshot {
    v1::HeldSnapshot {
        epoch: held.at.epoch.to_string(),
        revision: held.at.revision.0,
        present: held.present.into(),
        removed: held.removed.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_request() -> v1::ReportAppliedRequest {
        v1::ReportAppliedRequest {
            node: "web-1".to_owned(),
            role: v1::NodeRole::Delivery.into(),
            epoch: "0190c5f0-0000-7000-8000-000000000001".to_owned(),
            revision: 7,
            start_time: Some(prost_types::Timestamp { seconds: 1, nanos: 0 }),
            version: "1.0".to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn a_good_report_is_taken_as_it_is() {
        let taken = report(report_request()).unwrap();
        assert_eq!(taken.id().to_string(), "delivery.web-1");
        assert_eq!((taken.applied, taken.held), (Revision(7), None));
    }

    #[test]
    fn a_bad_report_is_told_everything_at_once() {
        let bad = v1::ReportAppliedRequest {
            node: "Web 1".to_owned(),
            role: 9,
            epoch: "x".to_owned(),
            revision: -1,
            start_time: None,
            version: "v".repeat(64),
            staleness: Some(prost_types::Duration { seconds: -1, nanos: 0 }),
            held: Some(v1::HeldSnapshot { present: -1, ..Default::default() }),
            refused: vec![v1::RefusedResource { reason: "r".repeat(201), ..Default::default() }],
        };
        let text = report(bad).unwrap_err().to_string();
        for field in [
            "node: ",
            "role: ",
            "epoch: ",
            "revision: ",
            "start_time: ",
            "version: ",
            "staleness: ",
            "held.epoch: ",
            "held.present: ",
            "refused[0].reason: ",
        ] {
            assert!(text.contains(field), "{field} {text}");
        }
    }

    #[test]
    fn more_refusals_than_are_kept_are_dropped() {
        let refused = vec![v1::RefusedResource::default(); node_limits::REFUSED_MAX + 1];
        let taken = report(v1::ReportAppliedRequest { refused, ..report_request() }).unwrap();
        assert_eq!(taken.refused.len(), node_limits::REFUSED_MAX);
    }

    #[test]
    fn a_watch_without_an_epoch_knows_nothing() {
        let request = v1::WatchRequest {
            node: "web-1".to_owned(),
            role: v1::NodeRole::Ingress.into(),
            epoch: String::new(),
            known_revision: 9,
        };
        assert_eq!(watch(request.clone()).unwrap().known, None);
        let bad = v1::WatchRequest { epoch: "1".to_owned(), known_revision: -1, ..request };
        let text = watch(bad).unwrap_err().to_string();
        assert!(text.contains("epoch: ") && text.contains("known_revision: "), "{text}");
    }
}
