//! Publish, sign, deliver, record.

use anyhow::Context as _;
use turnbuckle_proto::v1::{
    AttemptOutcome, DeliveryState, Endpoint, Event, GetEventRequest, PayloadFormat,
    SignatureProfile,
};
use turnbuckle_signing::{Profile, VerifyOptions, VerifyingKey, verify};
use turnbuckle_testkit::receiver::{Received, Receiver, Script};
use turnbuckle_tests::{
    PATIENCE, Scene, Server, StoreKind, http, http_endpoint, scene::EVENT_TYPE,
};

use crate::unix_now;

on_both_stores!(
    an_event_reaches_its_subscriber_signed_and_its_record_agrees,
    every_signature_profile_verifies,
    every_format_has_its_documented_body,
    an_event_nobody_wants_is_kept_all_the_same,
);

fn check(profile: Profile, endpoint: &Endpoint, request: &Received) -> anyhow::Result<()> {
    let key = VerifyingKey::parse(&endpoint.signing_secret)?;
    let options = VerifyOptions::at(unix_now());
    verify(profile, &[key], &request.headers, &request.body, &options)?;
    Ok(())
}

async fn an_event_reaches_its_subscriber_signed_and_its_record_agrees(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let endpoint = scene.raw("shop", http_endpoint(&receiver.url("/hooks?x=1"))).await?;
    let published = scene.publish("order-1", r#"{"total": "12.50"}"#).await?;
    assert_eq!((published.deliveries, published.duplicate), (1, false));
    assert_eq!(published.event_id, "order-1");

    let received = receiver.wait_for(1, PATIENCE).await?;
    let request = &received[0];
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/hooks?x=1"));
    assert_eq!(request.body, r#"{"total": "12.50"}"#);
    assert_eq!(request.header("webhook-id"), Some("order-1"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("turnbuckle-attempt"), Some("1"));
    assert_eq!(request.header("turnbuckle-event-type"), Some(EVENT_TYPE));
    check(Profile::StandardWebhooks, &endpoint, request)?;

    let delivery = scene.ended(&published.name, DeliveryState::Delivered).await?;
    assert_eq!((delivery.attempts, delivery.reason.as_str()), (1, ""));
    assert_eq!(delivery.endpoint, endpoint.name);
    assert_eq!(delivery.event_id, "order-1");
    let id = delivery.name.rsplit('/').next().context("a name has parts")?;
    assert_eq!(request.header("idempotency-key"), Some(id));
    let attempts = scene.attempts(&delivery).await?;
    assert_eq!(attempts.len(), 1);
    assert_eq!((attempts[0].number, attempts[0].http_status), (1, 200));
    assert_eq!(attempts[0].outcome(), AttemptOutcome::Delivered);
    assert_eq!(receiver.count(), 1);
    Ok(())
}

async fn every_signature_profile_verifies(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let profiles = [
        ("standard", SignatureProfile::StandardWebhooks, Profile::StandardWebhooks),
        ("hex", SignatureProfile::TimestampedHex, Profile::TimestampedHex),
        ("hub", SignatureProfile::HubSha256, Profile::HubSha256),
    ];
    let mut endpoints = Vec::new();
    for (id, wanted, profile) in profiles {
        let endpoint = Endpoint {
            signature_profile: wanted.into(),
            ..http_endpoint(&receiver.url(&format!("/{id}")))
        };
        endpoints.push((profile, scene.raw(id, endpoint).await?));
    }
    assert_eq!(scene.publish("e", "{}").await?.deliveries, 3);
    let received = receiver.wait_for(3, PATIENCE).await?;
    for (profile, endpoint) in endpoints {
        let id = endpoint.name.rsplit('/').next().unwrap_or_default();
        let request = received.iter().find(|request| request.path.ends_with(id));
        let request = request.with_context(|| format!("{id} got nothing"))?;
        check(profile, &endpoint, request)?;
        let mut forged = request.clone();
        forged.body = "[]".into();
        assert!(check(profile, &endpoint, &forged).is_err(), "{id} verifies other bytes");
    }
    Ok(())
}

async fn every_format_has_its_documented_body(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    for (id, format) in [
        ("envelope", PayloadFormat::Envelope),
        ("standard", PayloadFormat::Standard),
        ("raw", PayloadFormat::Raw),
    ] {
        scene.subscriber(id, http_endpoint(&receiver.url(&format!("/{id}"))), format).await?;
    }
    let event = Event {
        event_id: "order-7".into(),
        event_type: EVENT_TYPE.into(),
        event_version: "2".into(),
        occurred_at: Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 5_000_000 }),
        source: "shop".into(),
        subject: "order/7".into(),
        sequence: Some(3),
        data: r#"{"a":  1}"#.into(),
        ..Event::default()
    };
    scene.publish_event(event).await?;
    let received = receiver.wait_for(3, PATIENCE).await?;
    let body = |path: &str| {
        let request = received.iter().find(|request| request.path == path);
        request.map(|request| String::from_utf8_lossy(&request.body).into_owned())
    };
    let time = "2023-11-14T22:13:20.005";
    let envelope = body("/envelope").context("no envelope")?;
    let parsed: serde_json::Value = serde_json::from_str(&envelope)?;
    for (field, value) in [
        ("event_id", "order-7"),
        ("event_type", EVENT_TYPE),
        ("event_version", "2"),
        ("source", "shop"),
        ("subject", "order/7"),
    ] {
        assert_eq!(parsed[field], value, "{envelope}");
    }
    assert_eq!(parsed["sequence"], 3);
    assert!(parsed["occurred_at"].as_str().is_some_and(|at| at.starts_with(time)), "{envelope}");
    assert!(envelope.ends_with(r#""data":{"a":  1}}"#), "{envelope}");
    let standard = body("/standard").context("no standard payload")?;
    let parsed: serde_json::Value = serde_json::from_str(&standard)?;
    assert_eq!(parsed["type"], EVENT_TYPE);
    assert!(parsed["timestamp"].as_str().is_some_and(|at| at.starts_with(time)), "{standard}");
    assert!(standard.ends_with(r#""data":{"a":  1}}"#), "{standard}");
    assert_eq!(body("/raw").as_deref(), Some(r#"{"a":  1}"#));
    Ok(())
}

async fn an_event_nobody_wants_is_kept_all_the_same(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let published = scene.publish("lonely", r#"{"kept": true}"#).await?;
    assert_eq!(published.deliveries, 0);
    let request = GetEventRequest { name: published.name.clone() };
    let event = scene.client.events().get_event(request).await?.into_inner();
    assert_eq!(
        (event.event_id.as_str(), &*event.data),
        ("lonely", br#"{"kept": true}"#.as_slice())
    );
    assert!(scene.deliveries_of(&published.name).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn an_unknown_path_of_the_ingress_is_answered_as_a_bad_signature_is() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    for path in ["/", "/acme/github", "/healthz"] {
        let answer = http::post(server.ingress, path, "{}").await?;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.body.is_empty() && !answer.head.contains("content-type"), "{}", answer.head);
    }
    Ok(())
}
