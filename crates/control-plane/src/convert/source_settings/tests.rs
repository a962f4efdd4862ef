//! Settings there and back, and what is refused.

use super::*;
use turnbuckle_domain::SourceSettings;

fn header(name: &str) -> v1::ValueSource {
    let part = v1::value_part::Part::Header(name.to_owned());
    v1::ValueSource { parts: vec![v1::ValuePart { part: Some(part) }], separator: String::new() }
}

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

fn faults(read: impl FnOnce(&mut Violations) -> bool) -> String {
    let mut violations = Violations::new();
    assert!(!read(&mut violations) || !violations.is_empty());
    violations.into_error().to_string()
}

#[test]
fn empty_groups_are_the_defaults() {
    let mut violations = Violations::new();
    let none = &mut violations;
    let settings = SourceSettings {
        event: event(none, v1::EventMapping::default()).unwrap(),
        dedup: dedup(none, v1::DedupSettings::default()).unwrap(),
        ordering: ordering(none, v1::OrderingSettings::default()).unwrap(),
        timestamp: None,
        limits: intake(none, v1::IntakeLimits::default()).unwrap(),
        answers: answers(none, &v1::AnswerSettings::default()).unwrap(),
        handshake: handshake(0).unwrap(),
        unprocessable: unprocessable(0).unwrap(),
        receipts: receipts(none, v1::ReceiptSettings::default()).unwrap(),
    };
    assert!(violations.is_empty());
    assert_eq!(settings, SourceSettings::default());
}

#[test]
fn what_goes_out_comes_back_the_same() {
    let mut violations = Violations::new();
    let none = &mut violations;
    let rule = v1::OrderingRule {
        event_types: vec!["order.*".to_owned(), "*".to_owned()],
        subject: "data.id".to_owned(),
        sequence: "data[\"the version\"]".to_owned(),
    };
    let wire = v1::OrderingSettings {
        policy: v1::OrderingPolicy::Hold.into(),
        hold_timeout: seconds(5),
        rules: vec![rule],
        final_states: Some(v1::FinalStates {
            path: "data.status".to_owned(),
            values: vec!["paid".to_owned()],
        }),
        retention: seconds(3600),
    };
    assert_eq!(wire_ordering(&ordering(none, wire.clone()).unwrap()), wire);
    for mode in [v1::MissingIdMode::BodyHash, v1::MissingIdMode::Accept, v1::MissingIdMode::Refuse]
    {
        let hashes = mode == v1::MissingIdMode::BodyHash;
        let wire = v1::DedupSettings {
            event_id: vec![header("x-id")],
            missing_id_mode: mode.into(),
            body_hash_window: seconds(60).filter(|_| hashes),
            window: seconds(3600),
            excluded_fields: vec!["attempt".to_owned()],
            unsigned_id_window: seconds(30),
        };
        assert_eq!(wire_dedup(&dedup(none, wire.clone()).unwrap()), wire);
    }
    let wire = v1::EventMapping {
        event_type: vec![header("x-topic")],
        known_versions: vec!["1".to_owned()],
        unknown_version_mode: v1::UnknownVersionMode::DeadLetter.into(),
        items: "events[*]".to_owned(),
        form_field: "payload".to_owned(),
        ..Default::default()
    };
    assert_eq!(wire_event(&event(none, wire.clone()).unwrap()), wire);
    let limits = wire_intake(&IntakeLimits::default());
    assert_eq!(wire_intake(&intake(none, limits.clone()).unwrap()), limits);
    assert!(violations.is_empty());
}

#[test]
fn header_names_have_one_spelling() {
    let mut violations = Violations::new();
    let wire =
        v1::EventMapping { event_type: vec![header("X-GitHub-Event")], ..Default::default() };
    let read = event(&mut violations, wire).unwrap();
    assert_eq!(read.event_type, [ValueSource::header("x-github-event")]);
}

#[test]
fn every_malformed_field_is_named() {
    let text = faults(|violations| {
        let wire = v1::EventMapping {
            event_type: vec![
                v1::ValueSource { parts: vec![v1::ValuePart::default()], ..Default::default() },
                v1::ValueSource {
                    parts: vec![v1::ValuePart {
                        part: Some(v1::value_part::Part::JsonPath("a..b".to_owned())),
                    }],
                    ..Default::default()
                },
            ],
            items: "[".to_owned(),
            unknown_version_mode: 9,
            ..Default::default()
        };
        event(violations, wire).is_some()
    });
    for field in [
        "source.event.event_type[0].parts[0]: is empty",
        "source.event.event_type[1].parts[0].json_path: has no field name at byte 1",
        "source.event.items",
        "source.event.unknown_version_mode: is 9",
    ] {
        assert!(text.contains(field), "{field} is not in {text}");
    }
}

#[test]
fn bounds_are_named_with_the_field() {
    let text = faults(|violations| {
        let wire = v1::IntakeLimits {
            max_body_bytes: 5 * 1024 * 1024,
            max_headers: -1,
            read_timeout: seconds(31),
            ..Default::default()
        };
        intake(violations, wire).is_some()
    });
    assert!(
        text.contains("source.limits.max_body_bytes: is 5242880; use 1024 to 4194304"),
        "{text}"
    );
    assert!(text.contains("source.limits.max_headers: is -1; use 1 to 256"), "{text}");
    assert!(
        text.contains("source.limits.read_timeout: is out of bounds; use 1 s to 30 s"),
        "{text}"
    );
    let text = faults(|violations| {
        let wire = v1::DedupSettings { window: seconds(32 * 86_400), ..Default::default() };
        dedup(violations, wire).is_some()
    });
    assert!(text.contains("source.dedup.window: is out of bounds; use 1 s to 31 d"), "{text}");
}

#[test]
fn a_duration_without_its_mode_is_a_contradiction() {
    let text = faults(|violations| {
        let wire = v1::OrderingSettings { hold_timeout: seconds(5), ..Default::default() };
        ordering(violations, wire).is_some()
    });
    assert!(text.contains("source.ordering.hold_timeout: is for the policy HOLD"), "{text}");
    let text = faults(|violations| {
        let wire = v1::DedupSettings {
            missing_id_mode: v1::MissingIdMode::Accept.into(),
            body_hash_window: seconds(60),
            ..Default::default()
        };
        dedup(violations, wire).is_some()
    });
    assert!(text.contains("source.dedup.body_hash_window: is for BODY_HASH"), "{text}");
}
