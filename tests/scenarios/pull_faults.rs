//! Consumers and servers that die while deliveries are out.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::task::JoinSet;
use turnbuckle_client::{
    Client, ClientOptions, TokenSource,
    pull::{Delivery, Reply},
};
use turnbuckle_proto::v1::{
    DeliveryState, Endpoint, PullActions, PullOpen, PullOutcome, PulledDelivery,
};
use turnbuckle_testkit::proxy::Proxy;
use turnbuckle_tests::{Puller, Scene, Server, StoreKind, eventually};

use crate::pull::pull_endpoint;

on_both_stores!(
    every_event_has_its_effect_when_a_consumer_and_the_server_are_killed,
    the_client_goes_on_after_a_restart_and_stops_when_told,
);

const EVENTS: usize = 1_000;
const PUBLISHERS: usize = 8;

/// What consumers did: effects by event id, and how often each delivery was acknowledged for good.
#[derive(Default)]
struct Book {
    effects: BTreeMap<String, usize>,
    acked: BTreeMap<String, usize>,
}

type Shared = Arc<Mutex<Book>>;

fn note(book: &Shared, write: impl FnOnce(&mut Book)) {
    write(&mut book.lock().unwrap_or_else(PoisonError::into_inner));
}

fn event_id(delivery: &PulledDelivery) -> String {
    delivery.event.as_ref().map(|event| event.event_id.clone()).unwrap_or_default()
}

/// Handles deliveries until the stream breaks or `most` were taken.
async fn consume(
    client: Client,
    endpoint: String,
    book: Shared,
    most: usize,
) -> anyhow::Result<()> {
    let open = PullOpen { endpoint, max_outstanding: 20, ..PullOpen::default() };
    let mut puller = Puller::open(&client, open).await?;
    for _ in 0..most {
        let mut taken = vec![puller.next().await?];
        while puller.waiting() > 0 {
            taken.push(puller.next().await?);
        }
        note(&book, |book| {
            taken.iter().for_each(|one| *book.effects.entry(event_id(one)).or_default() += 1);
        });
        let acks = taken.iter().map(|one| one.lease_token.clone()).collect();
        puller.say(PullActions { acks, ..PullActions::default() }).await?;
        for _ in &taken {
            let answer = puller.result().await?;
            let of = |one: &&PulledDelivery| one.lease_token == answer.lease_token;
            if answer.outcome() == PullOutcome::Acked
                && let Some(one) = taken.iter().find(of)
            {
                note(&book, |book| *book.acked.entry(one.delivery.clone()).or_default() += 1);
            }
        }
    }
    Ok(())
}

async fn publish(scene: &Scene, range: std::ops::Range<usize>) -> anyhow::Result<()> {
    let mut publishers = JoinSet::new();
    for first in range.clone().take(PUBLISHERS) {
        let scene = scene.clone();
        let numbers: Vec<usize> = (first..range.end).step_by(PUBLISHERS).collect();
        publishers.spawn(async move {
            for number in numbers {
                scene.publish(&format!("event-{number:04}"), "{}").await?;
            }
            anyhow::Ok(())
        });
    }
    publishers.join_all().await.into_iter().collect()
}

async fn every_event_has_its_effect_when_a_consumer_and_the_server_are_killed(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &["--lease", "2s"]).await?);
    let scene = Scene::set(&server).await?;
    let retry_policy = scene.delays("soon", &[Duration::from_millis(50)], 50).await?;
    let lease = Some(prost_types::Duration { seconds: 5, nanos: 0 });
    let mut target = pull_endpoint();
    if let Some(turnbuckle_proto::v1::endpoint::Target::Pull(pull)) = &mut target.target {
        pull.lease = lease;
    }
    let endpoint = scene.raw("jobs", Endpoint { retry_policy, ..target }).await?.name;
    let book = Shared::default();
    publish(&scene, 0..EVENTS / 2).await?;
    // One dies with deliveries in its hands: its connection is gone without a word.
    let dying = server.client().await?;
    let mut doomed = Puller::of(&dying, &endpoint).await?;
    for _ in 0..10 {
        let taken = doomed.next().await?;
        note(&book, |book| *book.effects.entry(event_id(&taken)).or_default() += 1);
    }
    let mut consumers = JoinSet::new();
    for _ in 0..2 {
        let client = server.client().await?;
        consumers.spawn(consume(client, endpoint.clone(), Arc::clone(&book), usize::MAX));
    }
    drop(doomed);
    drop(dying);
    eventually("a part is done", async || {
        let book = book.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((book.acked.len() > EVENTS / 5).then_some(()))
    })
    .await?;
    server.kill().await?;
    // Both say that their stream broke.
    for ended in consumers.join_all().await {
        assert!(ended.is_err(), "a stream outlived its server");
    }

    let server = Server::start_in(server.home(), &["--lease", "2s"]).await?;
    let scene = Scene::of(&server).await?;
    let mut consumers = JoinSet::new();
    for _ in 0..2 {
        let client = server.client().await?;
        consumers.spawn(consume(client, endpoint.clone(), Arc::clone(&book), usize::MAX));
    }
    publish(&scene, EVENTS / 2..EVENTS).await?;
    scene.drained().await?;
    consumers.shutdown().await;
    let book = std::mem::take(&mut *book.lock().unwrap_or_else(PoisonError::into_inner));
    let wanted: BTreeSet<String> = (0..EVENTS).map(|number| format!("event-{number:04}")).collect();
    let had: BTreeSet<String> = book.effects.keys().cloned().collect();
    assert_eq!(had, wanted);
    assert!(book.acked.values().all(|times| *times == 1), "acknowledged for good more than once");
    // What was in doubt at a death comes twice, and little else.
    let repeated: usize = book.effects.values().map(|times| times - 1).sum();
    assert!(repeated <= 10 + 2 * 20 + 100, "{repeated} effects were repeated");
    assert_eq!(scene.count(DeliveryState::Dead).await?, 0);
    assert_eq!(scene.count(DeliveryState::Delivered).await?, EVENTS);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_of_two_processes_share_an_endpoint_and_never_a_delivery() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Postgres, &[]).await?);
    let other = Server::start_in(server.home(), &[]).await?;
    let scene = Scene::set(&server).await?;
    let endpoint = scene.raw("jobs", pull_endpoint()).await?.name;
    let book = Shared::default();
    let mut consumers = JoinSet::new();
    for server in [&server, &other] {
        // The other process hears of the endpoint a moment later.
        let client = server.client().await?;
        eventually("the endpoint is known", async || {
            let opened = Puller::of(&client, &endpoint).await;
            Ok(opened.ok().map(drop))
        })
        .await?;
        consumers.spawn(consume(client, endpoint.clone(), Arc::clone(&book), usize::MAX));
    }
    publish(&scene, 0..200).await?;
    scene.drained().await?;
    let both = async || {
        let settled = "turnbuckle_pull_settled_total";
        anyhow::Ok((server.metric(settled).await?, other.metric(settled).await?))
    };
    let (own, theirs) = both().await?;
    consumers.shutdown().await;
    let book = std::mem::take(&mut *book.lock().unwrap_or_else(PoisonError::into_inner));
    assert_eq!((book.effects.len(), book.acked.len()), (200, 200));
    assert!(book.effects.values().all(|times| *times == 1), "a delivery came twice");
    assert!(own > 0.0 && theirs > 0.0, "one did everything: {own} and {theirs}");
    Ok(())
}

async fn the_client_goes_on_after_a_restart_and_stops_when_told(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &["--lease", "2s"]).await?);
    let scene = Scene::set(&server).await?;
    let retry_policy = scene.delays("soon", &[Duration::from_millis(50)], 50).await?;
    let endpoint = scene.raw("jobs", Endpoint { retry_policy, ..pull_endpoint() }).await?.name;
    let proxy = Proxy::start(server.api).await?;
    let token = server.home().token("consumer", Some("acme"))?;
    let client = Client::connect_lazy(ClientOptions {
        token: Some(TokenSource::Text(token)),
        ..ClientOptions::new(format!("http://{}", proxy.address()))
    })?;
    let book = Shared::default();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let own = Arc::clone(&book);
    let handler = move |delivery: Delivery| {
        let book = Arc::clone(&own);
        async move {
            let id = delivery.event().event_id.clone();
            note(&book, |book| *book.effects.entry(id.clone()).or_default() += 1);
            match (id.as_str(), delivery.attempt()) {
                ("panics", 1) => std::panic::resume_unwind(Box::new("as the scenario says")),
                ("fails", 1) => Reply::Nack(Some(Duration::ZERO)),
                _ => Reply::Ack,
            }
        }
    };
    let consumer = client.consumer(endpoint).concurrency(4);
    let running = tokio::spawn(consumer.run(handler, async { drop(stopped.await) }));
    for id in ["plain", "panics", "fails"] {
        scene.publish(id, "{}").await?;
    }
    scene.drained().await?;
    server.stop().await?;
    let server = Server::start_in(server.home(), &["--lease", "2s"]).await?;
    proxy.lead_to(server.api);
    let scene = Scene::of(&server).await?;
    scene.publish("after", "{}").await?;
    scene.drained().await?;
    assert_eq!(scene.count(DeliveryState::Delivered).await?, 4);
    drop(stop);
    running.await??;
    let book = book.lock().unwrap_or_else(PoisonError::into_inner);
    let times: Vec<(&str, usize)> =
        book.effects.iter().map(|(id, times)| (id.as_str(), *times)).collect();
    assert_eq!(times, [("after", 1), ("fails", 2), ("panics", 2), ("plain", 1)]);
    Ok(())
}
