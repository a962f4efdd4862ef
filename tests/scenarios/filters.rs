//! Subscriptions that want only some events of a type.

use anyhow::Context as _;
use prost_types::FieldMask;
use tonic::{Code, Status};
use turnbuckle_proto::v1::{
    CreateSubscriptionRequest, Endpoint, Event, GetEventRequest, PayloadFormat,
    PublishEventResponse, Subscription, UpdateSubscriptionRequest,
};
use turnbuckle_testkit::receiver::{Received, Receiver, Script};
use turnbuckle_tests::{PATIENCE, Scene, Server, StoreKind, http_endpoint, scene::EVENT_TYPE};

on_both_stores!(
    each_event_comes_in_the_format_of_the_oldest_subscription_whose_filter_wants_it,
    an_event_that_no_filter_wants_is_kept_and_not_delivered,
    a_payload_that_is_no_json_has_no_data_to_filter_by,
    a_filter_that_is_wrong_is_refused_with_the_column,
    a_changed_filter_applies_from_then_on,
);

async fn subscribe(
    scene: &Scene,
    endpoint: &Endpoint,
    id: &str,
    format: PayloadFormat,
    filter: &str,
) -> Result<Subscription, Status> {
    let subscription = Subscription {
        endpoint: endpoint.name.clone(),
        event_types: vec!["*".into()],
        payload_format: format.into(),
        filter: filter.into(),
        ..Subscription::default()
    };
    let request = CreateSubscriptionRequest {
        parent: scene.tenant.clone(),
        subscription_id: id.into(),
        subscription: Some(subscription),
        ..Default::default()
    };
    Ok(scene.client.subscriptions().create_subscription(request).await?.into_inner())
}

fn body_of<'a>(received: &'a [Received], id: &str) -> anyhow::Result<&'a [u8]> {
    let found = received.iter().find(|request| request.header("webhook-id") == Some(id));
    Ok(&found.with_context(|| format!("{id} did not come"))?.body)
}

async fn is_kept_without_deliveries(
    scene: &Scene,
    published: &PublishEventResponse,
) -> anyhow::Result<bool> {
    let name = published.name.clone();
    let kept = scene.client.events().get_event(GetEventRequest { name }).await?.into_inner();
    let deliveries = scene.deliveries_of(&published.name).await?;
    Ok(kept.event_id == published.event_id && published.deliveries == 0 && deliveries.is_empty())
}

async fn each_event_comes_in_the_format_of_the_oldest_subscription_whose_filter_wants_it(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let hook = scene.create_endpoint("hook", http_endpoint(&receiver.url("/"))).await?;
    let large = "data.total >= 100";
    subscribe(&scene, &hook, "large", PayloadFormat::Raw, large).await?;
    let swiss = r#"data.currency == "CHF""#;
    subscribe(&scene, &hook, "swiss", PayloadFormat::Envelope, swiss).await?;
    let (both, other) = (r#"{"total":100,"currency":"CHF"}"#, r#"{"total":1,"currency":"CHF"}"#);
    for (id, payload) in [("both", both), ("other", other)] {
        assert_eq!(scene.publish(id, payload).await?.deliveries, 1);
    }
    let neither = scene.publish("neither", r#"{"total":1}"#).await?;
    assert!(is_kept_without_deliveries(&scene, &neither).await?);
    receiver.wait_for(2, PATIENCE).await?;
    scene.drained().await?;
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    assert_eq!(body_of(&received, "both")?, both.as_bytes());
    let envelope = String::from_utf8(body_of(&received, "other")?.to_vec())?;
    assert!(envelope.ends_with(&format!(",\"data\":{other}}}")), "{envelope}");
    Ok(())
}

async fn an_event_that_no_filter_wants_is_kept_and_not_delivered(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let hook = scene.create_endpoint("hook", http_endpoint(&receiver.url("/"))).await?;
    let filter = r#"source == "shop" && subject startsWith "orders/""#;
    subscribe(&scene, &hook, "shop", PayloadFormat::Raw, filter).await?;
    let event = |source: &str, subject: &str| Event {
        event_type: EVENT_TYPE.into(),
        source: source.into(),
        subject: subject.into(),
        data: "{}".into(),
        ..Event::default()
    };
    for (source, subject) in [("shop", "refunds/1"), ("bank", "orders/1"), ("shop", "")] {
        let published = scene.publish_event(event(source, subject)).await?;
        assert!(is_kept_without_deliveries(&scene, &published).await?, "{source} {subject}");
    }
    assert_eq!(scene.publish_event(event("shop", "orders/1")).await?.deliveries, 1);
    receiver.wait_for(1, PATIENCE).await?;
    scene.drained().await?;
    assert_eq!(receiver.received().len(), 1);
    Ok(())
}

async fn a_payload_that_is_no_json_has_no_data_to_filter_by(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let url = |path: &str| http_endpoint(&receiver.url(path));
    let there = scene.create_endpoint("there", url("/there")).await?;
    subscribe(&scene, &there, "there", PayloadFormat::Raw, "exists(data.total)").await?;
    let missing = scene.create_endpoint("missing", url("/missing")).await?;
    subscribe(&scene, &missing, "missing", PayloadFormat::Raw, "!exists(data.total)").await?;
    for bytes in [&b"\xff\x00{\"total\":1}"[..], b"{\"total\":", b"total"] {
        let event = Event {
            event_type: EVENT_TYPE.into(),
            data: bytes.into(),
            content_type: "application/octet-stream".into(),
            ..Event::default()
        };
        assert_eq!(scene.publish_event(event).await?.deliveries, 1);
    }
    let received = receiver.wait_for(3, PATIENCE).await?;
    assert!(received.iter().all(|request| request.path == "/missing"));
    Ok(())
}

async fn a_filter_that_is_wrong_is_refused_with_the_column(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let hook = scene.create_endpoint("hook", http_endpoint("https://hooks.test/")).await?;
    let refused = subscribe(&scene, &hook, "s", PayloadFormat::Raw, "data.total = 100").await;
    let status = refused.err().context("it was accepted")?;
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let place = "subscription.filter is wrong at column 12";
    assert!(status.message().contains(place), "{status}");
    let long = format!("data.total == \"{}\"", "x".repeat(4096));
    let refused = subscribe(&scene, &hook, "s", PayloadFormat::Raw, &long).await;
    let status = refused.err().context("it was accepted")?;
    assert!(status.message().contains("longer than 4096 bytes"), "{status}");
    Ok(())
}

async fn a_changed_filter_applies_from_then_on(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let hook = scene.create_endpoint("hook", http_endpoint(&receiver.url("/"))).await?;
    let made = subscribe(&scene, &hook, "s", PayloadFormat::Raw, "data.total>=100").await?;
    assert_eq!(made.filter, "data.total >= 100");
    assert_eq!(scene.publish("before", r#"{"total":50}"#).await?.deliveries, 0);
    for (filter, deliveries) in [("data.total >= 50", 1), ("data.total >= 51", 0), ("", 1)] {
        let request = UpdateSubscriptionRequest {
            subscription: Some(Subscription {
                name: made.name.clone(),
                filter: filter.into(),
                ..Subscription::default()
            }),
            update_mask: Some(FieldMask { paths: vec!["filter".into()] }),
            ..Default::default()
        };
        let changed = scene.client.subscriptions().update_subscription(request).await?.into_inner();
        assert_eq!(changed.filter, filter);
        let published = scene.publish("", r#"{"total":50}"#).await?;
        assert_eq!(published.deliveries, deliveries, "{filter}");
    }
    Ok(())
}
