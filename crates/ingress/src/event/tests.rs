use super::*;
use std::{collections::BTreeMap, time::Duration};
use turnbuckle_domain::{
    EventMapping, IngestPath, IngestToken, Labels, Meta, OrderingRule, ResourceId, SchemeChoice,
    SourceId, TenantId, TypePattern, ValuePart, ValueSource,
};
use uuid::Uuid;

pub(crate) fn source(settings: SourceSettings) -> Source {
    Source {
        id: SourceId::from_uuid(Uuid::from_u128(1)),
        tenant: TenantId::from_uuid(Uuid::from_u128(2)),
        slug: ResourceId::new("acme").unwrap(),
        display_name: String::new(),
        scheme: SchemeChoice::Preset("github".to_owned()),
        scheme_settings: BTreeMap::new(),
        path: IngestPath::new(IngestToken::from_random([7; IngestToken::LENGTH])),
        public_url: None,
        settings,
        disabled: None,
        labels: Labels::default(),
        meta: Meta::default(),
    }
}

struct Sent<'a> {
    headers: Vec<(&'a str, &'a str)>,
    body: &'static str,
    message_id: Option<&'a str>,
}

fn json(body: &'static str) -> Sent<'static> {
    Sent { headers: vec![("content-type", JSON)], body, message_id: None }
}

fn events(settings: SourceSettings, sent: &Sent<'_>) -> Result<Items, NoEvent> {
    events_by("github", settings, sent)
}

fn events_by(preset: &str, settings: SourceSettings, sent: &Sent<'_>) -> Result<Items, NoEvent> {
    let source = source(settings);
    let body = Bytes::from_static(sent.body.as_bytes());
    let content_type = sent.headers.iter().find(|(name, _)| *name == "content-type");
    let request = Request {
        method: "POST",
        url: "https://hooks.example/in?kind=q",
        headers: &sent.headers,
        body: &body,
    };
    let message_id = sent.message_id.map(|text| MessageId { text: text.to_owned(), signed: false });
    let message = Message {
        request: &request,
        body: &body,
        content_type: content_type.map_or("", |(_, value)| value),
        message_id: message_id.as_ref(),
    };
    let scheme = turnbuckle_signing::scheme::preset(preset).unwrap().scheme.clone();
    let mapping = Mapping::of(&source.settings, &scheme).unwrap();
    mapping.events(&source, &message)
}

fn one(settings: SourceSettings, sent: &Sent<'_>) -> Result<EventDraft, NoEvent> {
    events(settings, sent)?.remove(0).map(|mapped| mapped.event.draft)
}

fn header(name: &str) -> ValuePart {
    ValuePart::Header(name.to_owned())
}

#[test]
fn the_usual_fields_are_found_without_settings() {
    let sent = json(
        r#"{"event_id":"e1","event_type":"order.paid","event_version":"2","occurred_at":"2023-11-14T22:13:20Z"}"#,
    );
    let draft = one(SourceSettings::default(), &sent).unwrap();
    assert_eq!((draft.event_id.as_str(), draft.event_type.as_str()), ("e1", "order.paid"));
    assert_eq!((draft.event_version.as_str(), draft.source.as_str()), ("2", "acme"));
    assert_eq!(draft.occurred_at, Some(Timestamp::from_micros(1_700_000_000_000_000)));
    assert_eq!(&draft.data[..], sent.body.as_bytes());
}

#[test]
fn parts_are_joined_and_the_first_that_is_whole_counts() {
    let value = |parts, separator: &str| ValueSource { parts, separator: separator.to_owned() };
    let event_type = vec![
        value(vec![ValuePart::Fixed("gh".into()), header("x-none")], "."),
        value(vec![ValuePart::Fixed("gh".into()), header("x-event")], "."),
    ];
    let mapping = EventMapping { event_type, ..EventMapping::default() };
    let settings = SourceSettings { event: mapping, ..SourceSettings::default() };
    let mut sent = json(r#"{"id":7}"#);
    sent.headers.push(("x-event", "pull_request"));
    sent.message_id = Some("delivery-1");
    let draft = one(settings, &sent).unwrap();
    assert_eq!(draft.event_type, "gh.pull_request");
    // The id that the scheme reads goes before the usual fields.
    assert_eq!(draft.event_id, "delivery-1");
}

#[test]
fn a_request_without_a_type_or_with_two_ids_is_no_event() {
    let no_type = one(SourceSettings::default(), &json(r#"{"id":"1"}"#));
    assert!(matches!(no_type, Err(NoEvent::Unusable(_))));
    let twice = one(SourceSettings::default(), &json(r#"{"type":"a","id":"1","id":"2"}"#));
    assert!(matches!(twice, Err(NoEvent::Unusable(_))));
    let text = one(SourceSettings::default(), &json("no json"));
    assert!(matches!(text, Err(NoEvent::Unusable(_))));
}

#[test]
fn only_known_versions_pass() {
    let event = EventMapping { known_versions: vec!["1".into()], ..EventMapping::default() };
    let settings = || SourceSettings { event: event.clone(), ..SourceSettings::default() };
    assert!(one(settings(), &json(r#"{"type":"a"}"#)).is_ok());
    let other = one(settings(), &json(r#"{"type":"a","event_version":"9"}"#));
    assert_eq!(other.err(), Some(NoEvent::UnknownVersion));
}

#[test]
fn a_payload_in_a_form_is_taken_out_of_it() {
    let event = EventMapping { form_field: Some("payload".into()), ..EventMapping::default() };
    let settings = || SourceSettings { event: event.clone(), ..SourceSettings::default() };
    let form = |body| Sent { headers: vec![("content-type", FORM)], body, message_id: None };
    let draft = one(settings(), &form("x=1&payload=%7B%22type%22%3A%22a%22%7D")).unwrap();
    assert_eq!((&draft.data[..], draft.content_type.as_str()), (&br#"{"type":"a"}"#[..], JSON));
    assert!(one(settings(), &form("x=1")).is_err());
    assert!(one(settings(), &form("payload=%7B%7D&payload=%7B%7D")).is_err());
    // The same sender may be set to JSON.
    assert!(one(settings(), &json(r#"{"type":"a"}"#)).is_ok());
}

#[test]
fn items_are_events_of_their_own_and_a_bad_one_harms_no_other() {
    let items = Some(DomainPath::parse("events").unwrap());
    let settings = SourceSettings {
        event: EventMapping { items, ..EventMapping::default() },
        ..SourceSettings::default()
    };
    let mut sent = json(r#"{"events":[{"type":"a","id":"1"},{"id":"2"},{"type":"b"}]}"#);
    sent.message_id = Some("m");
    let found = events(settings, &sent).unwrap();
    let ids: Vec<_> = found
        .iter()
        .map(|item| item.as_ref().ok().map(|mapped| mapped.event.draft.event_id.as_str()))
        .collect();
    assert_eq!(ids, [Some("1"), None, Some("m:2")]);
    let first = found[0].as_ref().ok().unwrap();
    assert_eq!(&first.event.draft.data[..], br#"{"type":"a","id":"1"}"#);
}

#[test]
fn equal_items_without_ids_are_several_and_the_same_when_they_come_again() {
    let items = Some(DomainPath::parse("events").unwrap());
    let settings = SourceSettings {
        event: EventMapping { items, ..EventMapping::default() },
        ..SourceSettings::default()
    };
    let ids = |body| -> Vec<String> {
        let found = events(settings.clone(), &json(body)).unwrap();
        found.into_iter().map(|item| item.unwrap().event.draft.event_id).collect()
    };
    let pings = ids(r#"{"events":[{"type":"ping"},{"type":"pong"},{"type":"ping"}]}"#);
    assert_eq!(pings[2], format!("{}:2", pings[0]));
    assert_eq!(value::event_id(&pings[2]), pings[2]);
    assert_ne!(pings[0], pings[1]);
    // Tried again, in another order: the same three.
    let again = ids(r#"{"events":[{"type":"ping"},{"type":"ping"},{"type":"pong"}]}"#);
    assert_eq!((&again[0], &again[1], &again[2]), (&pings[0], &pings[2], &pings[1]));
    // Ids of their own are taken at their word.
    let named = ids(r#"{"events":[{"type":"a","id":"1"},{"type":"a","id":"1"}]}"#);
    assert_eq!(named, ["1", "1"]);
}

#[test]
fn every_element_is_an_event_or_told_as_none() {
    for (path, body, good, bad) in [
        ("events", r#"{"events":[{"type":"a"},7,{},{"type":"b"}]}"#, 2, 2),
        ("events[*]", r#"{"events":[]}"#, 0, 0),
        ("events[*]", r#"{"data":{"type":"a"}}"#, 0, 1),
        ("[*]", r#"{"type":"a"}"#, 0, 1),
        ("[*].inner", r#"[{"inner":{"type":"a"}},{"outer":{"type":"b"}},null]"#, 1, 2),
        ("e[*].c[*]", r#"{"e":[{"c":[{"type":"a"},{"type":"b"}]},{},{"c":[]},{"c":7}]}"#, 2, 2),
    ] {
        let items = Some(DomainPath::parse(path).unwrap());
        let settings = SourceSettings {
            event: EventMapping { items, ..EventMapping::default() },
            ..SourceSettings::default()
        };
        let found = events(settings, &json(body)).unwrap();
        let ok = found.iter().filter(|item| item.is_ok()).count();
        assert_eq!((ok, found.len() - ok), (good, bad), "{path} of {body}");
    }
}

#[test]
fn without_an_id_the_settings_decide() {
    let with = |without_id| {
        let mut settings = SourceSettings::default();
        settings.dedup.without_id = without_id;
        events(settings, &json(r#"{"type":"a"}"#)).unwrap().remove(0)
    };
    let accepted = with(WithoutId::Accept).ok().unwrap();
    assert!(accepted.event.draft.event_id.is_empty() && accepted.id_signed.is_none());
    assert!(with(WithoutId::Refuse).is_err());
    let hashed = with(WithoutId::BodyHash { window: Duration::from_secs(600) }).ok().unwrap();
    assert!(hashed.event.draft.event_id.starts_with("body:") && hashed.id_signed.is_none());
}

#[test]
fn subject_and_sequence_come_from_the_first_rule_for_the_type() {
    let rule = |pattern: &str, subject: &str| OrderingRule {
        patterns: vec![TypePattern::parse(pattern).unwrap()],
        subject: DomainPath::parse(subject).unwrap(),
        sequence: DomainPath::parse("v").unwrap(),
    };
    let mut settings = SourceSettings::default();
    settings.ordering.rules = vec![rule("other.*", "x"), rule("*", "o.id")];
    let draft = one(settings, &json(r#"{"type":"order.paid","o":{"id":"o1"},"v":12}"#)).unwrap();
    assert_eq!((draft.subject.as_str(), draft.sequence), ("o1", Some(12)));
}

#[test]
fn a_policy_watches_what_has_subject_and_sequence_and_says_what_is_missing() {
    let mut settings = SourceSettings::default();
    settings.ordering.rules = vec![OrderingRule {
        patterns: vec![TypePattern::parse("order.*").unwrap()],
        subject: DomainPath::parse("o.id").unwrap(),
        sequence: DomainPath::parse("v").unwrap(),
    }];
    settings.ordering.final_states = Some(turnbuckle_domain::FinalStates {
        path: DomainPath::parse("o.s").unwrap(),
        values: vec!["done".to_owned(), "7".to_owned()],
    });
    let found = |settings: &SourceSettings, body| {
        let mapped = events(settings.clone(), &json(body)).unwrap().remove(0).ok().unwrap();
        let is_final = mapped.event.order.map(|order| order.is_final);
        (is_final, mapped.missing_order.map(MissingOrder::as_str))
    };
    let done = r#"{"type":"order.paid","o":{"id":"o1","s":"done"},"v":"12"}"#;
    // Nothing is asked of an order that nobody watches.
    assert_eq!(found(&settings, done), (None, None));
    settings.ordering.policy = turnbuckle_domain::OrderingPolicy::Mark;
    for (body, expected) in [
        (done, (Some(true), None)),
        (r#"{"type":"order.paid","o":{"id":1,"s":7},"v":12}"#, (Some(true), None)),
        (r#"{"type":"order.paid","o":{"id":"o1","s":"open"},"v":12}"#, (Some(false), None)),
        (r#"{"type":"order.paid","o":{"id":"o1"},"v":-1}"#, (Some(false), None)),
        (r#"{"type":"order.paid","o":{"id":""},"v":12}"#, (None, Some("subject"))),
        (r#"{"type":"order.paid","v":12}"#, (None, Some("subject"))),
        (r#"{"type":"order.paid","o":{"id":"o1"},"v":1.5}"#, (None, Some("sequence"))),
        (
            r#"{"type":"order.paid","o":{"id":"o1"},"v":9223372036854775808}"#,
            (None, Some("sequence")),
        ),
        // No rule speaks of it.
        (r#"{"type":"push","v":12}"#, (None, None)),
    ] {
        assert_eq!(found(&settings, body), expected, "{body}");
    }
}

#[test]
fn what_is_remembered_beside_an_id_is_what_is_signed() {
    let rule = |preset: &str, message_id, body| {
        let sent = Sent { message_id, ..json(body) };
        let mapped =
            events_by(preset, SourceSettings::default(), &sent).unwrap().remove(0).unwrap();
        (mapped.id_signed, mapped.event.dedup.unwrap())
    };
    let key = |rule: &turnbuckle_domain::DedupRule| rule.body.map(|body| body.key());
    // An id in a header that the signature leaves out: the body, whatever the id.
    let one = rule("github", Some("a"), r#"{"type":"push","n":1}"#);
    let other = rule("github", Some("b"), r#"{"type":"push","n":1}"#);
    assert_eq!((one.0, key(&one.1).is_some()), (Some(false), true));
    assert_eq!(key(&one.1), key(&other.1));
    assert_ne!(key(&one.1), key(&rule("github", Some("b"), r#"{"type":"push","n":2}"#).1));
    // An id inside the signed body: nothing.
    let signed = rule("github", None, r#"{"type":"push","id":"a"}"#);
    assert_eq!((signed.0, key(&signed.1)), (Some(true), None));
    // A signed token and a body that anybody can change: the token, for as long as its time is valid.
    let token = |id: &str| match id {
        "a" => r#"{"id":"a","type":"x","signature":{"token":"t","timestamp":"1"}}"#,
        _ => r#"{"id":"b","type":"x","signature":{"token":"t","timestamp":"1"}}"#,
    };
    let (one, other) = (rule("mailgun", None, token("a")), rule("mailgun", None, token("b")));
    assert_eq!(one.0, Some(false));
    assert!(key(&one.1).is_some() && key(&one.1) == key(&other.1));
    assert!(one.1.body.unwrap().window >= Duration::from_secs(9 * 3600));
}
