//! Puts the plane together and runs it under the supervisor.

use crate::{
    config::{ConfigFollower, ConfigHandle},
    egress::EgressGuard,
    engine::{
        Attempter, Dispatcher, DispatcherParts, EngineSettings, Input, LISTEN_RETRY, LeaseKeeper,
        SettleQueue, SettleWriter,
    },
    health::{HealthKeeper, HealthMeter},
    http::{HttpSender, SenderLimits},
    key_meter::KeyMeter,
    key_test::KeyTester,
    publish::{CommitQueue, Intake, Publisher, Teller},
    pull::{PullHub, Puller},
    replay::{ReplayParts, Replays},
};
use async_trait::async_trait;
use std::{collections::HashSet, convert::Infallible, sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinError,
};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{
    AppliedRevisions, Clock, ConfigSource, ConfigStore, DeliveryId, DeliveryQueue, DisableRule,
    EndpointId, EventIntake, EventLog, HealthStore, History, IdGenerator, KeyUsageStore,
    NodeApplied, PullQueue, Random, ReplayStore, Revision, SecretSealer, Shard, StoreError,
    WakeHint, WorkerId,
};
use turnbuckle_runtime::supervisor::{BoxError, OnExit, Supervisor};

/// Publish writers: while one waits for its commit, the other collects.
pub(crate) const COMMITTERS: usize = 2;
/// Idle connections are looked through this often, so that sockets close in quiet times.
const IDLE_SWEEP: Duration = Duration::from_secs(2);

/// What this process calls its own delivery plane.
const OWN_NODE: &str = "the delivery plane of this process";

/// What the plane is made of.
pub struct PlaneParts {
    /// The entrance of events.
    pub log: Arc<dyn EventLog>,
    /// The queue of deliveries.
    pub queue: Arc<dyn DeliveryQueue>,
    /// The same queue, as consumers of pull endpoints use it.
    pub pull: Arc<dyn PullQueue>,
    /// What happened, for people.
    pub history: Arc<dyn History>,
    /// Replays and their steps.
    pub replays: Arc<dyn ReplayStore>,
    /// Where it is recorded what people do with replays.
    pub record: Arc<dyn ConfigStore>,
    /// Configuration.
    pub config: Arc<dyn ConfigSource>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Jitter and ids.
    pub random: Arc<dyn Random>,
    /// Opens signing keys.
    pub sealer: Arc<dyn SecretSealer>,
    /// Judges and dials every target.
    pub guard: Arc<EgressGuard>,
    /// Where the use of keys is kept.
    pub key_usage: Arc<dyn KeyUsageStore>,
    /// Where the health of endpoints is kept.
    pub health: Arc<dyn HealthStore>,
    /// How often the use of keys is written.
    pub key_usage_every: Duration,
    /// Timings.
    pub settings: EngineSettings,
    /// Whether other processes publish into this store too.
    pub shared_store: bool,
}

/// The running plane.
pub struct DeliveryPlane {
    config: ConfigHandle,
    publisher: Arc<Publisher>,
    history: Arc<dyn History>,
    clock: Arc<dyn Clock>,
    wake: WakeHandle,
    key_tester: Arc<KeyTester>,
    puller: Arc<Puller>,
    replays: Arc<Replays>,
}

/// The revision that this process uses, as the control plane asks for it.
pub struct OwnRevision {
    config: ConfigHandle,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl AppliedRevisions for OwnRevision {
    async fn applied_revisions(&self) -> Result<Vec<NodeApplied>, StoreError> {
        let (revision, at) = (self.config.revision(), self.clock.now());
        let refused = self.config.load().refused();
        Ok(vec![NodeApplied { node: OWN_NODE.to_owned(), revision, at, refused }])
    }

    fn reports_heard(&self) -> u64 {
        self.config.revision().0.unsigned_abs()
    }

    async fn heard_more_than(&self, count: u64) {
        self.config.above(Revision(i64::try_from(count).unwrap_or(i64::MAX))).await;
    }
}

/// Wakes lanes of this process.
#[derive(Clone)]
pub struct WakeHandle {
    inputs: mpsc::WeakSender<Input>,
    freed: Arc<Notify>,
    pulls: Arc<PullHub>,
}

impl WakeHandle {
    /// Takes a delivery out of its lane whose row is gone.
    pub fn cancelled(&self, endpoint: EndpointId, delivery: DeliveryId) {
        self.send(Input::Cancelled(endpoint, delivery));
    }

    /// A full inbox may drop a hint; discovery finds the delivery a second later.
    fn send(&self, input: Input) {
        if let Some(inputs) = self.inputs.upgrade() {
            drop(inputs.try_send(input));
        }
    }
}

impl WakeHint for WakeHandle {
    fn wake(&self, endpoint: EndpointId) {
        self.pulls.wake(endpoint);
        self.send(Input::Wake(endpoint));
    }

    fn shards_freed(&self) {
        self.freed.notify_one();
    }
}

impl DeliveryPlane {
    /// Reads the configuration and starts every task of the plane.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn start(parts: PlaneParts, supervisor: &Supervisor) -> Result<Self, StoreError> {
        crate::metrics::describe();
        let stop = supervisor.shutdown();
        let meter = Arc::new(KeyMeter::default());
        let following = (parts.config, Arc::clone(&parts.guard), parts.sealer);
        let config = start_follower(supervisor, following, &meter).await?;
        let ids = IdGenerator::new(Arc::clone(&parts.clock), Arc::clone(&parts.random));
        let sender = start_sender(supervisor, parts.guard, &parts.clock);
        let usage = parts.key_usage;
        start_metering(supervisor, &meter, &usage, parts.key_usage_every);
        let (used, clock) = (Arc::clone(&usage), Arc::clone(&parts.clock));
        let key_tester =
            KeyTester::new(config.clone(), Arc::clone(&sender), used, clock, ids.clone());
        let pulls = Arc::new(PullHub::default());
        let puller = Puller::start(
            supervisor,
            (parts.pull, config.clone()),
            (Arc::clone(&parts.clock), Arc::clone(&parts.random)),
            Arc::clone(&pulls),
        );
        let (results, health) =
            (Arc::new(SettleQueue::default()), Arc::new(HealthMeter::default()));
        let (emptied, to_release) = watch::channel(HashSet::new());
        let (dispatcher, inputs) = Dispatcher::new(DispatcherParts {
            queue: Arc::clone(&parts.queue),
            config: config.clone(),
            clock: Arc::clone(&parts.clock),
            random: parts.random,
            attempter: Arc::new(Attempter::new(sender)),
            results: Arc::clone(&results),
            tasks: supervisor.short_tasks(),
            settings: parts.settings,
            shared_store: parts.shared_store,
            emptied,
            health: Arc::clone(&health),
            pulls: Arc::clone(&pulls),
        });
        let commits = start_committers(supervisor, parts.log, inputs.clone());
        let freed = Arc::new(Notify::new());
        let wake = WakeHandle { inputs: inputs.downgrade(), freed: Arc::clone(&freed), pulls };
        spawn_listener(supervisor, Arc::clone(&parts.queue), wake.clone(), stop.clone());
        let worker = WorkerId::from_uuid(ids.uuid());
        let replays = ReplayParts {
            store: parts.replays,
            record: parts.record,
            history: Arc::clone(&parts.history),
            queue: Arc::clone(&parts.queue),
            config: config.clone(),
            clock: Arc::clone(&parts.clock),
            ids: ids.clone(),
            wake: wake.clone(),
            worker,
        };
        let replays = Arc::new(start_replays(supervisor, replays));
        let (queue, settings) = (parts.queue, parts.settings);
        let engine =
            Engine { worker, queue, results, inputs, settings, to_release, freed, meter, usage };
        spawn_engine(supervisor, engine, dispatcher, stop.clone());
        tracing::info!(worker.id = %worker, "delivery engine started");
        let clock = parts.clock;
        let made = Publisher::new(config.clone(), Arc::clone(&clock), ids.clone(), commits);
        let publisher = start_publisher(supervisor, made, settings.dedup_window);
        let health = (health, parts.health);
        spawn_health(supervisor, health, &publisher, (&clock, ids), settings, stop);
        let (history, key_tester) = (parts.history, Arc::new(key_tester));
        Ok(Self { config, publisher, history, clock, wake, key_tester, puller, replays })
    }

    /// The configuration in use here; also tells writers when theirs is.
    #[must_use]
    pub fn config(&self) -> ConfigHandle {
        self.config.clone()
    }

    /// The publish use case.
    #[must_use]
    pub fn publisher(&self) -> Arc<Publisher> {
        Arc::clone(&self.publisher)
    }

    /// The entrance for an ingress of the same process: what it takes goes straight into the lanes.
    #[must_use]
    pub fn intake(&self) -> Arc<dyn EventIntake> {
        Arc::new(Intake::new(self.publisher(), self.history()))
    }

    /// What happened.
    #[must_use]
    pub fn history(&self) -> Arc<dyn History> {
        Arc::clone(&self.history)
    }

    /// The clock of the plane.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Tests keys.
    pub(crate) fn key_tester(&self) -> Arc<KeyTester> {
        Arc::clone(&self.key_tester)
    }

    /// Hands deliveries to consumers.
    pub(crate) fn puller(&self) -> Arc<Puller> {
        Arc::clone(&self.puller)
    }

    /// What callers do with replays.
    pub(crate) fn replays(&self) -> Arc<Replays> {
        Arc::clone(&self.replays)
    }

    /// The revision that this process uses.
    #[must_use]
    pub fn own_revision(&self) -> OwnRevision {
        OwnRevision { config: self.config.clone(), clock: Arc::clone(&self.clock) }
    }

    /// Wakes lanes.
    #[must_use]
    pub fn wake_handle(&self) -> WakeHandle {
        self.wake.clone()
    }
}

fn start_sender(
    supervisor: &Supervisor,
    guard: Arc<EgressGuard>,
    clock: &Arc<dyn Clock>,
) -> Arc<HttpSender> {
    let (tasks, clock) = (supervisor.short_tasks(), Arc::clone(clock));
    let sender = Arc::new(HttpSender::new(guard, SenderLimits::default(), tasks, clock));
    spawn_sweeper(supervisor, Arc::clone(&sender), supervisor.shutdown());
    sender
}

fn start_committers(
    supervisor: &Supervisor,
    log: Arc<dyn EventLog>,
    inputs: mpsc::Sender<Input>,
) -> CommitQueue {
    let (commits, committer) = CommitQueue::new(log, inputs);
    for _ in 0..COMMITTERS {
        let committer = committer.clone();
        supervisor.spawn("committer", OnExit::StopProcess, endless(committer.run()));
    }
    commits
}

async fn start_follower(
    supervisor: &Supervisor,
    (source, guard, sealer): (Arc<dyn ConfigSource>, Arc<EgressGuard>, Arc<dyn SecretSealer>),
    meter: &Arc<KeyMeter>,
) -> Result<ConfigHandle, StoreError> {
    let (follower, config) =
        ConfigFollower::start(source, guard, sealer, Arc::clone(meter)).await?;
    let following = follower.run(supervisor.shutdown());
    supervisor.spawn("config-follower", OnExit::StopProcess, endless(following));
    Ok(config)
}

fn start_publisher(
    supervisor: &Supervisor,
    (publisher, teller): (Publisher, Teller),
    dedup_window: Duration,
) -> Arc<Publisher> {
    let publisher = Arc::new(publisher.with_dedup_window(dedup_window));
    let telling = teller.run(Arc::clone(&publisher), supervisor.shutdown());
    supervisor.spawn("operational-events", OnExit::Log, endless(telling));
    publisher
}

fn start_metering(
    supervisor: &Supervisor,
    meter: &Arc<KeyMeter>,
    usage: &Arc<dyn KeyUsageStore>,
    every: Duration,
) {
    let metering = Arc::clone(meter).run(Arc::clone(usage), every, supervisor.shutdown());
    supervisor.spawn("key-usage", OnExit::Log, endless(metering));
}

fn start_replays(supervisor: &Supervisor, parts: ReplayParts) -> Replays {
    let (replays, runner) = Replays::new(parts);
    supervisor.spawn("replays", OnExit::Log, endless(runner.run(supervisor.shutdown())));
    replays
}

struct Engine {
    worker: WorkerId,
    queue: Arc<dyn DeliveryQueue>,
    results: Arc<SettleQueue>,
    inputs: mpsc::Sender<Input>,
    settings: EngineSettings,
    to_release: watch::Receiver<HashSet<Shard>>,
    freed: Arc<Notify>,
    meter: Arc<KeyMeter>,
    usage: Arc<dyn KeyUsageStore>,
}

/// Stop order: attempts in flight end, their results are written, and only then do the leases go,
/// so that the next owner repeats nothing.
fn spawn_engine(
    supervisor: &Supervisor,
    engine: Engine,
    dispatcher: Dispatcher,
    stop: CancellationToken,
) {
    let Engine { worker, queue, results, inputs, settings, to_release, freed, meter, usage } =
        engine;
    let keeper = LeaseKeeper {
        worker,
        queue: Arc::clone(&queue),
        lease: settings.lease,
        inputs: inputs.clone(),
        emptied: to_release,
        freed,
    };
    let writer = SettleWriter { worker, queue: Arc::clone(&queue), results, inputs };
    let tasks = supervisor.short_tasks();
    supervisor.spawn("delivery-engine", OnExit::StopProcess, async move {
        let drained = CancellationToken::new();
        let mut keeping = tasks.spawn(keeper.run(drained.clone()));
        let mut writing = tasks.spawn(writer.run());
        tokio::select! {
            // First, since the writer ends as soon as the dispatcher has.
            biased;
            () = dispatcher.run(stop) => {}
            // Neither ends by itself: without them nothing may go on.
            ended = &mut keeping => return Err(early("lease keeper", ended)),
            ended = &mut writing => return Err(early("settle writer", ended)),
        }
        let written = writing.await;
        drained.cancel();
        let kept = keeping.await;
        queue.release(worker, None).await?;
        // Every attempt has ended: these are the last counts.
        meter.write(usage.as_ref()).await;
        written.and(kept)?;
        Ok::<(), BoxError>(())
    });
}

fn early(task: &str, ended: Result<(), JoinError>) -> BoxError {
    match ended {
        Ok(()) => format!("the {task} ended early").into(),
        Err(error) => error.into(),
    }
}

/// Hears other workers' hints, and listens again when the connection breaks.
fn spawn_listener(
    supervisor: &Supervisor,
    queue: Arc<dyn DeliveryQueue>,
    wake: WakeHandle,
    stop: CancellationToken,
) {
    supervisor.spawn("hint-listener", OnExit::Log, async move {
        let listening = async {
            loop {
                if let Err(error) = queue.listen(Arc::new(wake.clone())).await {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "hints of other workers are not heard; polling finds what they publish"
                    );
                }
                tokio::time::sleep(LISTEN_RETRY).await;
            }
        };
        stop.run_until_cancelled(listening).await.unwrap_or(());
        Ok::<(), Infallible>(())
    });
}

fn spawn_health(
    supervisor: &Supervisor,
    (meter, store): (Arc<HealthMeter>, Arc<dyn HealthStore>),
    publisher: &Arc<Publisher>,
    (clock, ids): (&Arc<dyn Clock>, IdGenerator),
    settings: EngineSettings,
    stop: CancellationToken,
) {
    let keeper = HealthKeeper {
        meter,
        store,
        publisher: Arc::clone(publisher),
        clock: Arc::clone(clock),
        ids,
        rule: DisableRule { after: settings.disable_after, ..DisableRule::default() },
    };
    supervisor.spawn("endpoint-health", OnExit::Log, endless(keeper.run(stop)));
}

fn spawn_sweeper(supervisor: &Supervisor, sender: Arc<HttpSender>, stop: CancellationToken) {
    supervisor.spawn("idle-connections", OnExit::Log, async move {
        let mut ticks = tokio::time::interval(IDLE_SWEEP);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            sender.sweep_idle();
        }
        Ok::<(), Infallible>(())
    });
}

/// A task that cannot fail, in the supervisor's form.
pub(crate) async fn endless(task: impl Future<Output = ()>) -> Result<(), Infallible> {
    task.await;
    Ok(())
}
