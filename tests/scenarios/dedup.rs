//! The same event again, and another event under its id.

use tokio::task::JoinSet;
use tonic::Code;
use turnbuckle_client::ApiError;
use turnbuckle_proto::v1::{
    BatchPublishEventsRequest, DeliveryState, Event, ListEventsRequest,
    publish_result::Result as Kind,
};
use turnbuckle_testkit::receiver::{Receiver, Script};
use turnbuckle_tests::{Scene, Server, StoreKind, http_endpoint, scene::EVENT_TYPE};

on_both_stores!(
    fifty_publishes_of_one_event_at_once_make_one_event,
    another_payload_under_a_known_id_is_refused_and_never_delivered,
    one_bad_event_does_not_stop_its_batch,
    the_same_id_of_another_source_is_another_event,
);

async fn fifty_publishes_of_one_event_at_once_make_one_event(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let mut publishers = JoinSet::new();
    for _ in 0..50 {
        let scene = scene.clone();
        publishers.spawn(async move { scene.publish("same", r#"{"n": 1}"#).await });
    }
    let mut answers = Vec::new();
    while let Some(answer) = publishers.join_next().await {
        answers.push(answer??);
    }
    let first: Vec<_> = answers.iter().filter(|answer| !answer.duplicate).collect();
    assert_eq!((answers.len(), first.len()), (50, 1));
    assert!(answers.iter().all(|answer| answer.name == first[0].name));
    assert!(answers.iter().all(|answer| answer.accept_time == first[0].accept_time));
    scene.ended(&first[0].name, DeliveryState::Delivered).await?;

    let again = scene.publish("same", r#"{"n": 1}"#).await?;
    assert!(again.duplicate && again.deliveries == 0 && again.name == first[0].name);
    let list = ListEventsRequest { parent: scene.tenant.clone(), ..ListEventsRequest::default() };
    assert_eq!(scene.client.events().list_events(list).await?.into_inner().events.len(), 1);
    // Whatever is published later arrives later: if there were a second delivery, it had come.
    let last = scene.publish("last", "{}").await?.name;
    scene.ended(&last, DeliveryState::Delivered).await?;
    assert_eq!(receiver.count(), 2);
    Ok(())
}

async fn another_payload_under_a_known_id_is_refused_and_never_delivered(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let first = scene.publish("id", r#"{"total": 1}"#).await?;
    let other = scene.publish("id", r#"{"total": 2}"#).await;
    let error = ApiError::new(&other.err().ok_or_else(|| anyhow::anyhow!("it was accepted"))?);
    assert_eq!((error.code, error.reason.as_deref()), (Code::AlreadyExists, Some("EVENT_ANOMALY")));
    assert!(scene.publish("id", r#"{"total": 1}"#).await?.duplicate);
    scene.ended(&first.name, DeliveryState::Delivered).await?;
    let last = scene.publish("last", "{}").await?.name;
    scene.ended(&last, DeliveryState::Delivered).await?;
    let bodies: Vec<_> = receiver.received().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies, [r#"{"total": 1}"#, "{}"]);
    Ok(())
}

async fn one_bad_event_does_not_stop_its_batch(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let event = |id: &str, event_type: &str, data: &'static str| Event {
        event_id: id.into(),
        event_type: event_type.into(),
        data: data.into(),
        ..Event::default()
    };
    let events = vec![
        event("a", EVENT_TYPE, "{}"),
        event("no-json", EVENT_TYPE, "{"),
        event("b", EVENT_TYPE, "{}"),
        event("no-type", "never.registered", "{}"),
        event("a", EVENT_TYPE, "{}"),
        event("a", EVENT_TYPE, "[]"),
        event("c", EVENT_TYPE, "{}"),
    ];
    let request = BatchPublishEventsRequest { parent: scene.tenant.clone(), events };
    let answer = scene.client.events().batch_publish_events(request).await?.into_inner();
    let told: Vec<String> = answer
        .results
        .into_iter()
        .map(|result| match result.result {
            Some(Kind::Accepted(accepted)) if accepted.duplicate => "duplicate".into(),
            Some(Kind::Accepted(accepted)) => accepted.event_id,
            Some(Kind::Refused(refused)) => refused.reason,
            None => "nothing".into(),
        })
        .collect();
    let expected =
        ["a", "INVALID_REQUEST", "b", "INVALID_REQUEST", "duplicate", "EVENT_ANOMALY", "c"];
    assert_eq!(told, expected);
    scene.drained().await?;
    let mut ids: Vec<String> = receiver
        .received()
        .iter()
        .filter_map(|request| request.header("webhook-id").map(str::to_owned))
        .collect();
    ids.sort();
    assert_eq!(ids, ["a", "b", "c"]);
    Ok(())
}

async fn the_same_id_of_another_source_is_another_event(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let from = |source: &str| Event {
        event_id: "id".into(),
        event_type: EVENT_TYPE.into(),
        source: source.into(),
        data: "{}".into(),
        ..Event::default()
    };
    let (shop, crm) =
        (scene.publish_event(from("shop")).await?, scene.publish_event(from("crm")).await?);
    assert!(!shop.duplicate && !crm.duplicate);
    assert_ne!(shop.name, crm.name);
    Ok(())
}
