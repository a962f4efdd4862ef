//! Third parties send, subscribers get: each event once, and nothing that is not theirs.

use crate::unix_now;
use data_encoding::BASE64;
use tokio::task::JoinSet;
use turnbuckle_proto::v1::{
    AnswerSettings, DeliveryState, DuplicateAnswer, IntakeLimits, ListEventsRequest, Source,
};
use turnbuckle_testkit::receiver::{Receiver, Script};
use turnbuckle_tests::{
    PATIENCE, Scene, Server, StoreKind, http_endpoint,
    sender::{self, SECRET, Sender, WRONG_SECRET},
};

on_both_stores!(
    a_webhook_of_github_reaches_its_subscriber_byte_for_byte,
    fifty_posts_of_one_event_at_once_make_one_event,
    stripe_is_believed_within_its_window_only,
    our_own_contract_is_taken_from_others,
    other_content_under_a_known_id_is_answered_as_a_repeat_and_never_delivered,
);

/// A server with one subscriber for everything.
struct Place {
    server: Server,
    receiver: Receiver,
    scene: Scene,
}

impl Place {
    async fn set(kind: StoreKind) -> anyhow::Result<Option<Self>> {
        let Some(server) = Server::start(kind, &[]).await? else { return Ok(None) };
        let receiver = Receiver::start(Script::default()).await?;
        let scene = Scene::set(&server).await?;
        scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
        Ok(Some(Self { server, receiver, scene }))
    }

    async fn events(&self) -> anyhow::Result<usize> {
        let list = ListEventsRequest { parent: self.scene.tenant.clone(), ..Default::default() };
        Ok(self.scene.client.events().list_events(list).await?.into_inner().events.len())
    }
}

async fn a_webhook_of_github_reaches_its_subscriber_byte_for_byte(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let place = or_skip!(Place::set(kind).await?);
    let github = Sender::of(&place.scene, &place.server, "github", SECRET).await?;
    let body = "{ \"action\" : \"opened\", \"größe\": 1.0 }\n";
    let headers = sender::github(SECRET, "72d3162e-cc78-11e3", "pull_request", body)?;
    let answer = github.post(&headers, body).await?;
    assert_eq!((answer.status, answer.body.as_str()), (202, r#"{"status":"accepted"}"#));
    let received = place.receiver.wait_for(1, PATIENCE).await?;
    assert_eq!(received[0].body, body.as_bytes());

    let list = ListEventsRequest { parent: place.scene.tenant.clone(), ..Default::default() };
    let events = place.scene.client.events().list_events(list).await?.into_inner().events;
    let event = &events[0];
    assert_eq!(
        (event.event_id.as_str(), event.event_type.as_str(), event.source.as_str()),
        ("72d3162e-cc78-11e3", "pull_request", "github")
    );
    place.scene.ended(&event.name, DeliveryState::Delivered).await?;

    let again = github.post(&headers, body).await?;
    let told: serde_json::Value = serde_json::from_str(&again.body)?;
    assert_eq!((again.status, &told["status"]), (200, &"duplicate".into()));
    assert!(told["first_processed_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{told}");
    assert_eq!(place.events().await?, 1);
    Ok(())
}

async fn fifty_posts_of_one_event_at_once_make_one_event(kind: StoreKind) -> anyhow::Result<()> {
    let place = or_skip!(Place::set(kind).await?);
    let github = Sender::of(&place.scene, &place.server, "github", SECRET).await?;
    let body = r#"{"n":1}"#;
    let headers = sender::github(SECRET, "same", "push", body)?;
    let mut posts = JoinSet::new();
    for _ in 0..50 {
        let (github, headers) = (github.clone(), headers.clone());
        posts.spawn(async move { github.post(&headers, body).await });
    }
    let mut statuses = Vec::new();
    while let Some(answer) = posts.join_next().await {
        statuses.push(answer??.status);
    }
    let accepted = statuses.iter().filter(|status| **status == 202).count();
    let repeats = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!((accepted, repeats), (1, 49), "{statuses:?}");
    assert_eq!(place.events().await?, 1);
    // Whatever is sent later arrives later: if there were a second delivery, it had come.
    let last = r#"{"n":2}"#;
    github.post(&sender::github(SECRET, "last", "push", last)?, last).await?;
    let received = place.receiver.wait_for(2, PATIENCE).await?;
    assert_eq!(received.len(), 2);
    Ok(())
}

async fn stripe_is_believed_within_its_window_only(kind: StoreKind) -> anyhow::Result<()> {
    let place = or_skip!(Place::set(kind).await?);
    let secret = "whsec_a-secret-that-stripe-made-for-us";
    let stripe = Sender::of(&place.scene, &place.server, "stripe", secret).await?;
    let body =
        r#"{"id":"evt_1","type":"invoice.paid","api_version":"2024-06-20","created":1700000000}"#;
    let now = unix_now();
    // A replay of an old request, one from the future, another key, other bytes: one answer.
    let old = stripe.post(&sender::stripe(secret, now - 3_600, body)?, body).await?;
    let early = stripe.post(&sender::stripe(secret, now + 3_600, body)?, body).await?;
    let forged = stripe.post(&sender::stripe(WRONG_SECRET, now, body)?, body).await?;
    let changed = stripe.post(&sender::stripe(secret, now, body)?, &body.replace('1', "2")).await?;
    let bare = stripe.post(&[], body).await?;
    let path = "/in/00000000000000000000000000";
    let nowhere = sender::post(stripe.address(), path, &[], body.as_bytes()).await?;
    for answer in [&old, &early, &forged, &changed, &bare, &nowhere] {
        assert_eq!(answer.status, 401);
        assert_eq!(answer.body, nowhere.body);
    }
    assert_eq!(place.events().await?, 0);
    let good = stripe.post(&sender::stripe(secret, now, body)?, body).await?;
    assert_eq!(good.status, 202);
    // Stripe changes this field from attempt to attempt.
    let retried = body.replace("\"created\"", "\"pending_webhooks\":3,\"created\"");
    let again = stripe.post(&sender::stripe(secret, now, &retried)?, &retried).await?;
    assert_eq!(again.status, 200, "{}", again.body);
    let log = place.server.log();
    assert!(!log.contains(secret) && !log.contains("v1="), "{log}");
    Ok(())
}

async fn our_own_contract_is_taken_from_others(kind: StoreKind) -> anyhow::Result<()> {
    let place = or_skip!(Place::set(kind).await?);
    let text = format!("whsec_{}", BASE64.encode(SECRET.as_bytes()));
    let settings = Source {
        answers: Some(AnswerSettings {
            accepted_status: 200,
            duplicate_answer: DuplicateAnswer::Conflict.into(),
            ..AnswerSettings::default()
        }),
        limits: Some(IntakeLimits { max_body_bytes: 2_000, ..IntakeLimits::default() }),
        ..Source::default()
    };
    let own = Sender::with(&place.scene, &place.server, "turnbuckle", &text, settings).await?;
    let send =
        async |body: &str| own.post(&sender::own(SECRET.as_bytes(), unix_now(), body)?, body).await;
    let body = r#"{"event_id":"e-1","event_type":"order.paid","event_version":"1","occurred_at":"2026-01-02T03:04:05Z","data":{"total":1}}"#;
    assert_eq!(send(body).await?.status, 200);
    assert_eq!(send(body).await?.status, 409);
    // Signed, and of no use: malformed, without a type, too large.
    assert_eq!(send("{").await?.status, 400);
    assert_eq!(send(r#"{"event_id":"e-2"}"#).await?.status, 400);
    let large = format!(r#"{{"event_id":"e-3","pad":"{}"}}"#, "x".repeat(3_000));
    assert_eq!(send(&large).await?.status, 413);
    let mut encoded = sender::own(SECRET.as_bytes(), unix_now(), body)?;
    encoded.push(("content-encoding", "gzip".to_owned()));
    assert_eq!(own.post(&encoded, body).await?.status, 415);
    assert_eq!(place.events().await?, 1);
    Ok(())
}

async fn other_content_under_a_known_id_is_answered_as_a_repeat_and_never_delivered(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let place = or_skip!(Place::set(kind).await?);
    let github = Sender::of(&place.scene, &place.server, "github", SECRET).await?;
    let send = async |id: &str, body: &str| {
        github.post(&sender::github(SECRET, id, "push", body)?, body).await
    };
    assert_eq!(send("id", r#"{"total":1}"#).await?.status, 202);
    let repeat = send("id", r#"{"total":1}"#).await?;
    let changed = send("id", r#"{"total":1000}"#).await?;
    assert_eq!((changed.status, &changed.body), (200, &repeat.body));
    assert_eq!(send("last", "{}").await?.status, 202);
    let received = place.receiver.wait_for(2, PATIENCE).await?;
    assert!(received.iter().all(|one| one.body != br#"{"total":1000}"#.as_slice()));
    let anomalies = "turnbuckle_ingress_requests_total{outcome=\"anomaly\"}";
    assert_eq!(place.server.metric(anomalies).await?, 1.0);
    Ok(())
}
