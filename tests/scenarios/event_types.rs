//! Versions of event types with schemas, what they refuse, and channels.

use anyhow::Context as _;
use prost_types::FieldMask;
use tonic::{Code, Status};
use turnbuckle_client::ApiError;
use turnbuckle_proto::v1::{
    BatchPublishEventsRequest, Compatibility, CreateEventTypeVersionRequest,
    CreateSubscriptionRequest, DeleteEventTypeVersionRequest, Endpoint, Event, EventType,
    EventTypeVersion, GetEventRequest, ListEventTypeVersionsRequest, PayloadFormat,
    PublishEventResponse, PublishRefusal, Subscription, UnknownVersion, UpdateEventTypeRequest,
    UpdateSubscriptionRequest, publish_result::Result as Outcome,
};
use turnbuckle_testkit::receiver::{Receiver, Script};
use turnbuckle_tests::{PATIENCE, Scene, Server, StoreKind, http_endpoint, scene::EVENT_TYPE};

on_both_stores!(
    a_payload_follows_the_schema_of_its_version_or_is_refused_without_being_quoted,
    an_event_without_a_version_is_version_one_and_an_unknown_one_goes_by_the_types_choice,
    a_batch_refuses_the_bad_ones_and_keeps_the_others,
    a_version_that_breaks_what_the_type_promises_is_refused_break_by_break,
    a_service_registers_its_version_at_every_start_and_none_is_ever_changed,
    only_what_nothing_is_compared_with_is_deleted,
    events_go_where_a_channel_is_shared,
    a_schema_outlives_a_restart,
);

const ORDER: &str = r#"{
  "type": "object",
  "required": ["total"],
  "properties": {
    "total": { "type": "number", "minimum": 0 },
    "items": { "type": "array", "items": { "properties": { "sku": { "type": "string" } } } }
  }
}"#;

fn type_name(scene: &Scene) -> String {
    format!("{}/eventTypes/{EVENT_TYPE}", scene.tenant)
}

async fn register(scene: &Scene, id: &str, schema: &str) -> Result<EventTypeVersion, Status> {
    let request = registration(scene, id, schema);
    let made = scene.client.event_type_versions().create_event_type_version(request).await?;
    Ok(made.into_inner())
}

fn registration(scene: &Scene, id: &str, schema: &str) -> CreateEventTypeVersionRequest {
    CreateEventTypeVersionRequest {
        parent: type_name(scene),
        event_type_version_id: id.into(),
        event_type_version: Some(EventTypeVersion {
            schema: schema.into(),
            ..EventTypeVersion::default()
        }),
        ..CreateEventTypeVersionRequest::default()
    }
}

async fn promise(
    scene: &Scene,
    compatibility: Compatibility,
    unknown_version: UnknownVersion,
) -> anyhow::Result<EventType> {
    let request = UpdateEventTypeRequest {
        event_type: Some(EventType {
            name: type_name(scene),
            compatibility: compatibility.into(),
            unknown_version: unknown_version.into(),
            ..EventType::default()
        }),
        ..UpdateEventTypeRequest::default()
    };
    Ok(scene.client.event_types().update_event_type(request).await?.into_inner())
}

fn event(version: &str, data: &'static str) -> Event {
    Event {
        event_type: EVENT_TYPE.into(),
        event_version: version.into(),
        data: data.into(),
        ..Event::default()
    }
}

/// Where a refused request was wrong.
fn fields<T: std::fmt::Debug>(refused: Result<T, Status>) -> anyhow::Result<Vec<String>> {
    let status = refused.err().context("it was accepted")?;
    anyhow::ensure!(status.code() == Code::InvalidArgument, "{status}");
    let violations = ApiError::new(&status).violations;
    Ok(violations.into_iter().map(|violation| violation.field).collect())
}

async fn a_payload_follows_the_schema_of_its_version_or_is_refused_without_being_quoted(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("hook", http_endpoint(&receiver.url("/"))).await?;
    register(&scene, "2", ORDER).await?;
    let good = r#"{ "total": 1.50, "items": [{ "sku": "a" }] }"#;
    assert_eq!(scene.publish_event(event("2", good)).await?.deliveries, 1);
    assert_eq!(receiver.wait_for(1, PATIENCE).await?[0].body, good.as_bytes());

    let bad = event("2", r#"{ "total": -1, "items": [{}, { "sku": 4111111111111111 }] }"#);
    let status = scene.publish_event(bad).await.err().context("it was accepted")?;
    let text = format!("{status:?} {:?}", ApiError::new(&status));
    assert!(!text.contains("4111111111111111"), "{text}");
    let mut wrong = fields::<()>(Err(status))?;
    wrong.sort();
    assert_eq!(wrong, ["event.data/items/1/sku", "event.data/total"]);
    assert_eq!(fields(scene.publish_event(event("2", "{}")).await)?, ["event.data"]);
    let blob = Event { content_type: "text/plain".into(), ..event("2", "total") };
    assert_eq!(fields(scene.publish_event(blob).await)?, ["event.content_type"]);

    // Beyond what is checked where it arrives.
    let long = "x".repeat(100_000);
    let large = |total: &str| Event {
        data: format!(r#"{{ "total": {total}, "note": "{long}" }}"#).into(),
        ..event("2", "")
    };
    assert_eq!(fields(scene.publish_event(large("-1")).await)?, ["event.data/total"]);
    assert_eq!(scene.publish_event(large("1")).await?.deliveries, 1);
    receiver.wait_for(2, PATIENCE).await?;
    scene.drained().await?;
    assert_eq!(receiver.received().len(), 2);
    Ok(())
}

async fn an_event_without_a_version_is_version_one_and_an_unknown_one_goes_by_the_types_choice(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    // Nothing is registered: all goes as it always did.
    for version in ["", "1", "7"] {
        scene.publish_event(event(version, "[]")).await?;
    }
    register(&scene, "1", ORDER).await?;
    for version in ["", "1"] {
        assert_eq!(fields(scene.publish_event(event(version, "[]")).await)?, ["event.data"]);
        scene.publish_event(event(version, r#"{"total": 1}"#)).await?;
    }
    scene.publish_event(event("7", "[]")).await?;

    let strict = promise(&scene, Compatibility::Backward, UnknownVersion::Refuse).await?;
    assert_eq!(strict.unknown_version(), UnknownVersion::Refuse);
    let refused = scene.publish_event(event("7", "[]")).await;
    let text = refused.as_ref().err().context("it was accepted")?.message().to_owned();
    assert!(text.contains("\"7\" is no version of \"order.paid\": create it first"), "{text}");
    assert_eq!(fields(refused)?, ["event.event_version"]);
    scene.publish_event(event("1", r#"{"total": 1}"#)).await?;
    promise(&scene, Compatibility::Backward, UnknownVersion::Allow).await?;
    scene.publish_event(event("7", "[]")).await?;
    Ok(())
}

async fn a_batch_refuses_the_bad_ones_and_keeps_the_others(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    register(&scene, "1", ORDER).await?;
    promise(&scene, Compatibility::Backward, UnknownVersion::Refuse).await?;
    let events = vec![
        event("1", r#"{"total": 1}"#),
        event("1", r#"{"total": "secret"}"#),
        event("2", "{}"),
        event("1", r#"{"total": 2}"#),
    ];
    let request = BatchPublishEventsRequest { parent: scene.tenant.clone(), events };
    let answer = scene.client.events().batch_publish_events(request).await?.into_inner();
    let refusals: Vec<Option<PublishRefusal>> = answer
        .results
        .into_iter()
        .map(|result| match result.result {
            Some(Outcome::Refused(refusal)) => Some(refusal),
            Some(Outcome::Accepted(_)) | None => None,
        })
        .collect();
    let [None, Some(schema), Some(version), None] = refusals.as_slice() else {
        anyhow::bail!("{refusals:?}");
    };
    for refusal in [schema, version] {
        assert_eq!(refusal.code, i32::from(Code::InvalidArgument));
        assert_eq!(refusal.reason, "INVALID_REQUEST");
    }
    let wanted = "events[1].data/total must be a number";
    assert!(schema.message.contains(wanted), "{}", schema.message);
    assert!(!schema.message.contains("secret"), "{}", schema.message);
    assert!(version.message.contains("events[2].event_version"), "{}", version.message);
    Ok(())
}

async fn a_version_that_breaks_what_the_type_promises_is_refused_break_by_break(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let closed = |properties: &str, required: &str| {
        format!(
            r#"{{ "type": "object", "additionalProperties": false,
                 "properties": {{ {properties} }}, "required": [{required}] }}"#
        )
    };
    let total = r#""total": { "type": "number" }"#;
    register(&scene, "1", &closed(total, "")).await?;
    let narrower = closed(r#""total": { "type": "integer" }"#, r#""total""#);
    let schema = "event_type_version.schema";
    let mut broken = fields(register(&scene, "2", &narrower).await)?;
    broken.sort();
    let expected = [format!("{schema}/properties/total/type"), format!("{schema}/required")];
    assert_eq!(broken, expected);
    // Backward takes a new optional property; full does not, since old readers refuse it.
    let wider = closed(&format!(r#"{total}, "tip": {{}}"#), "");
    promise(&scene, Compatibility::Full, UnknownVersion::Allow).await?;
    assert!(!fields(register(&scene, "2", &wider).await)?.is_empty());
    promise(&scene, Compatibility::Backward, UnknownVersion::Allow).await?;
    register(&scene, "2", &wider).await?;
    // The latest version counts, not the first.
    assert!(!fields(register(&scene, "3", &closed(total, "")).await)?.is_empty());
    promise(&scene, Compatibility::None, UnknownVersion::Allow).await?;
    register(&scene, "3", &narrower).await?;
    let text = register(&scene, "4", r#"{"type": "nummer"}"#).await;
    assert_eq!(fields(text)?, [format!("{schema}/type")]);
    Ok(())
}

async fn a_service_registers_its_version_at_every_start_and_none_is_ever_changed(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let mut versions = scene.client.event_type_versions();
    let dry =
        CreateEventTypeVersionRequest { validate_only: true, ..registration(&scene, "1", ORDER) };
    let would_be = versions.create_event_type_version(dry).await?.into_inner();
    assert_eq!((would_be.uid.as_str(), would_be.revision), ("", 0));
    let starting =
        CreateEventTypeVersionRequest { allow_existing: true, ..registration(&scene, "1", ORDER) };
    let first = versions.create_event_type_version(starting.clone()).await?.into_inner();
    assert_eq!(first.schema, ORDER);
    for _ in 0..2 {
        let again = versions.create_event_type_version(starting.clone()).await?.into_inner();
        assert_eq!(again, first);
    }
    let other =
        CreateEventTypeVersionRequest { allow_existing: true, ..registration(&scene, "1", "{}") };
    for taken in [other, registration(&scene, "1", ORDER)] {
        let refused = versions.create_event_type_version(taken).await.err();
        let refused = refused.context("it was accepted")?;
        assert_eq!(refused.code(), Code::AlreadyExists);
        assert!(refused.message().contains("eventTypes/order.paid/versions/1"), "{refused}");
    }
    let request = ListEventTypeVersionsRequest { parent: type_name(&scene), ..Default::default() };
    let page = versions.list_event_type_versions(request).await?.into_inner();
    assert_eq!(page.event_type_versions, [first]);
    Ok(())
}

async fn only_what_nothing_is_compared_with_is_deleted(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let one = register(&scene, "1", ORDER).await?;
    let two = register(&scene, "2", ORDER).await?;
    let delete = async |version: &EventTypeVersion| {
        let name = version.name.clone();
        let request = DeleteEventTypeVersionRequest { name, etag: version.etag.clone() };
        scene.client.event_type_versions().delete_event_type_version(request).await
    };
    let kept = delete(&two).await.err().context("it was deleted")?;
    assert_eq!(kept.code(), Code::FailedPrecondition);
    assert_eq!(ApiError::new(&kept).reason.as_deref(), Some("LATEST_VERSION"));
    assert_eq!(fields(scene.publish_event(event("1", "[]")).await)?, ["event.data"]);
    delete(&one).await?;
    scene.publish_event(event("1", "[]")).await?;
    assert_eq!(fields(scene.publish_event(event("2", "[]")).await)?, ["event.data"]);
    promise(&scene, Compatibility::None, UnknownVersion::Allow).await?;
    delete(&two).await?;
    scene.publish_event(event("2", "[]")).await?;
    Ok(())
}

async fn subscribe(scene: &Scene, to: &Endpoint, id: &str, names: &[&str]) -> anyhow::Result<()> {
    let subscription = Subscription {
        endpoint: to.name.clone(),
        event_types: vec!["*".into()],
        payload_format: PayloadFormat::Raw.into(),
        channels: names.iter().map(|name| (*name).to_owned()).collect(),
        ..Subscription::default()
    };
    let request = CreateSubscriptionRequest {
        parent: scene.tenant.clone(),
        subscription_id: id.into(),
        subscription: Some(subscription),
        ..Default::default()
    };
    scene.client.subscriptions().create_subscription(request).await?;
    Ok(())
}

async fn publish_to(scene: &Scene, names: &[&str]) -> anyhow::Result<PublishEventResponse> {
    let channels = names.iter().map(|name| (*name).to_owned()).collect();
    Ok(scene.publish_event(Event { channels, ..event("", "{}") }).await?)
}

async fn events_go_where_a_channel_is_shared(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    for (id, names) in [("all", &[][..]), ("eu", &["eu"]), ("both", &["eu", "project/7"])] {
        let endpoint = http_endpoint(&receiver.url(&format!("/{id}")));
        let endpoint = scene.create_endpoint(id, endpoint).await?;
        subscribe(&scene, &endpoint, id, names).await?;
    }
    let mut expected = 0;
    for (names, deliveries) in
        [(&[][..], 1), (&["eu"], 3), (&["project/7"], 2), (&["us"], 1), (&["us", "eu", "us"], 3)]
    {
        let published = publish_to(&scene, names).await?;
        assert_eq!(published.deliveries, deliveries, "{names:?}");
        expected += usize::try_from(deliveries)?;
        let name = published.name;
        let kept = scene.client.events().get_event(GetEventRequest { name }).await?.into_inner();
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(kept.channels, sorted);
    }
    receiver.wait_for(u64::try_from(expected)?, PATIENCE).await?;
    scene.drained().await?;
    let received = receiver.received();
    assert_eq!(received.len(), expected);
    let to_eu = received.iter().filter(|request| request.path == "/eu").count();
    assert_eq!(to_eu, 2);

    let everything = UpdateSubscriptionRequest {
        subscription: Some(Subscription {
            name: format!("{}/subscriptions/eu", scene.tenant),
            ..Subscription::default()
        }),
        update_mask: Some(FieldMask { paths: vec!["channels".into()] }),
        ..Default::default()
    };
    scene.client.subscriptions().update_subscription(everything).await?;
    assert_eq!(publish_to(&scene, &["us"]).await?.deliveries, 2);
    let bad = Event { channels: vec!["eu".into(), "a b".into()], ..event("", "{}") };
    assert_eq!(fields(scene.publish_event(bad).await)?, ["event.channels[1]"]);
    Ok(())
}

async fn a_schema_outlives_a_restart(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    register(&scene, "1", ORDER).await?;
    server.stop().await?;
    let server = Server::start_in(server.home(), &[]).await?;
    let scene = Scene::of(&server).await?;
    assert_eq!(fields(scene.publish_event(event("1", "[]")).await)?, ["event.data"]);
    scene.publish_event(event("1", r#"{"total": 1}"#)).await?;
    Ok(())
}
