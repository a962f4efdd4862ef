use super::*;
use crate::{
    AnswerCounts, KeyAlgorithm, KeyTest, SealedSecret, SignedAnswers, key_usage_limits::WRITE_EVERY,
};
use std::time::Duration;
use uuid::Uuid;

const HOUR: Duration = Duration::from_secs(3600);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn key(number: u128) -> Key {
    let sealed = SealedSecret::from_bytes(vec![1]);
    let id = KeyId::from_uuid(Uuid::from_u128(number));
    Key::staged(id, KeyAlgorithm::HmacSha256, format!("f{number}"), None, sealed, at(0))
}

fn rotated() -> KeyRing {
    let mut ring = KeyRing::with_first(key(1), at(0));
    ring.rotate(key(2), HOUR, false, at(10)).unwrap();
    ring.revision = Revision(7);
    ring
}

/// What was signed by these keys since the rotation.
fn signed(ring: &KeyRing, accepted: u64, denied: u64) -> Evidence {
    let row = SignedAnswers {
        revision: ring.revision,
        signers: ring.signers(at(11)).unwrap(),
        day: 0,
        answers: AnswerCounts { accepted, denied, other: 0 },
        last_used_at: at(11),
    };
    let usage = RingUsage { keys: Vec::new(), answers: vec![row] };
    Evidence { usage, ..Evidence::default() }
}

fn tested(mut evidence: Evidence, key: KeyId, status: u16) -> Evidence {
    let test = KeyTest { at: at(12), outcome: "delivered".into(), status: Some(status) };
    let last_test = Some(test);
    evidence.usage.keys.push(KeyTraffic { key, signatures: 1, last_used_at: None, last_test });
    evidence
}

#[test]
fn retiring_is_safe_only_when_the_receiver_has_shown_that_it_knows_the_new_key() {
    let ring = rotated();
    let new = ring.keys[0].id;
    let look = |evidence: &Evidence| Standing::of(&ring, evidence, at(20));
    let blind = look(&signed(&ring, 100, 0));
    assert_eq!((blind.stage, blind.verdict), (RotationStage::Overlap, RetireVerdict::NotSafe));
    assert!(blind.reasons[0].starts_with("Nothing proves"), "{:?}", blind.reasons);
    assert!(blind.next[0].starts_with("Test the active key alone"), "{:?}", blind.next);
    let refused = look(&tested(signed(&ring, 100, 0), new, 401));
    assert_eq!(refused.verdict, RetireVerdict::NotSafe);
    let proven = look(&tested(signed(&ring, 100, 0), new, 204));
    assert_eq!(proven.verdict, RetireVerdict::Safe, "{:?}", proven.reasons);
    assert_eq!(proven.keys.iter().map(|key| key.share_per_mille).collect::<Vec<_>>(), [1000; 2]);
    let jumped = look(&tested(signed(&ring, 10, 90), new, 204));
    assert_eq!(jumped.verdict, RetireVerdict::NotSafe);
    assert!(jumped.next[0].starts_with("Pause the rotation or roll back"), "{:?}", jumped.next);
    let quiet = look(&tested(Evidence::default(), new, 204));
    assert_eq!(quiet.reasons, ["No delivery was accepted since the last step."]);
}

#[test]
fn a_node_that_lags_behind_speaks_against_retiring() {
    let ring = rotated();
    let mut evidence = tested(signed(&ring, 100, 0), ring.keys[0].id, 204);
    let node = |name: &str, revision| NodeApplied {
        node: name.to_owned(),
        revision: Revision(revision),
        at: at(19),
        refused: Vec::new(),
    };
    evidence.nodes = vec![node("eu-1", 7), node("eu-2", 6)];
    let standing = Standing::of(&ring, &evidence, at(20));
    assert_eq!(standing.verdict, RetireVerdict::NotSafe);
    assert_eq!(standing.reasons, ["eu-2 does not use the present state of the ring yet."]);
    let lags = |index: usize, now| evidence.nodes[index].lags(Revision(7), now);
    assert!(!lags(0, at(20)) && lags(1, at(20)) && !lags(1, at(79)), "it counts while it is alive");
    let silent = Standing::of(&ring, &evidence, at(200));
    assert_eq!(silent.verdict, RetireVerdict::NotSafe, "it may deliver on");
    assert!(silent.reasons[0].contains("make sure that it is gone"), "{:?}", silent.reasons);
    evidence.nodes[1].revision = Revision(8);
    evidence.refusing = vec![("eu-2".to_owned(), "algorithm cannot be used".to_owned())];
    let standing = Standing::of(&ring, &evidence, at(20));
    let refuses = "eu-2 refuses the present state of the ring: algorithm cannot be used.";
    assert_eq!((standing.verdict, standing.reasons[0].as_str()), (RetireVerdict::NotSafe, refuses));
    evidence.refusing.clear();
    let standing = Standing::of(&ring, &evidence, at(20));
    assert!(standing.reasons[0].contains("all 2 data planes"), "{:?}", standing.reasons);
}

#[test]
fn every_stage_says_what_signs_and_what_to_do() {
    let none = Evidence::default();
    let fresh = KeyRing::with_first(key(1), at(0));
    let stands = |ring: &KeyRing, now| Standing::of(ring, &none, now);
    let idle = stands(&fresh, at(1));
    assert_eq!((idle.stage, idle.verdict), (RotationStage::Idle, RetireVerdict::NothingRetires));
    assert!(idle.summary.ends_with("(f1) signs alone."), "{}", idle.summary);
    assert_eq!(idle.next, ["Nothing."]);

    let mut staged = fresh.clone();
    staged.stage(key(2), at(1)).unwrap();
    let standing = stands(&staged, at(1));
    assert_eq!(standing.stage, RotationStage::Staged);
    assert!(standing.summary.contains("(f2) is staged: it signs tests only"));
    assert!(standing.next[0].starts_with("Give the staged key to the receiver and test it"));
    let proven = tested(Evidence::default(), staged.keys[0].id, 200);
    assert!(Standing::of(&staged, &proven, at(1)).next[0].starts_with("Activate the staged key"));

    let mut paused = rotated();
    let overlap = stands(&paused, at(11));
    assert!(overlap.summary.contains("signs too until 1970-01-01T01:00:10Z; then"));
    paused.pause("denials jumped", at(12)).unwrap();
    let long_after = at(90 * 24 * 3600);
    let standing = stands(&paused, long_after);
    assert_eq!(standing.stage, RotationStage::Paused);
    assert!(standing.summary.contains("paused since 1970-01-01T00:00:12Z: denials jumped."));
    assert!(standing.next[0].contains("roll back, or resume"), "{:?}", standing.next);
    paused.resume(HOUR, long_after).unwrap();
    let resumed = stands(&paused, long_after + WRITE_EVERY);
    assert_eq!(resumed.stage, RotationStage::Overlap);
    assert!(resumed.summary.contains("It was paused, and resumed at"), "{}", resumed.summary);

    let mut empty = fresh;
    let id = empty.keys[0].id;
    empty.revoke(id, "leaked", at(1)).unwrap();
    let standing = stands(&empty, at(1));
    assert_eq!(standing.stage, RotationStage::NoSigner);
    assert!(standing.summary.starts_with("No key signs"), "{}", standing.summary);
}

#[test]
fn who_may_not_know_the_platform_sees_how_many_lag_and_not_which() {
    let ring = rotated();
    let mut evidence = signed(&ring, 5, 0);
    let node = |name: &str, revision| NodeApplied {
        node: name.to_owned(),
        revision: Revision(revision),
        at: at(11),
        refused: Vec::new(),
    };
    evidence.nodes =
        NodeApplied::numbered(vec![node("delivery.eu-1", 7), node("delivery.us-1", 6)]);
    let reasons = Standing::of(&ring, &evidence, at(11)).reasons.join(" ");
    assert!(reasons.contains("delivery node 2 does not use"), "{reasons}");
    assert!(!reasons.contains("us-1") && !reasons.contains("eu-1"), "{reasons}");
}
