//! Settings, tokens and paths of sources.

use super::source_limits as limits;
use super::*;
use crate::{Random as _, SeededRandom, TypePattern, Violations};

fn path(text: &str) -> JsonPath {
    JsonPath::parse(text).unwrap()
}

fn faults(settings: &SourceSettings) -> String {
    let mut violations = Violations::new();
    settings.check("source", Some(TimestampWindow::default()), &mut violations);
    violations.finish().err().map(|error| error.to_string()).unwrap_or_default()
}

fn full() -> SourceSettings {
    let composite = ValueSource {
        parts: vec![
            ValuePart::Fixed("github".to_owned()),
            ValuePart::Header("x-github-event".to_owned()),
        ],
        separator: ".".to_owned(),
    };
    let rule = OrderingRule {
        patterns: vec![TypePattern::parse("order.*").unwrap()],
        subject: path("data.id"),
        sequence: path("data.version"),
    };
    SourceSettings {
        event: EventMapping {
            event_type: vec![composite],
            event_version: vec![ValueSource::single(ValuePart::Query("v".to_owned()))],
            known_versions: vec!["1".to_owned()],
            unknown_version: UnknownVersionMode::DeadLetter,
            items: Some(path("events[*]")),
            form_field: Some("payload".to_owned()),
            ..EventMapping::default()
        },
        dedup: Dedup {
            event_id: vec![ValueSource::header("x-github-delivery")],
            without_id: WithoutId::BodyHash { window: Duration::from_millis(60_500) },
            excluded_fields: vec![path("attempt"), path("data[\"sent at\"]")],
            ..Dedup::default()
        },
        ordering: Ordering {
            policy: OrderingPolicy::Hold { timeout: limits::HOLD_DEFAULT },
            rules: vec![rule],
            final_states: Some(FinalStates {
                path: path("data.state"),
                values: vec!["paid".to_owned()],
            }),
            ..Ordering::default()
        },
        timestamp: Some(TimestampWindow::default()),
        answers: Answers {
            accepted: 204,
            duplicate: DuplicateAnswer::Conflict,
            body: AnswerBody::None,
        },
        handshake: HandshakeChoice::Off,
        unprocessable: Unprocessable::DeadLetter,
        receipts: ReceiptSettings {
            payload_retention: Duration::from_secs(60),
            headers: vec!["user-agent".to_owned()],
        },
        ..SourceSettings::default()
    }
}

#[test]
fn settings_are_stored_as_a_document_and_come_back() {
    for settings in [SourceSettings::default(), full()] {
        assert_eq!(faults(&settings), "");
        let stored = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<SourceSettings>(&stored).unwrap(), settings);
    }
}

#[test]
fn documents_of_other_releases_are_read() {
    let older = serde_json::from_str::<SourceSettings>("{}").unwrap();
    assert_eq!(older, SourceSettings::default());
    let newer = r#"{"answers":{"accepted":200,"mood":"x"},"later":1}"#;
    let newer = serde_json::from_str::<SourceSettings>(newer).unwrap();
    assert_eq!(newer.answers, Answers { accepted: 200, ..Answers::default() });
    for broken in [r#"{"dedup":{"window":"soon"}}"#, r#"{"dedup":{"window":"-1s"}}"#] {
        assert!(serde_json::from_str::<SourceSettings>(broken).is_err(), "{broken}");
    }
}

#[test]
fn every_fault_is_named_at_once() {
    let mut settings = full();
    settings.event.event_type[0].parts[1] = ValuePart::Header("X-Upper".to_owned());
    settings.event.event_version = vec![ValueSource { parts: vec![], separator: "\n".to_owned() }];
    settings.event.occurred_at = vec![ValueSource::single(ValuePart::JsonPath(path("a[*].b")))];
    settings.event.known_versions = vec!["a b".to_owned()];
    settings.dedup.window = Duration::from_secs(599);
    settings.ordering.rules[0].patterns.clear();
    settings.ordering.rules[0].sequence = path("[*]");
    settings.limits.content_types =
        vec!["application/json; charset=utf-8".to_owned(), "json".to_owned()];
    settings.answers.accepted = 302;
    settings.receipts.headers = vec!["authorization".to_owned(), "x-hub-signature".to_owned()];
    let text = faults(&settings);
    for field in [
        "source.event.event_type[0].parts[1].header: use a header name",
        "source.event.event_version[0].parts: is empty",
        "source.event.event_version[0].separator",
        "source.event.occurred_at[0].parts[0].json_path: stands for many values",
        "source.event.known_versions[0]",
        "source.dedup.window: is shorter than the 600 s",
        "source.ordering.rules[0].event_types: is empty",
        "source.ordering.rules[0].sequence",
        "source.limits.content_types[0]",
        "source.limits.content_types[1]",
        "source.answers.accepted_status: is 302",
        "source.receipts.headers[0]: may hold a credential",
        "source.receipts.headers[1]: may hold a credential",
    ] {
        assert!(text.contains(field), "{field} is not in {text}");
    }
}

#[test]
fn lists_are_bounded() {
    let mut settings = full();
    settings.dedup.excluded_fields = vec![path("a"); limits::EXCLUDED_FIELDS + 1];
    settings.dedup.event_id = vec![ValueSource::header("a"); limits::VALUE_SOURCES + 1];
    settings.ordering.rules = vec![settings.ordering.rules[0].clone(); limits::ORDERING_RULES + 1];
    let text = faults(&settings);
    for field in ["dedup.excluded_fields", "dedup.event_id", "ordering.rules"] {
        assert!(text.contains(&format!("source.{field}: has ")), "{text}");
    }
}

#[test]
fn an_order_needs_to_know_the_subject() {
    let mut settings = SourceSettings::default();
    assert_eq!(faults(&settings), "");
    settings.ordering.policy = OrderingPolicy::DropStale;
    assert!(faults(&settings).contains("source.ordering.rules: is empty"));
}

#[test]
fn a_window_of_its_own_decides_how_long_ids_are_remembered() {
    let mut settings = SourceSettings::default();
    settings.dedup.window = Duration::from_secs(120);
    assert!(faults(&settings).contains("600 s"));
    let minute = Duration::from_secs(60);
    settings.timestamp = Some(TimestampWindow { past: minute, future: minute });
    assert_eq!(faults(&settings), "");
}

fn token(seed: u64) -> IngestToken {
    let mut bytes = [0; IngestToken::LENGTH];
    SeededRandom::from_number(seed).fill(&mut bytes);
    IngestToken::from_random(bytes)
}

#[test]
fn tokens_are_long_differ_and_are_not_in_debug_text() {
    let (one, other) = (token(1), token(2));
    assert_ne!(one, other);
    assert_eq!(one.as_str().len(), IngestToken::LENGTH);
    assert_eq!(IngestToken::parse(one.as_str()), Some(one.clone()));
    assert!(!format!("{one:?}").contains(one.as_str()));
    for bad in ["", "abc", &"A".repeat(26), &"i".repeat(26), &format!("{}0", one.as_str())] {
        assert_eq!(IngestToken::parse(bad), None, "{bad}");
    }
}

#[test]
fn the_path_before_is_taken_until_its_time_is_over() {
    let at = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
    let minute = Duration::from_secs(60);
    let mut path = IngestPath::new(token(1));
    path.rotate(token(2), minute, at(0));
    let taken = |path: &IngestPath, now| path.tokens_at(now).cloned().collect::<Vec<_>>();
    assert_eq!(taken(&path, at(59)), [token(2), token(1)]);
    assert_eq!(taken(&path, at(60)), [token(2)]);
    path.rotate(token(3), minute, at(10));
    assert_eq!(taken(&path, at(11)), [token(3), token(2)]);
    path.rotate(token(4), Duration::ZERO, at(20));
    assert_eq!(taken(&path, at(20)), [token(4)]);
}

#[test]
fn scheme_documents_are_bounded() {
    assert!(SchemeDocument::new("").is_err());
    assert!(SchemeDocument::new("x".repeat(limits::SCHEME_BYTES)).is_ok());
    let error = SchemeDocument::new("x".repeat(limits::SCHEME_BYTES + 1)).unwrap_err();
    assert!(error.to_string().contains("use 1 to 16384"));
}
