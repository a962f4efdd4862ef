//! What comes again: under another id, after a mistake was mended, and what the tenant is told of it.

use anyhow::Context as _;
use std::time::Duration;
use tonic::Code;
use turnbuckle_proto::v1::{
    CreateSubscriptionRequest, DedupSettings, DeliveryState, EventMapping, GetEventRequest,
    GetReceiptRequest, IntakeLimits, ListAuditEventsRequest, ListEventsRequest,
    ListReceiptsRequest, ProcessingState, Receipt, ReceiptDecision, ReplayReceiptRequest,
    SchemeWeakness, Source, Subscription, UnknownVersionMode, UpdateSourceRequest, ValuePart,
    ValueSource, value_part::Part,
};
use turnbuckle_testkit::receiver::{Receiver, Script};
use turnbuckle_tests::{
    PATIENCE, Scene, Server, StoreKind, eventually, http_endpoint,
    scene::proto,
    sender::{self, SECRET, Sender, WRONG_SECRET},
};

on_both_stores!(
    a_captured_body_under_another_id_is_a_repeat_and_marked_as_such,
    anomalies_and_spikes_are_told_to_those_who_ask_for_them_by_name,
    a_dead_letter_is_taken_again_when_the_source_is_mended,
    large_events_are_taken_and_delivered_byte_for_byte,
    processing_is_seen_from_receipt_to_receiver,
);

/// The receipts of this decision, as soon as there are so many.
async fn receipts(
    scene: &Scene,
    decision: ReceiptDecision,
    count: usize,
) -> anyhow::Result<Vec<Receipt>> {
    eventually(&format!("there are {count} receipts"), async || {
        let request = ListReceiptsRequest {
            parent: scene.tenant.clone(),
            decision: decision.into(),
            ..Default::default()
        };
        let found = scene.client.receipts().list_receipts(request).await?.into_inner().receipts;
        Ok((found.len() >= count).then_some(found))
    })
    .await
}

async fn event_count(scene: &Scene) -> anyhow::Result<usize> {
    let list = ListEventsRequest { parent: scene.tenant.clone(), ..Default::default() };
    Ok(scene.client.events().list_events(list).await?.into_inner().events.len())
}

async fn a_captured_body_under_another_id_is_a_repeat_and_marked_as_such(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let github = Sender::of(&scene, &server, "github", SECRET).await?;
    assert!(github.source.weaknesses.contains(&SchemeWeakness::IdNotSigned.into()));
    let body = r#"{"n":1}"#;
    let captured = sender::github(SECRET, "genuine", "push", body)?;
    assert_eq!(github.post(&captured, body).await?.status, 202);
    let mut forged = captured.clone();
    forged[0].1 = "forged".to_owned();
    assert_eq!(github.post(&forged, body).await?.status, 200);
    // The header twice names neither: it is not believed.
    let mut twice = captured.clone();
    twice.push(("x-github-delivery", "other".to_owned()));
    assert_eq!(github.post(&twice, body).await?.status, 401);
    assert_eq!(event_count(&scene).await?, 1);
    let found = receipts(&scene, ReceiptDecision::Duplicate, 1).await?;
    assert_eq!(found[0].event_id_signed, Some(false));
    assert!(found[0].reason.contains("not signed"), "{}", found[0].reason);
    // The id that was put on it is still free for what it really names.
    let other = r#"{"n":2}"#;
    let genuine = sender::github(SECRET, "forged", "push", other)?;
    assert_eq!(github.post(&genuine, other).await?.status, 202);

    // Where the settings say so, every id is believed.
    let dedup =
        DedupSettings { unsigned_id_window: Some(proto(Duration::ZERO)), ..Default::default() };
    let source = Source { dedup: Some(dedup), ..Source::default() };
    let hub = Sender::with(&scene, &server, "bitbucket", SECRET, source).await?;
    for id in ["one", "two"] {
        let headers = vec![
            ("x-request-uuid", id.to_owned()),
            ("x-event-key", "repo:push".to_owned()),
            ("x-hub-signature", captured[2].1.clone()),
        ];
        let answer = hub.post(&headers, body).await?;
        assert_eq!(answer.status / 100, 2, "{}", answer.body);
    }
    Ok(())
}

async fn anomalies_and_spikes_are_told_to_those_who_ask_for_them_by_name(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let (everything, operations) =
        (Receiver::start(Script::default()).await?, Receiver::start(Script::default()).await?);
    scene.raw("all", http_endpoint(&everything.url("/"))).await?;
    let endpoint = scene.create_endpoint("ops", http_endpoint(&operations.url("/"))).await?;
    let request = CreateSubscriptionRequest {
        parent: scene.tenant.clone(),
        subscription_id: "ops".into(),
        subscription: Some(Subscription {
            endpoint: endpoint.name,
            event_types: vec!["turnbuckle.*".into()],
            ..Subscription::default()
        }),
        ..Default::default()
    };
    scene.client.subscriptions().create_subscription(request).await?;
    let github = Sender::of(&scene, &server, "github", SECRET).await?;
    let send = async |secret: &str, body: &str| {
        let headers = sender::github(secret, "same", "push", body)?;
        anyhow::Ok(github.post(&headers, body).await?.status)
    };
    assert_eq!(send(SECRET, r#"{"total":1}"#).await?, 202);
    // A second one within the minute is counted and not told.
    for total in [2, 3] {
        assert_eq!(send(SECRET, &format!(r#"{{"total":{total}}}"#)).await?, 200);
    }
    for _ in 0..40 {
        assert_eq!(send(WRONG_SECRET, "{}").await?, 401);
    }
    let told = operations.wait_for(2, PATIENCE).await?;
    let mut types = Vec::new();
    for one in &told {
        let event: serde_json::Value = serde_json::from_slice(&one.body)?;
        let data = event.get("data").unwrap_or(&event);
        assert_eq!(data["source"], "github", "{event}");
        types.push(event["event_type"].as_str().unwrap_or_default().to_owned());
    }
    types.sort();
    assert_eq!(types, ["turnbuckle.anomaly", "turnbuckle.verification_failures"]);
    // Whoever wants everything gets what third parties and publishers sent, and nothing of these.
    let last = r#"{"last":true}"#;
    github.post(&sender::github(SECRET, "last", "push", last)?, last).await?;
    let received = everything.wait_for(2, PATIENCE).await?;
    assert_eq!(received.len(), 2);
    assert_eq!(operations.wait_for(2, PATIENCE).await?.len(), 2);
    // Nobody else speaks with this voice.
    let refused = scene
        .publish_event(turnbuckle_proto::v1::Event {
            event_type: "order.paid".into(),
            source: "operations".into(),
            data: "{}".into(),
            ..Default::default()
        })
        .await
        .err()
        .context("it was published")?;
    assert_eq!(refused.code(), Code::InvalidArgument);
    Ok(())
}

fn header(name: &str) -> Vec<ValueSource> {
    let part = ValuePart { part: Some(Part::Header(name.into())) };
    vec![ValueSource { parts: vec![part], separator: String::new() }]
}

fn versions(known: &[&str]) -> EventMapping {
    EventMapping {
        event_type: header("x-github-event"),
        event_version: header("x-version"),
        known_versions: known.iter().map(|version| (*version).to_owned()).collect(),
        unknown_version_mode: UnknownVersionMode::DeadLetter.into(),
        ..EventMapping::default()
    }
}

async fn a_dead_letter_is_taken_again_when_the_source_is_mended(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let settings = Source { event: Some(versions(&["1"])), ..Source::default() };
    let github = Sender::with(&scene, &server, "github", SECRET, settings).await?;
    let body = r#"{"n":1}"#;
    let mut headers = sender::github(SECRET, "v2", "release", body)?;
    headers.push(("x-version", "2".to_owned()));
    assert_eq!(github.post(&headers, body).await?.status, 202);
    let letter = receipts(&scene, ReceiptDecision::DeadLetter, 1).await?.remove(0);
    let replay = async |only_new: bool, reason: &str| {
        let (name, reason) = (letter.name.clone(), reason.to_owned());
        let request = ReplayReceiptRequest { name, reason, only_new };
        scene.client.receipts().replay_receipt(request).await.map(tonic::Response::into_inner)
    };
    // As the source is set still, there is no event in it.
    let answer = replay(false, "see what is wrong").await?;
    assert_eq!((answer.events.len(), answer.refused), (0, 1), "{answer:?}");
    assert!(answer.refusal.contains("version"), "{answer:?}");

    let mended = Source {
        name: github.source.name.clone(),
        event: Some(versions(&["1", "2"])),
        ..Source::default()
    };
    let request = UpdateSourceRequest { source: Some(mended), ..Default::default() };
    scene.client.sources().update_source(request).await?;
    let answer = replay(true, "version 2 is known now").await?;
    assert_eq!(answer.events.len(), 1, "{answer:?}");
    assert_eq!(receiver.wait_for(1, PATIENCE).await?[0].body, body.as_bytes());
    let request = GetEventRequest { name: answer.events[0].clone() };
    let event = scene.client.events().get_event(request).await?.into_inner();
    let seen = (event.event_id.as_str(), event.event_type.as_str(), event.event_version.as_str());
    assert_eq!(seen, ("v2", "release", "2"));
    // Its sender's repeat is a repeat of that.
    assert_eq!(github.post(&headers, body).await?.status, 200);
    let again = replay(true, "once more").await?;
    assert_eq!((again.events.len(), again.known), (0, 1));
    // On purpose, past dedup.
    let again = replay(false, "the receiver lost it").await?;
    assert_eq!(again.events.len(), 1);
    assert_eq!(receiver.wait_for(2, PATIENCE).await?[1].body, body.as_bytes());

    let request = ListAuditEventsRequest { parent: scene.tenant.clone(), ..Default::default() };
    let audit = scene.client.audit().list_audit_events(request).await?.into_inner().audit_events;
    let entry = audit.iter().find(|entry| entry.reason == "the receiver lost it");
    assert_eq!(entry.context("no entry")?.resource, letter.name);
    // What nobody can explain, and what is not kept, is not taken again.
    assert_eq!(replay(false, "").await.err().context("no reason")?.code(), Code::InvalidArgument);
    assert_eq!(
        github.post(&sender::github(WRONG_SECRET, "x", "push", body)?, body).await?.status,
        401
    );
    let refused = receipts(&scene, ReceiptDecision::Refused, 1).await?.remove(0);
    let (name, reason) = (refused.name, "why not".to_owned());
    let request = ReplayReceiptRequest { name, reason, only_new: false };
    let error = scene.client.receipts().replay_receipt(request).await.err();
    let error = error.context("it was taken")?;
    assert_eq!(error.code(), Code::FailedPrecondition, "{error:?}");
    Ok(())
}

async fn large_events_are_taken_and_delivered_byte_for_byte(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let limits = IntakeLimits { max_body_bytes: 4 * 1024 * 1024, ..Default::default() };
    let settings = Source { limits: Some(limits), ..Source::default() };
    let github = Sender::with(&scene, &server, "github", SECRET, settings).await?;
    let body = format!(r#"{{"pad":"{}"}}"#, "x".repeat(4 * 1024 * 1024 - 10));
    assert_eq!(body.len(), 4 * 1024 * 1024);
    let answer = github.post(&sender::github(SECRET, "large", "push", &body)?, &body).await?;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let received = receiver.wait_for(1, PATIENCE).await?;
    assert!(received[0].body == body.as_bytes());
    let list = ListEventsRequest { parent: scene.tenant.clone(), ..Default::default() };
    let event = scene.client.events().list_events(list).await?.into_inner().events.remove(0);
    let request = GetEventRequest { name: event.name };
    let whole = scene.client.events().get_event(request).await?.into_inner();
    assert!(whole.data == body.as_bytes());
    // One byte more is not taken, and publishing keeps its own bound.
    let more = format!("{body} ");
    let answer = github.post(&sender::github(SECRET, "more", "push", &more)?, &more).await?;
    assert_eq!(answer.status, 413);
    let data = vec![b'1'; 256 * 1024 + 1].into();
    let event =
        turnbuckle_proto::v1::Event { event_type: "order.paid".into(), data, ..Default::default() };
    let error = scene.publish_event(event).await.err().context("it was published")?;
    assert_eq!(error.code(), Code::InvalidArgument);
    Ok(())
}

async fn processing_is_seen_from_receipt_to_receiver(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let github = Sender::of(&scene, &server, "github", SECRET).await?;
    let body = "{}";
    github.post(&sender::github(SECRET, "unwanted", "push", body)?, body).await?;
    let receipt = receipts(&scene, ReceiptDecision::Accepted, 1).await?.remove(0);
    assert!(receipt.processing.is_none());
    let one = async |name: &str| {
        let request = GetReceiptRequest { name: name.to_owned() };
        let found = scene.client.receipts().get_receipt(request).await?.into_inner();
        found.processing.context("no processing")
    };
    let unwanted = one(&receipt.name).await?;
    assert_eq!((unwanted.state(), unwanted.deliveries), (ProcessingState::Received, 0));

    scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let body = r#"{"n":2}"#;
    github.post(&sender::github(SECRET, "wanted", "push", body)?, body).await?;
    let receipt = receipts(&scene, ReceiptDecision::Accepted, 2).await?.remove(0);
    scene.ended(&receipt.event, DeliveryState::Delivered).await?;
    let done = one(&receipt.name).await?;
    assert_eq!(done.state(), ProcessingState::Processed);
    assert_eq!((done.deliveries, done.attempts), (1, 1));
    assert!(done.finish_time.is_some() && done.duration.is_some());
    let request = GetEventRequest { name: receipt.event.clone() };
    let event = scene.client.events().get_event(request).await?.into_inner();
    assert_eq!(event.processing, Some(done));
    let counted = "turnbuckle_processing_seconds_count{state=\"delivered\"}";
    assert_eq!(server.metric(counted).await?, 1.0);
    Ok(())
}
