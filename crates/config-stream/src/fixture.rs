//! Configurations of any size, for the tests of this crate.

use std::{collections::BTreeMap, time::Duration};
use turnbuckle_domain::{
    ApiToken, ApiTokenHash, ApiTokenId, Channels, Compatibility, ConfigDelta, Deletable, Endpoint,
    EndpointId, EndpointState, EndpointTarget, Epoch, EventType, EventTypeId, EventTypeVersion,
    EventTypeVersionId, Filter, HttpTarget, IngestPath, IngestToken, Key, KeyAlgorithm, KeyId,
    KeyRing, Labels, Meta, PayloadFormat, ResourceId, RetryPolicy, RetryPolicyId, RetryRule,
    Revision, Role, RotationPause, SchemeChoice, SchemeDocument, SealedSecret, SignatureProfile,
    Source, SourceId, SourceSettings, Subscription, SubscriptionId, Tenant, TenantId, Timestamp,
    TypeName, TypePattern, UnknownVersion, VersionName, Violations,
};
use uuid::Uuid;

/// Stands for a sealed secret.
pub(crate) const SEALED: &[u8] = &[7; 120];

pub(crate) const fn uuid(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub(crate) const fn epoch(number: u128) -> Epoch {
    Epoch::from_uuid(uuid(number))
}

fn labels() -> Labels {
    Labels::new([("team".to_owned(), "payments/eu".to_owned())]).unwrap()
}

fn meta(revision: i64) -> Meta {
    Meta {
        created_at: Timestamp::from_micros(1),
        updated_at: Timestamp::from_micros(2),
        revision: Revision(revision),
    }
}

pub(crate) const TENANT: TenantId = TenantId::from_uuid(uuid(1));

pub(crate) fn live<T>(value: T) -> Deletable<T> {
    Deletable { value, deleted: false }
}

pub(crate) fn tenant() -> Tenant {
    Tenant {
        id: TENANT,
        slug: ResourceId::new("acme").unwrap(),
        display_name: "Ácme".to_owned(),
        labels: labels(),
        meta: meta(1),
    }
}

pub(crate) fn endpoint(number: u128, revision: i64) -> Endpoint {
    Endpoint {
        id: EndpointId::from_uuid(uuid(number)),
        tenant: TENANT,
        slug: ResourceId::new(format!("e-{number}")).unwrap(),
        display_name: "Orders".to_owned(),
        target: EndpointTarget::Http(HttpTarget {
            url: format!("https://receiver.test/hooks/{number}"),
            timeout: Duration::from_millis(1500),
            headers: BTreeMap::from([("x-team".to_owned(), "a \"b\" ü".to_owned())]),
            header_prefix: "webhook".to_owned(),
        }),
        signature_profile: SignatureProfile::TimestampedHex,
        retry_policy: number.is_multiple_of(2).then(|| RetryPolicyId::from_uuid(uuid(3))),
        max_in_flight: 64,
        state: match number.is_multiple_of(3) {
            true => EndpointState::Disabled { reason: "not yet".to_owned() },
            false => EndpointState::Active,
        },
        labels: labels(),
        meta: meta(revision),
    }
}

pub(crate) fn ring(number: u128, revision: i64) -> KeyRing {
    let sealed = SealedSecret::from_bytes(SEALED.to_vec());
    let id = KeyId::from_uuid(uuid(number + 1));
    let public = Some("whpk_x".to_owned());
    let key = Key {
        activated_at: Some(Timestamp::from_micros(5)),
        retire_at: Some(Timestamp::from_micros(9)),
        ..Key::staged(
            id,
            KeyAlgorithm::Ed25519,
            "0123456789abcdef".to_owned(),
            public,
            sealed,
            Timestamp::from_micros(1),
        )
    };
    let pause = Some(RotationPause {
        at: Timestamp::from_micros(3),
        reason: "refused".to_owned(),
        resumed_at: None,
    });
    KeyRing { keys: vec![key], pause, revision: Revision(revision) }
}

pub(crate) fn subscription(number: u128, owner: u128, revision: i64) -> Subscription {
    let filter = r#"data.total >= 100 && data["it's"] != null"#;
    Subscription {
        id: SubscriptionId::from_uuid(uuid(number)),
        tenant: TENANT,
        slug: ResourceId::new(format!("s-{number}")).unwrap(),
        endpoint: EndpointId::from_uuid(uuid(owner)),
        patterns: vec![TypePattern::parse("order.*").unwrap()],
        channels: Channels::read(vec!["eu".to_owned()], 1, "", &mut Violations::new()).unwrap(),
        format: PayloadFormat::Raw,
        filter: number.is_multiple_of(2).then(|| Filter::parse(filter).unwrap()),
        labels: labels(),
        meta: meta(revision),
    }
}

/// Tenant, event type, policy, and two endpoints with rings and subscriptions: nine resources.
pub(crate) fn delta(revision: i64) -> ConfigDelta {
    sized(revision, 2)
}

/// The same with this many endpoints.
pub(crate) fn sized(revision: i64, endpoints: u128) -> ConfigDelta {
    let numbers: Vec<u128> = (1..=endpoints).map(|number| 1000 + number).collect();
    ConfigDelta {
        epoch: epoch(1),
        revision: Revision(revision),
        tenants: vec![live(tenant())],
        event_types: vec![live(EventType {
            id: EventTypeId::from_uuid(uuid(2)),
            tenant: TENANT,
            type_name: TypeName::new("order.paid").unwrap(),
            description: "somebody has paid".to_owned(),
            compatibility: Compatibility::Full,
            unknown_version: UnknownVersion::Refuse,
            labels: labels(),
            meta: meta(1),
        })],
        retry_policies: vec![live(RetryPolicy {
            id: RetryPolicyId::from_uuid(uuid(3)),
            tenant: TENANT,
            slug: ResourceId::new("patient").unwrap(),
            version: 4,
            rule: RetryRule { retry_statuses: vec![404], ..RetryRule::default() },
            labels: labels(),
            meta: meta(1),
        })],
        endpoints: numbers.iter().map(|number| live(endpoint(*number, revision))).collect(),
        key_rings: numbers
            .iter()
            .map(|number| (EndpointId::from_uuid(uuid(*number)), ring(*number, revision)))
            .collect(),
        subscriptions: numbers
            .iter()
            .map(|number| live(subscription(number + 1_000_000, *number, revision)))
            .collect(),
        ..ConfigDelta::default()
    }
}

/// The same as [`delta`] with one of every other kind.
pub(crate) fn of_every_kind(revision: i64) -> ConfigDelta {
    ConfigDelta {
        event_type_versions: vec![live(event_type_version(revision))],
        api_tokens: vec![api_token(revision)],
        sources: vec![live(source(revision))],
        source_key_rings: vec![(SourceId::from_uuid(uuid(6)), ring(600, revision))],
        ..delta(revision)
    }
}

fn event_type_version(revision: i64) -> EventTypeVersion {
    EventTypeVersion {
        id: EventTypeVersionId::from_uuid(uuid(4)),
        tenant: TENANT,
        event_type: EventTypeId::from_uuid(uuid(2)),
        version: VersionName::new("2.1").unwrap(),
        schema: r#"{"type":"object"}"#.to_owned(),
        description: "the second".to_owned(),
        meta: meta(revision),
    }
}

fn api_token(revision: i64) -> ApiToken {
    ApiToken {
        id: ApiTokenId::from_uuid(uuid(5)),
        tenant: None,
        slug: ResourceId::new("ci").unwrap(),
        description: "build server".to_owned(),
        role: Role::Publisher,
        hash: ApiTokenHash::from_bytes([7; 32]),
        hint: "beef".to_owned(),
        creator: "me".to_owned(),
        expires_at: Timestamp::from_micros(99),
        revoked: None,
        last_used_at: None,
        meta: meta(revision),
    }
}

fn source(revision: i64) -> Source {
    Source {
        id: SourceId::from_uuid(uuid(6)),
        tenant: TENANT,
        slug: ResourceId::new("github").unwrap(),
        display_name: "GitHub".to_owned(),
        scheme: SchemeChoice::Custom(SchemeDocument::new("text").unwrap()),
        scheme_settings: BTreeMap::from([("webhook".to_owned(), "1".to_owned())]),
        path: IngestPath {
            token: IngestToken::from_random([1; IngestToken::LENGTH]),
            previous: Some((
                IngestToken::from_random([2; IngestToken::LENGTH]),
                Timestamp::from_micros(7),
            )),
        },
        public_url: Some("https://in.example.org/x".to_owned()),
        settings: SourceSettings::default(),
        disabled: Some("they moved".to_owned()),
        labels: labels(),
        meta: meta(revision),
    }
}
