//! The standing of key rings on the wire.

use super::{
    finish,
    key_ring::{overlap, pause_message, seen, shown, wire_state},
    single, value,
};
use crate::{
    key_pause::PauseRotation,
    key_reveal::RevealKey,
    key_ring::{SeenRing, SwitchKey},
    key_status::KeyRingStatus,
    names::{KeyName, KeyRingName, OwnerName},
};
use turnbuckle_domain::{
    AnswerCounts, Error, Key, KeyStanding, NodeApplied, RetireVerdict, Revision, RotationStage,
    StepAnswers, Violations,
};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::timestamp;

pub(crate) fn get(request: v1::GetKeyRingStatusRequest) -> Result<KeyRingName, Error> {
    single("name", KeyRingName::parse(&request.name))
}

fn required_reason(violations: &mut Violations, text: String) -> Option<String> {
    if text.trim().is_empty() {
        violations.add("reason", "is required: say why, for whoever looks later");
    }
    violations.take("reason", value::reason(text))
}

/// The ring of an endpoint. A source's sender decides which key it signs with: to hold a key that it
/// still uses, nothing needs to be paused.
fn signing_ring(violations: &mut Violations, parent: &str, etag: &str) -> Option<SeenRing> {
    let ring = seen(violations, parent, etag);
    if matches!(OwnerName::parse(parent), Ok(OwnerName::Source(_))) {
        violations.add(
            "parent",
            "is a source: only the rotation of an endpoint's keys can be paused; a source's key is \
             kept longer by a roll-back or by an activation with a longer overlap",
        );
    }
    ring
}

pub(crate) fn pause(request: v1::PauseRotationRequest) -> Result<PauseRotation, Error> {
    let mut violations = Violations::new();
    let ring = signing_ring(&mut violations, &request.parent, &request.etag);
    let reason = required_reason(&mut violations, request.reason);
    let command = || Some(PauseRotation { ring: ring?, reason: reason? });
    finish(violations, command())
}

pub(crate) fn resume(request: v1::ResumeRotationRequest) -> Result<SwitchKey, Error> {
    let mut violations = Violations::new();
    let ring = signing_ring(&mut violations, &request.parent, &request.etag);
    let owner = ring.as_ref().map(|ring| &ring.owner);
    let overlap = violations.take("overlap", overlap(request.overlap.as_ref(), owner));
    let command = || Some(SwitchKey { ring: ring?, overlap: overlap? });
    finish(violations, command())
}

pub(crate) fn reveal(request: v1::RevealKeyRequest) -> Result<RevealKey, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", KeyName::parse(&request.name));
    let reason = required_reason(&mut violations, request.reason);
    let name = name.and_then(|KeyName { owner, key }| match owner {
        OwnerName::Endpoint(endpoint) => Some(RevealKey { endpoint, key }),
        OwnerName::Source(_) => {
            violations.add(
                "name",
                "is a key of a source: only secrets of endpoints are shown again; its sender has \
                 it, or stage another key",
            );
            None
        }
    });
    finish(violations, reason.and(name))
}

const fn wire_stage(stage: RotationStage) -> v1::RotationStage {
    match stage {
        RotationStage::Idle => v1::RotationStage::Idle,
        RotationStage::Staged => v1::RotationStage::Staged,
        RotationStage::Overlap => v1::RotationStage::Overlap,
        RotationStage::Paused => v1::RotationStage::Paused,
        RotationStage::NoSigner => v1::RotationStage::NoSigner,
    }
}

fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn answers(answers: AnswerCounts) -> v1::AnswerCounts {
    v1::AnswerCounts {
        accepted: count(answers.accepted),
        denied: count(answers.denied),
        other: count(answers.other),
    }
}

fn step(step: &StepAnswers) -> v1::StepAnswers {
    v1::StepAnswers {
        before: Some(answers(step.before)),
        after: Some(answers(step.after)),
        jump: step.jump().unwrap_or_default(),
    }
}

fn node(node: &NodeApplied) -> v1::NodeStatus {
    v1::NodeStatus {
        node: node.node.clone(),
        applied_revision: node.revision.0,
        report_time: Some(timestamp(node.at)),
    }
}

fn key(status: &KeyRingStatus, key: &Key) -> Option<v1::KeyStatus> {
    let is_it = |standing: &&KeyStanding| standing.key == key.id;
    let standing = status.standing.keys.iter().find(is_it)?;
    let traffic = standing.traffic.as_ref();
    let test = traffic.and_then(|traffic| traffic.last_test.as_ref());
    Some(v1::KeyStatus {
        name: KeyName { owner: status.view.owner.clone(), key: key.id }.to_string(),
        state: wire_state(standing.state).into(),
        fingerprint: key.fingerprint.clone(),
        signatures: traffic.map_or(0, |traffic| count(traffic.signatures)),
        // At most 1,000.
        share_percent: f64::from(u32::try_from(standing.share_per_mille).unwrap_or(0)) / 10.0,
        last_use_time: traffic.and_then(|traffic| traffic.last_used_at).map(timestamp),
        last_test_time: test.map(|test| timestamp(test.at)),
        last_test_outcome: test.map(|test| test.outcome.clone().into_owned()).unwrap_or_default(),
        last_test_http_status: test.and_then(|test| test.status).unwrap_or_default().into(),
        retire_time: key.retire_at.map(timestamp),
    })
}

pub(crate) fn message(status: &KeyRingStatus) -> v1::KeyRingStatus {
    let (view, standing) = (&status.view, &status.standing);
    let Revision(revision) = view.ring.revision;
    let keys = shown(&view.ring.keys, view.at);
    v1::KeyRingStatus {
        name: KeyRingName(view.owner.clone()).to_string(),
        stage: wire_stage(standing.stage).into(),
        summary: standing.summary.clone(),
        keys: keys.into_iter().filter_map(|one| key(status, one)).collect(),
        step: standing.step.as_ref().map(step),
        safe_to_retire: standing.verdict == RetireVerdict::Safe,
        safe_to_retire_reasons: standing.reasons.clone(),
        next_steps: standing.next.clone(),
        pause: view.ring.pause.as_ref().map(pause_message),
        nodes: status.evidence.nodes.iter().map(node).collect(),
        etag: view.ring.revision.etag(),
        revision,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_and_reveals_say_why_and_every_fault_is_told_at_once() {
        let error = pause(v1::PauseRotationRequest::default()).unwrap_err().to_string();
        for part in ["parent: ", "etag: is required", "reason: is required"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        let error = reveal(v1::RevealKeyRequest::default()).unwrap_err().to_string();
        for part in ["name: ", "reason: is required"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        let name = "tenants/a/sources/b/keys/key_0123456789abcdefghjkmnpqr0".to_owned();
        let error = reveal(v1::RevealKeyRequest { name, reason: "lost".to_owned() });
        assert!(error.unwrap_err().to_string().contains("name: is a key of a source"));
        let late = prost_types::Duration { seconds: 31 * 86_400, nanos: 0 };
        let resumed =
            resume(v1::ResumeRotationRequest { overlap: Some(late), ..Default::default() });
        assert!(resumed.unwrap_err().to_string().contains("use 0 s to 30 d"));
    }

    #[test]
    fn the_keys_of_a_source_cannot_be_paused() {
        let (parent, etag) = ("tenants/a/sources/b".to_owned(), "\"4\"".to_owned());
        let paused = pause(v1::PauseRotationRequest {
            parent: parent.clone(),
            etag: etag.clone(),
            reason: "denials".to_owned(),
            ..Default::default()
        });
        let resumed = resume(v1::ResumeRotationRequest { parent, etag, ..Default::default() });
        for error in [paused.unwrap_err(), resumed.unwrap_err()] {
            assert!(error.to_string().contains("parent: is a source: only"), "{error}");
        }
    }
}
