//! Two processes on one database.

use std::{sync::Arc, time::Duration};
use turnbuckle_proto::v1::Endpoint;
use turnbuckle_testkit::{
    ledger::Ledger,
    process::Signal,
    receiver::{Answer, Receiver, Script},
};
use turnbuckle_tests::{Home, Load, PATIENCE, Scene, Server, StoreKind, eventually, http_endpoint};

const LEASE: [&str; 2] = ["--lease", "2s"];
/// Enough that both processes own some.
const ENDPOINTS: usize = 12;
/// Deliveries of one endpoint in flight at once.
const SLOTS: i32 = 4;
/// Most deliveries of one endpoint in doubt at once: in flight, or answered and not yet written.
const IN_DOUBT: u64 = 64;

struct Pair {
    first: Server,
    second: Server,
    receiver: Receiver,
    scenes: [Scene; 2],
}

impl Pair {
    async fn start() -> anyhow::Result<Option<Self>> {
        let Some(home) = Home::new(StoreKind::Postgres).await? else { return Ok(None) };
        let first = Server::start_in(&home, &LEASE).await?;
        let second = Server::start_in(&home, &LEASE).await?;
        let work = Answer::status(200).after(Duration::from_millis(5));
        let receiver = Receiver::start(Script::always(work)).await?;
        let scene = Scene::set(&first).await?;
        for number in 0..ENDPOINTS {
            let url = receiver.url(&format!("/{number}"));
            let endpoint = Endpoint { max_in_flight: SLOTS, ..http_endpoint(&url) };
            scene.raw(&format!("e{number}"), endpoint).await?;
        }
        let scenes = [scene, Scene::of(&second).await?];
        let pair = Self { first, second, receiver, scenes };
        pair.shared().await?;
        Ok(Some(pair))
    }

    /// Waits until each holds half of the shards, and the second knows every endpoint.
    async fn shared(&self) -> anyhow::Result<()> {
        eventually("each process holds 32 shards", async || {
            let held = [
                self.first.metric("turnbuckle_shards_held").await?,
                self.second.metric("turnbuckle_shards_held").await?,
            ];
            Ok((held == [32.0, 32.0]).then_some(()))
        })
        .await?;
        let written = self.first.metric("turnbuckle_config_revision").await?;
        eventually("the second process has the configuration", async || {
            let applied = self.second.metric("turnbuckle_config_revision").await?;
            Ok((applied >= written).then_some(()))
        })
        .await
    }

    /// Waits until every endpoint has every acknowledged event; gives repeats per endpoint.
    async fn complete(&self, ledger: &Ledger) -> anyhow::Result<Vec<u64>> {
        let mut repeats = Vec::new();
        for number in 0..ENDPOINTS {
            let path = format!("/{number}");
            let received = self.receiver.wait_until(PATIENCE, |received| {
                let own = received.iter().filter(|request| request.path == path);
                ledger.audit(own).lost.is_empty()
            });
            drop(received.await?);
        }
        self.scenes[1].drained().await?;
        let received = self.receiver.received();
        for number in 0..ENDPOINTS {
            let path = format!("/{number}");
            let audit = ledger.audit(received.iter().filter(|request| request.path == path));
            assert!(audit.is_complete(), "{path}: {audit:?}");
            assert!(audit.repeats.values().all(|extra| *extra == 1), "{path}: {audit:?}");
            repeats.push(audit.repeated());
        }
        Ok(repeats)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_share_the_work_and_each_event_arrives_once() -> anyhow::Result<()> {
    let pair = or_skip!(Pair::start().await?);
    let ledger = Arc::new(Ledger::default());
    let mut loads = [
        Load::start(&pair.scenes[0], &ledger, "first", 4, 40),
        Load::start(&pair.scenes[1], &ledger, "second", 4, 40),
    ];
    for load in &mut loads {
        load.finish().await;
    }
    assert_eq!(ledger.len(), 80);
    assert_eq!(pair.complete(&ledger).await?, [0; ENDPOINTS]);
    let delivered = "turnbuckle_attempts_total{outcome=\"delivered\"}";
    let by_each = [pair.first.metric(delivered).await?, pair.second.metric(delivered).await?];
    assert!(by_each.iter().all(|count| *count > 0.0), "one did nothing: {by_each:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_is_taken_over_within_its_lease() -> anyhow::Result<()> {
    let pair = or_skip!(Pair::start().await?);
    let ledger = Arc::new(Ledger::default());
    let mut dying = Load::start(&pair.scenes[0], &ledger, "first", 4, usize::MAX);
    let mut living = Load::start(&pair.scenes[1], &ledger, "second", 4, usize::MAX);
    dying.acknowledged(60).await?;
    pair.first.kill().await?;
    dying.finish().await;
    living.stop().await;
    let repeats = pair.complete(&ledger).await?;
    assert!(repeats.iter().all(|count| *count <= IN_DOUBT), "{repeats:?}");
    eventually("the other holds every shard", async || {
        Ok((pair.second.metric("turnbuckle_shards_held").await? == 64.0).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_stops_hands_over_without_a_repeat() -> anyhow::Result<()> {
    let pair = or_skip!(Pair::start().await?);
    let ledger = Arc::new(Ledger::default());
    let mut stopping = Load::start(&pair.scenes[0], &ledger, "first", 4, usize::MAX);
    let mut staying = Load::start(&pair.scenes[1], &ledger, "second", 4, usize::MAX);
    stopping.acknowledged(60).await?;
    pair.first.stop().await?;
    stopping.finish().await;
    staying.stop().await;
    assert_eq!(pair.complete(&ledger).await?, [0; ENDPOINTS]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_joins_under_load_causes_no_repeat() -> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Postgres).await?);
    let first = Server::start_in(&home, &LEASE).await?;
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&first).await?;
    for number in 0..ENDPOINTS {
        scene
            .raw(&format!("e{number}"), http_endpoint(&receiver.url(&format!("/{number}"))))
            .await?;
    }
    let ledger = Arc::new(Ledger::default());
    let mut load = Load::start(&scene, &ledger, "e", 4, usize::MAX);
    load.acknowledged(20).await?;
    let second = Server::start_in(&home, &LEASE).await?;
    let scenes = [scene, Scene::of(&second).await?];
    let pair = Pair { first, second, receiver, scenes };
    pair.shared().await?;
    load.stop().await;
    assert_eq!(pair.complete(&ledger).await?, [0; ENDPOINTS]);
    Ok(())
}

/// A process whose time stood still longer than its lease has lost its shards; what it then writes
/// changes nothing, and it takes a share again.
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_process_loses_its_shards_and_comes_back() -> anyhow::Result<()> {
    let pair = or_skip!(Pair::start().await?);
    let ledger = Arc::new(Ledger::default());
    let mut load = Load::start(&pair.scenes[1], &ledger, "e", 4, usize::MAX);
    load.acknowledged(20).await?;
    pair.first.signal(Signal::Freeze)?;
    eventually("the other holds every shard", async || {
        Ok((pair.second.metric("turnbuckle_shards_held").await? == 64.0).then_some(()))
    })
    .await?;
    pair.first.signal(Signal::Thaw)?;
    pair.shared().await?;
    load.stop().await;
    let repeats = pair.complete(&ledger).await?;
    assert!(repeats.iter().all(|count| *count <= IN_DOUBT), "{repeats:?}");
    Ok(())
}
