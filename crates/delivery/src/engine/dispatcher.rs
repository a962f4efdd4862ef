//! The dispatcher: the one task that owns every lane.

mod due;
mod holdings;
mod react;
mod start;

use super::{
    attempt::Attempter,
    claims::Reads,
    input::Input,
    lane::Lane,
    limits::{
        CLAIM_BYTES, CLAIM_LANES, CLAIM_ROWS, CLOCK_SKEW, DISCOVERY_MIN, EngineSettings,
        INPUT_BATCH, INPUTS, LANE_ROWS_MIN,
    },
    settle::SettleQueue,
};
use crate::{config::ConfigHandle, health::HealthMeter, metrics::EngineMetrics, pull::PullHub};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet, VecDeque},
    sync::Arc,
};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use turnbuckle_domain::{
    Clock, DeliveryQueue, EndpointId, LaneClaim, Random, Shard, ShardLease, Timestamp,
};

/// What a dispatcher is made of.
pub(crate) struct DispatcherParts {
    pub(crate) queue: Arc<dyn DeliveryQueue>,
    pub(crate) config: ConfigHandle,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) attempter: Arc<Attempter>,
    pub(crate) results: Arc<SettleQueue>,
    pub(crate) tasks: TaskTracker,
    pub(crate) settings: EngineSettings,
    /// Whether other processes publish into this store too.
    pub(crate) shared_store: bool,
    /// Tells the lease keeper which shards can go.
    pub(crate) emptied: watch::Sender<HashSet<Shard>>,
    /// What attempts say of their receivers.
    pub(crate) health: Arc<HealthMeter>,
    /// Consumers of pull endpoints.
    pub(crate) pulls: Arc<PullHub>,
}

pub(crate) struct Dispatcher {
    config: ConfigHandle,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    attempter: Arc<Attempter>,
    results: Arc<SettleQueue>,
    tasks: TaskTracker,
    settings: EngineSettings,
    health: Arc<HealthMeter>,
    shared_store: bool,
    inbox: mpsc::Receiver<Input>,
    /// For attempts: they report here.
    done: mpsc::WeakSender<Input>,
    reads: Reads,
    lanes: HashMap<EndpointId, Lane>,
    leases: HashMap<Shard, ShardLease>,
    /// Since when each shard is ours.
    gained_at: HashMap<Shard, Timestamp>,
    /// Shards on their way to other workers.
    leaving: HashSet<Shard>,
    /// Those of them that have nothing in flight.
    emptied: watch::Sender<HashSet<Shard>>,
    /// Nothing starts after this, unless the leases are renewed.
    valid_until: Instant,
    stopping: bool,
    /// Lanes that can start something, in turn.
    ready: VecDeque<EndpointId>,
    /// When a lane has to be looked at again.
    timers: BinaryHeap<Reverse<(Timestamp, EndpointId)>>,
    /// Lanes that may want a claim, in turn, so that many lanes share claims fairly.
    hungry: VecDeque<EndpointId>,
    /// Told what was published to pull endpoints, which have no lanes.
    pulls: Arc<PullHub>,
    /// Endpoints that other workers are to look at: theirs, and pull endpoints, which are everybody's.
    foreign: HashSet<EndpointId>,
    metrics: EngineMetrics,
    in_flight: usize,
    /// Lanes with something in flight.
    busy_lanes: usize,
    unsettled: usize,
    held: usize,
    held_bytes: usize,
}

impl Dispatcher {
    /// A dispatcher and the sender of its inputs.
    pub(crate) fn new(parts: DispatcherParts) -> (Self, mpsc::Sender<Input>) {
        let (inputs, inbox) = mpsc::channel(INPUTS);
        let reads = Reads {
            queue: parts.queue,
            inputs: inputs.downgrade(),
            tasks: parts.tasks.clone(),
            claiming: false,
            hinting: false,
            discovering: None,
            next_discovery: Instant::now(),
        };
        let dispatcher = Self {
            config: parts.config,
            clock: parts.clock,
            random: parts.random,
            attempter: parts.attempter,
            results: parts.results,
            tasks: parts.tasks,
            settings: parts.settings,
            health: parts.health,
            shared_store: parts.shared_store,
            inbox,
            done: inputs.downgrade(),
            reads,
            lanes: HashMap::new(),
            leases: HashMap::new(),
            gained_at: HashMap::new(),
            leaving: HashSet::new(),
            emptied: parts.emptied,
            valid_until: Instant::now(),
            stopping: false,
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            hungry: VecDeque::new(),
            pulls: parts.pulls,
            foreign: HashSet::new(),
            metrics: EngineMetrics::new(),
            in_flight: 0,
            busy_lanes: 0,
            unsettled: 0,
            held: 0,
            held_bytes: 0,
        };
        (dispatcher, inputs)
    }

    /// Runs until told to stop; then starts nothing more and waits, within the grace time, for what
    /// is in flight. What is not finished by then stays pending for the next owner.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(INPUT_BATCH);
        let mut config = self.config.clone();
        while !stop.is_cancelled() {
            let wake_at = self.next_wake();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                count = self.inbox.recv_many(&mut batch, INPUT_BATCH) => if count == 0 { return },
                () = config.changed() => self.wake_suspended(),
                () = tokio::time::sleep_until(wake_at) => {}
            }
            self.turn(&mut batch);
        }
        self.stop(batch).await;
    }

    fn turn(&mut self, batch: &mut Vec<Input>) {
        for input in batch.drain(..) {
            self.react(input);
        }
        self.fire_timers();
        self.start_ready();
        self.ask_store();
        self.tell_emptied();
        self.report();
    }

    async fn stop(mut self, mut batch: Vec<Input>) {
        self.stopping = true;
        for input in batch.drain(..) {
            self.react(input);
        }
        let deadline = Instant::now() + self.settings.grace;
        while self.in_flight > 0 || self.unsettled > 0 {
            tokio::select! {
                count = self.inbox.recv_many(&mut batch, INPUT_BATCH) => if count == 0 { break },
                () = tokio::time::sleep_until(deadline) => {
                    tracing::warn!(
                        in_flight = self.in_flight,
                        "grace time is over; attempts in flight will be made again"
                    );
                    break;
                }
            }
            for input in batch.drain(..) {
                self.react(input);
            }
        }
        self.results.close();
    }

    /// When to look even if nothing comes in: the nearest timer, or the next discovery.
    fn next_wake(&self) -> Instant {
        let idle = Instant::now() + DISCOVERY_MIN;
        let can_discover =
            self.is_certain() && !self.leases.is_empty() && self.reads.discovering.is_none();
        let discovery = if can_discover { self.reads.next_discovery } else { idle };
        match self.timers.peek() {
            None => discovery,
            Some(Reverse((at, _))) => discovery.min(Instant::now() + at.since(self.clock.now())),
        }
    }

    fn fire_timers(&mut self) {
        let now = self.clock.now();
        while let Some(Reverse((at, endpoint))) = self.timers.peek().copied()
            && at <= now
        {
            self.timers.pop();
            let Some(lane) = self.lanes.get_mut(&endpoint) else { continue };
            if lane.armed != Some(at) {
                // A nearer time was set since, and has had its turn.
                continue;
            }
            lane.armed = None;
            if lane.suspended_until.is_some_and(|until| until <= now) {
                lane.suspended_until = None;
            }
            let has_retries = lane.take_due_retries(now);
            let next = [lane.next_retry(), lane.suspended_until].into_iter().flatten().min();
            if has_retries {
                self.make_hungry(endpoint);
            }
            self.mark_ready(endpoint);
            if let Some(next) = next {
                self.arm(endpoint, next);
            }
        }
    }

    fn wake_suspended(&mut self) {
        let mut waiting: Vec<EndpointId> = Vec::new();
        for lane in self.lanes.values_mut() {
            lane.suspended_until = None;
            if lane.queued() > 0 {
                waiting.push(lane.endpoint);
            }
        }
        for endpoint in waiting {
            self.mark_ready(endpoint);
        }
    }

    /// Claims for lanes with room, and discovery when its time has come.
    fn ask_store(&mut self) {
        if !self.foreign.is_empty() && !self.reads.hinting {
            let endpoints = self.foreign.drain().collect();
            self.reads.hint(endpoints);
        }
        if !self.is_certain() || self.leases.is_empty() {
            return;
        }
        if !self.reads.claiming {
            let (claims, due_by) = self.wanted_claims();
            if !claims.is_empty() {
                self.reads.claim(claims, due_by);
            }
        }
        if self.reads.discovering.is_none() && Instant::now() >= self.reads.next_discovery {
            let shards = self.usable_shards();
            let shared = self.shared_store;
            self.reads.discover(shards, shared);
        }
    }

    /// Lanes that want a claim, and up to which time. Lanes of endpoints that are gone are claimed
    /// apart from the others, whatever their deliveries wait for.
    fn wanted_claims(&mut self) -> (Vec<LaneClaim>, Timestamp) {
        let mut claims = Vec::new();
        let mut closing = None;
        let mut rows = self.claim_rows();
        for _ in 0..self.hungry.len() {
            if claims.len() == CLAIM_LANES {
                break;
            }
            let Some(endpoint) = self.hungry.pop_front() else {
                break;
            };
            let usable = self.is_usable(Shard::of(endpoint));
            let is_closing = self.lanes.get(&endpoint).is_some_and(Lane::is_closing);
            if *closing.get_or_insert(is_closing) != is_closing {
                self.hungry.push_back(endpoint);
                continue;
            }
            let Some(lane) = self.lanes.get_mut(&endpoint) else {
                continue;
            };
            lane.hungry = false;
            let Some(mut claim) = lane.wanted_claim().filter(|_| usable) else {
                continue;
            };
            // A few from each of many lanes: nobody's backlog fills a claim alone while others wait.
            let fair = rows.min((CLAIM_ROWS / (self.hungry.len() + 1)).max(16));
            // One that holds nothing gets a few even when the shared memory is full.
            let least = LANE_ROWS_MIN.saturating_sub(lane.held());
            claim.limit = claim.limit.min(u16::try_from(fair.max(least)).unwrap_or(u16::MAX));
            if claim.limit == 0 {
                lane.hungry = true;
                self.hungry.push_back(endpoint);
                continue;
            }
            rows = rows.saturating_sub(usize::from(claim.limit));
            lane.claim_started();
            claims.push(claim);
        }
        let due_by = match closing {
            Some(true) => Timestamp::MAX,
            _ if self.shared_store => self.clock.now() + CLOCK_SKEW,
            _ => self.clock.now(),
        };
        (claims, due_by)
    }

    /// Rows that the next claim may bring: bounded by memory, and by bytes as far as the payloads at
    /// hand tell what the next ones weigh.
    fn claim_rows(&self) -> usize {
        let weight = self.held_bytes / self.held.max(1);
        CLAIM_ROWS.min(self.room()).min(CLAIM_BYTES / weight.max(1024))
    }

    /// Notes that a lane may want a claim.
    fn make_hungry(&mut self, endpoint: EndpointId) {
        if let Some(lane) = self.lanes.get_mut(&endpoint)
            && !lane.hungry
        {
            lane.hungry = true;
            self.hungry.push_back(endpoint);
        }
    }

    fn usable_shards(&self) -> Vec<Shard> {
        self.leases.keys().copied().filter(|shard| self.is_usable(*shard)).collect()
    }

    fn report(&self) {
        self.metrics.attempts_in_flight.set(self.in_flight as f64);
        self.metrics.deliveries_held.set(self.held as f64);
        self.metrics.lanes.set(self.lanes.len() as f64);
    }
}
