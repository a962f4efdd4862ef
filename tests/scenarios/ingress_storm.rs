//! A sender that tries again as its provider would, while everything fails in turn: every event is in the
//! log exactly once, whatever it was told on the way.

use anyhow::Context as _;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Mutex, RwLock},
    task::JoinSet,
    time::{sleep, timeout},
};
use turnbuckle_proto::v1::{IntakeLimits, ListEventsRequest, Source};
use turnbuckle_testkit::proxy::Proxy;
use turnbuckle_tests::{
    Home, Scene, Server, StoreKind, eventually,
    sender::{self, SECRET, Sender},
};

/// Events of the storm.
const EVENTS: usize = 1_000;
/// Posts under way at once.
const SENDERS: usize = 16;
/// Every so many events the same post is made this often at once.
const CROWD_EVERY: usize = 250;
const CROWD: usize = 50;
/// Longest storm. What is not accepted by then never will be.
const BOUND: Duration = Duration::from_secs(240);
/// Between two events of one sender: the storm is to last for some faults.
const PACE: Duration = Duration::from_millis(100);
/// The wait of a provider between two tries, shortened.
const AGAIN: Duration = Duration::from_millis(30);

/// Most kills of the process: each costs seconds.
const KILLS: usize = 4;
/// Names a seed to be run again.
const SEED: &str = "TURNBUCKLE_STORM_SEED";

/// What goes wrong next.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// The database does not answer.
    Freeze,
    /// Its connections break.
    Cut,
    /// The process is killed.
    Kill,
}

/// Faults and their times, all of them from one seed.
struct Plan(u64);

impl Plan {
    #[expect(clippy::print_stderr, reason = "the test runner shows it when the storm is lost")]
    fn of(seed: u64) -> Self {
        eprintln!("faults of {SEED}={seed}");
        Self(seed)
    }

    /// The next number, by SplitMix64.
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.number() % (to - from))
    }

    /// A fault, the quiet time before it, and how long it lasts: on both sides of the 700 ms that the
    /// ingress waits for its store.
    fn next(&mut self) -> (Fault, Duration, Duration) {
        let fault = match self.number() % 3 {
            0 => Fault::Freeze,
            1 => Fault::Cut,
            _ => Fault::Kill,
        };
        (fault, self.millis(300, 1_000), self.millis(200, 2_000))
    }
}

/// The seed to be run again, else a new one.
fn seed() -> u64 {
    let given = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| uuid::Uuid::now_v7().as_u64_pair().1)
}

on_both_stores!(every_event_is_in_the_log_once_whatever_fails);

/// Where the sender posts to: a server that is replaced when it was killed.
struct Place {
    server: RwLock<Server>,
    sender: RwLock<Sender>,
    scene: RwLock<Scene>,
}

async fn every_event_is_in_the_log_once_whatever_fails(kind: StoreKind) -> anyhow::Result<()> {
    let home = or_skip!(Home::new(kind).await?);
    let proxy = match kind {
        StoreKind::Postgres => {
            let proxy = Proxy::start(home.database_address()?).await?;
            home.reach_database_by(proxy.address())?;
            Some(proxy)
        }
        StoreKind::Embedded => None,
    };
    let server = Server::start_in(&home, &["--lease", "2s"]).await?;
    let scene = Scene::set(&server).await?;
    let limits = IntakeLimits {
        requests_per_second: 100_000,
        requests_per_second_per_address: 100_000,
        connections_per_address: 1_000,
        ..Default::default()
    };
    let settings = Source { limits: Some(limits), ..Source::default() };
    let github = Sender::with(&scene, &server, "github", SECRET, settings).await?;
    let place = Arc::new(Place {
        server: RwLock::new(server),
        sender: RwLock::new(github),
        scene: RwLock::new(scene),
    });
    let is_over = Arc::new(AtomicBool::new(false));
    let plan = Plan::of(seed());
    let faults = faults(Arc::clone(&place), Arc::clone(&home), proxy.as_ref(), &is_over, plan);
    let sending = async {
        let sent = timeout(BOUND, send_all(&place)).await;
        is_over.store(true, Ordering::SeqCst);
        sent.context("the storm went on for too long")?
    };
    let (sent, faulted) = tokio::join!(sending, faults);
    sent?;
    faulted?;
    // The first connections after the storm are still broken ones.
    let counts = eventually("the log can be read", async || {
        Ok(event_ids(&*place.scene.read().await).await.ok())
    })
    .await?;
    assert_eq!(counts.len(), EVENTS);
    let several: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
    assert!(several.is_empty(), "{several:?}");
    Ok(())
}

async fn send_all(place: &Arc<Place>) -> anyhow::Result<()> {
    let waiting = Arc::new(Mutex::new((0..EVENTS).collect::<VecDeque<usize>>()));
    let mut senders = JoinSet::new();
    for _ in 0..SENDERS {
        let (place, waiting) = (Arc::clone(place), Arc::clone(&waiting));
        senders.spawn(async move {
            loop {
                let Some(number) = waiting.lock().await.pop_front() else { return Ok(()) };
                if number % CROWD_EVERY == 0 {
                    let mut crowd = JoinSet::new();
                    for _ in 0..CROWD {
                        let place = Arc::clone(&place);
                        crowd.spawn(async move { send(&place, number).await });
                    }
                    while let Some(sent) = crowd.join_next().await {
                        sent??;
                    }
                }
                send(&place, number).await?;
                sleep(PACE).await;
            }
        });
    }
    while let Some(ended) = senders.join_next().await {
        let ended: anyhow::Result<()> = ended?;
        ended?;
    }
    Ok(())
}

/// Posts one event until it is taken. Answers that a provider takes as final end the test.
async fn send(place: &Place, number: usize) -> anyhow::Result<()> {
    let body = format!(r#"{{"number":{number}}}"#);
    let headers = sender::github(SECRET, &format!("e-{number}"), "push", &body)?;
    loop {
        let sender = place.sender.read().await.clone();
        match sender.post(&headers, &body).await {
            Ok(answer) if matches!(answer.status, 200 | 202) => return Ok(()),
            // Told to come again.
            Ok(answer) if matches!(answer.status, 408 | 429 | 500..=599) => {}
            Ok(answer) => anyhow::bail!("{number}: {} {}", answer.status, answer.body),
            // The answer is lost, and perhaps the request.
            Err(_) => {}
        }
        sleep(AGAIN).await;
    }
}

/// The database hangs and is cut off, and the process is killed, in turn, until the storm is over.
async fn faults(
    place: Arc<Place>,
    home: Arc<Home>,
    proxy: Option<&Proxy>,
    is_over: &AtomicBool,
    mut plan: Plan,
) -> anyhow::Result<()> {
    let mut kills = 0;
    while !is_over.load(Ordering::SeqCst) {
        let (fault, quiet, length) = plan.next();
        sleep(quiet).await;
        match (fault, proxy) {
            (Fault::Freeze, Some(proxy)) => {
                proxy.freeze();
                sleep(length).await;
                proxy.heal();
            }
            (Fault::Cut, Some(proxy)) => {
                proxy.cut();
                sleep(length).await;
                proxy.heal();
            }
            (Fault::Kill, _) if kills < KILLS => {
                kills += 1;
                restart(&place, &home).await?;
            }
            _ => {}
        }
    }
    if let Some(proxy) = proxy {
        proxy.heal();
    }
    Ok(())
}

async fn restart(place: &Place, home: &Arc<Home>) -> anyhow::Result<()> {
    let mut server = place.server.write().await;
    server.kill().await?;
    let next = Server::start_in(home, &["--lease", "2s"]).await?;
    let moved = place.sender.read().await.at(&next);
    *place.sender.write().await = moved;
    *place.scene.write().await = Scene::of(&next).await?;
    *server = next;
    Ok(())
}

/// How often each id of the storm is in the log.
async fn event_ids(scene: &Scene) -> anyhow::Result<BTreeMap<String, usize>> {
    let mut counts = BTreeMap::new();
    let mut page_token = String::new();
    loop {
        let request = ListEventsRequest {
            parent: scene.tenant.clone(),
            page_size: 1_000,
            page_token,
            ..Default::default()
        };
        let page = scene.client.events().list_events(request).await?.into_inner();
        for event in page.events {
            if event.event_id.starts_with("e-") {
                *counts.entry(event.event_id).or_insert(0) += 1;
            }
        }
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(counts);
        }
    }
}
