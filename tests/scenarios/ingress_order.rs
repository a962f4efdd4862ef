//! Events of one object out of order: each policy, several ingresses at once, and a crash while some wait.

use anyhow::Context as _;
use std::{collections::BTreeMap, time::Duration};
use tokio::{task::JoinSet, time::Instant};
use turnbuckle_proto::v1::{
    CancelDeliveryRequest, DeliveryState, Endpoint, Event, EventOrder, FinalStates,
    ListEventsRequest, ListReceiptsRequest, OrderingPolicy, OrderingRule, OrderingSettings,
    Receipt, Source,
};
use turnbuckle_testkit::receiver::{Answer, Received, Receiver, Script};
use turnbuckle_tests::{
    Apart, PATIENCE, Scene, Server, StoreKind, eventually, http_endpoint,
    scene::proto,
    sender::{self, SECRET, Sender},
};

on_both_stores!(
    mark_says_in_a_header_how_an_event_stood_on_every_attempt,
    drop_stale_records_and_does_not_deliver,
    hold_delivers_a_shuffle_in_order,
    a_kill_while_some_wait_loses_neither_them_nor_their_order,
    a_gap_that_stays_is_given_up_after_its_time_also_over_a_kill,
    a_cancelled_delivery_that_waited_is_not_released,
);

/// Nothing times out by itself in such a scenario.
const LONG: Duration = Duration::from_secs(3_600);
const LEASE: [&str; 2] = ["--lease", "2s"];

fn ordering(policy: OrderingPolicy, hold: Duration) -> Source {
    let rule = OrderingRule {
        event_types: vec!["*".into()],
        subject: "order".into(),
        sequence: "version".into(),
    };
    let ended = FinalStates { path: "state".into(), values: vec!["cancelled".into()] };
    let ordering = OrderingSettings {
        policy: policy.into(),
        hold_timeout: (policy == OrderingPolicy::Hold).then(|| proto(hold)),
        rules: vec![rule],
        final_states: Some(ended),
        retention: None,
    };
    Source { ordering: Some(ordering), ..Source::default() }
}

/// One request at a time, so that what starts first ends first.
fn one_by_one(receiver: &Receiver) -> Endpoint {
    Endpoint { max_in_flight: 1, ..http_endpoint(&receiver.url("/")) }
}

/// A shop that tells what becomes of its order o7.
#[derive(Clone)]
struct Shop(Sender);

impl Shop {
    async fn set(server: &Server, scene: &Scene, settings: Source) -> anyhow::Result<Self> {
        // A source is large, and so is what makes it.
        Ok(Self(Box::pin(Sender::with(scene, server, "github", SECRET, settings)).await?))
    }

    fn at(&self, server: &Server) -> Self {
        Self(self.0.at(server))
    }

    /// Tells of a version, and is answered with this status.
    async fn tell(&self, version: i64) -> anyhow::Result<u16> {
        self.tell_state(version, "open").await
    }

    async fn tell_state(&self, version: i64, state: &str) -> anyhow::Result<u16> {
        let body = format!(r#"{{"order":"o7","version":{version},"state":"{state}"}}"#);
        self.post(&format!("v{version}"), &body).await
    }

    async fn post(&self, id: &str, body: &str) -> anyhow::Result<u16> {
        Ok(self.0.post(&sender::github(SECRET, id, "order", body)?, body).await?.status)
    }
}

fn version(received: &Received) -> anyhow::Result<i64> {
    let body: serde_json::Value = serde_json::from_slice(&received.body)?;
    body["version"].as_i64().context("a version")
}

fn versions(received: &[Received]) -> anyhow::Result<Vec<i64>> {
    received.iter().map(version).collect()
}

async fn events(scene: &Scene) -> anyhow::Result<BTreeMap<String, Event>> {
    let list = ListEventsRequest { parent: scene.tenant.clone(), ..Default::default() };
    let events = scene.client.events().list_events(list).await?.into_inner().events;
    Ok(events.into_iter().map(|event| (event.event_id.clone(), event)).collect())
}

async fn receipt(scene: &Scene, event_id: &str) -> anyhow::Result<Receipt> {
    eventually("the receipt is there", async || {
        let list = ListReceiptsRequest {
            parent: scene.tenant.clone(),
            event_id: event_id.to_owned(),
            ..Default::default()
        };
        let found = scene.client.receipts().list_receipts(list).await?.into_inner().receipts;
        Ok(found.into_iter().next())
    })
    .await
}

async fn mark_says_in_a_header_how_an_event_stood_on_every_attempt(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let script =
        Script::sequence([503, 200].map(Answer::status)).counted_by("turnbuckle-delivery-id");
    let receiver = Receiver::start(script).await?;
    let scene = Scene::set(&server).await?;
    let retry_policy = scene.delays("soon", &[Duration::from_millis(50)], 3).await?;
    let endpoint = Endpoint { retry_policy, ..http_endpoint(&receiver.url("/")) };
    scene.raw("books", endpoint).await?;
    let shop = Shop::set(&server, &scene, ordering(OrderingPolicy::Mark, LONG)).await?;
    for version in [1, 3, 2] {
        assert_eq!(shop.tell(version).await?, 202);
    }
    assert_eq!(shop.tell_state(4, "cancelled").await?, 202);
    assert_eq!(shop.tell(5).await?, 202);
    assert_eq!(shop.tell(2).await?, 200);
    assert_eq!(shop.post("lost", r#"{"order":"o7"}"#).await?, 202);

    let expected = BTreeMap::from([
        (1, None),
        (2, Some("stale")),
        (3, Some("gap")),
        (4, None),
        (5, Some("after-final")),
    ]);
    let received = receiver.wait_for(12, PATIENCE).await?;
    let mut attempts: BTreeMap<i64, u32> = BTreeMap::new();
    for received in received.iter().filter(|received| version(received).is_ok()) {
        let version = version(received)?;
        assert_eq!(received.header("turnbuckle-order"), expected[&version], "{version}");
        *attempts.entry(version).or_default() += 1;
    }
    assert!(attempts.values().all(|count| *count == 2), "{attempts:?}");

    let events = events(&scene).await?;
    assert_eq!(events["v3"].order(), EventOrder::Gap);
    assert_eq!(events["v5"].order(), EventOrder::AfterFinal);
    let reason = receipt(&scene, "v3").await?.reason;
    assert!(reason.contains("missing") && reason.contains("turnbuckle-order"), "{reason}");
    let reason = receipt(&scene, "lost").await?.reason;
    assert!(reason.contains("no sequence"), "{reason}");
    let metrics = server.metrics().await?;
    for line in [
        r#"turnbuckle_ordered_events_total{order="after-final"} 1"#,
        r#"turnbuckle_ordered_events_total{order="in-order"} 2"#,
        r#"turnbuckle_ingress_unordered_total{missing="sequence"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    Ok(())
}

async fn drop_stale_records_and_does_not_deliver(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("books", one_by_one(&receiver)).await?;
    let shop = Shop::set(&server, &scene, ordering(OrderingPolicy::DropStale, LONG)).await?;
    // Its versions only grow.
    for version in [10, 30, 20, 40] {
        assert_eq!(shop.tell(version).await?, 202);
    }
    // The sender repeats what it lost sight of, and is told that it is known.
    assert_eq!(shop.tell(20).await?, 200);
    assert_eq!(shop.tell_state(50, "cancelled").await?, 202);
    assert_eq!(shop.tell(60).await?, 202);
    // Another object is told of to the end: what was dropped before would have come.
    assert_eq!(shop.post("last", r#"{"order":"o8","version":1}"#).await?, 202);
    let received = receiver.wait_for(5, PATIENCE).await?;
    assert_eq!(versions(&received)?, [10, 30, 40, 50, 1]);
    assert!(received.iter().all(|received| received.header("turnbuckle-order").is_none()));

    let events = events(&scene).await?;
    for (id, order) in [("v20", EventOrder::Stale), ("v60", EventOrder::AfterFinal)] {
        assert_eq!(events[id].order(), order);
        assert!(scene.deliveries_of(&events[id].name).await?.is_empty());
    }
    let receipt = receipt(&scene, "v60").await?;
    assert!(receipt.reason.contains("final state: recorded, not delivered"), "{receipt:?}");
    assert_eq!(receipt.event, events["v60"].name);
    Ok(())
}

async fn hold_delivers_a_shuffle_in_order(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("books", one_by_one(&receiver)).await?;
    let shop = Shop::set(&server, &scene, ordering(OrderingPolicy::Hold, LONG)).await?;
    let shuffle = [1, 5, 3, 9, 2, 4, 7, 10, 8, 6, 12, 11];
    for version in shuffle {
        assert_eq!(shop.tell(version).await?, 202);
    }
    let received = receiver.wait_for(12, PATIENCE).await?;
    assert_eq!(versions(&received)?, (1..=12).collect::<Vec<_>>());
    let reason = self::receipt(&scene, "v9").await?.reason;
    assert!(reason.contains("it waits for them"), "{reason}");
    let events = events(&scene).await?;
    assert_eq!(events["v9"].order(), EventOrder::Held);
    assert_eq!(events["v12"].order(), EventOrder::Held);
    assert_eq!(events["v11"].order(), EventOrder::Unspecified);
    Ok(())
}

async fn a_kill_while_some_wait_loses_neither_them_nor_their_order(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &LEASE).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("books", one_by_one(&receiver)).await?;
    let shop = Shop::set(&server, &scene, ordering(OrderingPolicy::Hold, LONG)).await?;
    for version in [1, 4, 3] {
        assert_eq!(shop.tell(version).await?, 202);
    }
    receiver.wait_for(1, PATIENCE).await?;
    server.kill().await?;
    let server = Server::start_in(server.home(), &LEASE).await?;
    let shop = shop.at(&server);
    // What the sender has no answer for it sends again.
    assert_eq!(shop.tell(4).await?, 200);
    assert_eq!(shop.tell(2).await?, 202);
    receiver
        .wait_until(PATIENCE, |received| {
            received.iter().any(|received| version(received).is_ok_and(|version| version == 4))
        })
        .await?;
    let mut seen = versions(&receiver.received())?;
    // The first may have been under way when the process died (I3).
    seen.dedup();
    assert_eq!(seen, [1, 2, 3, 4]);
    Ok(())
}

async fn a_gap_that_stays_is_given_up_after_its_time_also_over_a_kill(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let hold = Duration::from_secs(4);
    let server = or_skip!(Server::start(kind, &LEASE).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("books", one_by_one(&receiver)).await?;
    let shop = Shop::set(&server, &scene, ordering(OrderingPolicy::Hold, hold)).await?;
    assert_eq!(shop.tell(1).await?, 202);
    receiver.wait_for(1, PATIENCE).await?;
    let told = Instant::now();
    for version in [5, 3] {
        assert_eq!(shop.tell(version).await?, 202);
    }
    server.kill().await?;
    let server = Server::start_in(server.home(), &LEASE).await?;
    let shop = shop.at(&server);
    let has = |wanted: i64| {
        move |received: &[Received]| {
            received.iter().any(|received| version(received).is_ok_and(|found| found == wanted))
        }
    };
    let received = receiver.wait_until(PATIENCE, has(5)).await?;
    let fifth = received.last().context("it was waited for")?;
    // Not before its time, on a store that several processes share neither.
    assert!(fifth.at - told >= hold - Duration::from_millis(100), "{:?}", fifth.at - told);
    // The order goes on behind it: nothing waits for what was given up, which is stale now.
    for version in [4, 2, 6] {
        assert_eq!(shop.tell(version).await?, 202);
    }
    receiver.wait_until(PATIENCE, has(6)).await?;
    let mut seen = versions(&receiver.received())?;
    seen.dedup();
    assert_eq!(seen, [1, 3, 5, 6]);
    let events = events(&Scene::of(&server).await?).await?;
    assert_eq!(events["v4"].order(), EventOrder::Stale);
    let metrics = server.metrics().await?;
    assert!(metrics.contains(r#"turnbuckle_order_gaps_total{end="timed_out"} 2"#), "{metrics}");
    Ok(())
}

async fn a_cancelled_delivery_that_waited_is_not_released(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("books", one_by_one(&receiver)).await?;
    let shop = Shop::set(&server, &scene, ordering(OrderingPolicy::Hold, LONG)).await?;
    for version in [1, 3, 4] {
        assert_eq!(shop.tell(version).await?, 202);
    }
    let third = events(&scene).await?["v3"].name.clone();
    let delivery = scene.delivery_of(&third).await?;
    assert_eq!(delivery.state(), DeliveryState::Pending);
    let cancel = CancelDeliveryRequest { name: delivery.name };
    scene.client.deliveries().cancel_delivery(cancel).await?;
    assert_eq!(shop.tell(2).await?, 202);
    let received = receiver.wait_for(3, PATIENCE).await?;
    assert_eq!(versions(&received)?, [1, 2, 4]);
    assert_eq!(scene.delivery_of(&third).await?.state(), DeliveryState::Cancelled);
    Ok(())
}

/// Two doors at once, each with half of a shuffle, one of them killed on the way.
#[tokio::test(flavor = "multi_thread")]
async fn two_ingresses_on_one_store_make_one_order() -> anyhow::Result<()> {
    const LAST: i64 = 60;
    let apart = or_skip!(Apart::start().await?);
    let scene = apart.scene().await?;
    let receiver = Receiver::start(Script::default()).await?;
    scene.raw("books", one_by_one(&receiver)).await?;
    let delivery = apart.node("delivery", "web-1").await?;
    let doors = [apart.node("ingress", "door-1").await?, apart.node("ingress", "door-2").await?];
    let shop = Shop::set(&doors[0], &scene, ordering(OrderingPolicy::Hold, LONG)).await?;
    let shops = [shop.at(&doors[0]), shop.at(&doors[1])];
    apart.applied(3).await?;
    assert_eq!(shops[0].tell(1).await?, 202);
    let mut posts = JoinSet::new();
    // 37 has no divisor in common with 59: each version once, far from its place.
    for number in 0..LAST - 1 {
        let version = 2 + number * 37 % (LAST - 1);
        let shop = shops[usize::from(number % 2 == 0)].clone();
        posts.spawn(async move { (version, shop.tell(version).await) });
        if number == LAST / 2 {
            doors[0].kill().await?;
        }
    }
    // Who got no 2xx sends again, to whoever is there.
    let mut again = Vec::new();
    while let Some(post) = posts.join_next().await {
        let (version, answer) = post?;
        if !matches!(answer, Ok(200 | 202)) {
            again.push(version);
        }
    }
    for version in again {
        eventually("the repeat is taken", async || {
            let status = shops[1].tell(version).await?;
            Ok(matches!(status, 200 | 202).then_some(()))
        })
        .await?;
    }
    let count = u64::try_from(LAST)?;
    let received = receiver.wait_for(count, PATIENCE).await?;
    assert_eq!(versions(&received)?, (1..=LAST).collect::<Vec<_>>());
    doors[1].stop().await?;
    delivery.stop().await
}
