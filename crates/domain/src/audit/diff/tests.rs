use super::*;
use crate::{
    EndpointId, EventTypeId, EventTypeVersionId, KeyAlgorithm, KeyId, Meta, ResourceId,
    SealedSecret, SignatureProfile, TenantId, VersionName,
};

fn endpoint() -> Endpoint {
    Endpoint {
        id: EndpointId::from_uuid(Uuid::from_u128(5)),
        tenant: TenantId::from_uuid(Uuid::from_u128(7)),
        slug: ResourceId::new("orders").unwrap(),
        display_name: "Orders".to_owned(),
        target: EndpointTarget::Http(HttpTarget {
            url: "https://user:hunter2@a.test:8443/hook?token=hunter2#hunter2".to_owned(),
            timeout: Duration::from_millis(1500),
            headers: BTreeMap::from([("authorization".to_owned(), "Bearer hunter2".to_owned())]),
            header_prefix: "webhook".to_owned(),
        }),
        signature_profile: SignatureProfile::StandardWebhooks,
        retry_policy: None,
        max_in_flight: 16,
        state: EndpointState::Active,
        labels: Labels::new([("team".to_owned(), "a".to_owned())]).unwrap(),
        meta: Meta::default(),
    }
}

fn http(endpoint: &mut Endpoint) -> &mut HttpTarget {
    let EndpointTarget::Http(http) = &mut endpoint.target else { panic!("no receiver") };
    http
}

fn changed(change: impl FnOnce(&mut Endpoint)) -> Vec<(String, Option<String>, Option<String>)> {
    let mut after = endpoint();
    change(&mut after);
    let changes = diff(&endpoint().fields(), &after.fields());
    changes.into_iter().map(|change| (change.field, change.before, change.after)).collect()
}

#[test]
fn a_difference_names_what_was_what_is_and_nothing_else() {
    assert_eq!(changed(|_| ()), []);
    let found = changed(|endpoint| {
        endpoint.display_name = String::new();
        http(endpoint).timeout = Duration::from_secs(3);
        endpoint.labels = Labels::new([("owner".to_owned(), "b".to_owned())]).unwrap();
        endpoint.state = EndpointState::Disabled { reason: "moved".to_owned() };
    });
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        found,
        [
            ("disable_reason".to_owned(), None, text("moved")),
            ("display_name".to_owned(), text("Orders"), None),
            ("http.timeout".to_owned(), text("1500ms"), text("3s")),
            ("labels.owner".to_owned(), None, text("b")),
            ("labels.team".to_owned(), text("a"), None),
            ("state".to_owned(), text("active"), text("disabled")),
        ]
    );
}

#[test]
fn a_schema_is_in_the_record_by_its_hash() {
    let version = EventTypeVersion {
        id: EventTypeVersionId::from_uuid(Uuid::from_u128(5)),
        tenant: TenantId::from_uuid(Uuid::from_u128(7)),
        event_type: EventTypeId::from_uuid(Uuid::from_u128(6)),
        version: VersionName::new("1").unwrap(),
        schema: "{}".to_owned(),
        description: String::new(),
        meta: Meta::default(),
    };
    let fields = version.fields();
    assert_eq!(
        fields["schema"],
        "(2 bytes, sha256 44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a)"
    );
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["event_type_uid", "schema", "uid"]);
}

#[test]
fn what_may_be_a_credential_is_shown_as_a_fingerprint_that_changes_with_it() {
    let text = format!("{:?}", endpoint().fields());
    assert!(!text.contains("hunter2") && !text.contains("user"), "{text}");
    assert!(text.contains("https://a.test:8443/hook (hidden part "), "{text}");
    let found = changed(|endpoint| {
        http(endpoint).headers.insert("authorization".to_owned(), "Bearer other".to_owned());
    });
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, "http.headers.authorization");
    assert_ne!(found[0].1, found[0].2);
    let found = changed(|endpoint| http(endpoint).url = "https://a.test:8443/hook".to_owned());
    assert_eq!(found[0].2.as_deref(), Some("https://a.test:8443/hook"));
}

#[test]
fn the_same_hidden_value_looks_different_elsewhere() {
    let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    assert_ne!(fingerprint(one, "f", "v"), fingerprint(other, "f", "v"));
    assert_ne!(fingerprint(one, "f", "v"), fingerprint(one, "g", "v"));
    assert_eq!(fingerprint(one, "f", "v").len(), 2 * FINGERPRINT_BYTES);
}

#[test]
fn urls_without_credentials_are_shown_as_they_are() {
    let owner = Uuid::from_u128(1);
    for url in ["https://a.test", "https://a.test/", "http://[::1]:8080/a/b", "https://a.test/a@b"]
    {
        assert_eq!(shown_url(owner, url), url);
    }
    for url in ["https://a.test?hunter2", "https://a.test/#hunter2", "https://h:hunter2@a.test"] {
        let shown = shown_url(owner, url);
        assert!(!shown.contains("hunter2") && shown.starts_with("https://a.test"), "{shown}");
    }
}

#[test]
fn keys_are_known_by_fingerprint_and_state_and_not_by_their_material() {
    let now = Timestamp::from_micros(1_000_000);
    let id = KeyId::from_uuid(Uuid::from_u128(9));
    let sealed = SealedSecret::from_bytes(b"hunter2".to_vec());
    let key = Key::staged(id, KeyAlgorithm::HmacSha256, "00ff".to_owned(), None, sealed, now);
    let mut ring = KeyRing::with_first(key, now);
    let before = ring.fields();
    assert!(!format!("{before:?}").contains("hunter2"));
    assert_eq!(before[&format!("keys.{id}.fingerprint")], "00ff");
    ring.revoke(id, "leaked", now).unwrap();
    let changes = diff(&before, &ring.fields());
    let fields: Vec<&str> =
        changes.iter().filter_map(|change| change.field.rsplit('.').next()).collect();
    assert_eq!(fields, ["retire_time", "revoke_reason", "state"]);
}

#[test]
fn durations_are_short_and_exact() {
    for (duration, text) in [
        (Duration::ZERO, "0s"),
        (Duration::from_secs(90), "90s"),
        (Duration::from_millis(10), "10ms"),
        (Duration::from_micros(1_000_001), "1000001us"),
    ] {
        assert_eq!(shown_duration(duration), text);
    }
}
