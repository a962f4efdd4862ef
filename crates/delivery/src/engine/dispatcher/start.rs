//! Starting attempts: which lane is next, and whether its delivery may leave.

use super::{Dispatcher, due::is_scheduled};
use crate::{
    config::EndpointEntry,
    engine::{
        input::{Done, Input, Job},
        limits::{IN_FLIGHT_MAX, SUSPENDED_RECHECK, UNSETTLED_MAX},
    },
};
use std::sync::Arc;
use turnbuckle_domain::{DeliveryState, EndpointId, FinishReason, ShardLease, Timestamp};

/// What may happen to the delivery at the head of a lane.
enum Verdict {
    Send(Arc<EndpointEntry>),
    Cancel(FinishReason),
    /// Nothing is known of the endpoint yet, or it has no key: later.
    Wait,
    /// Consumers take its deliveries.
    Pulled,
}

impl Dispatcher {
    /// Notes that a lane may be able to start something.
    pub(super) fn mark_ready(&mut self, endpoint: EndpointId) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        if !lane.ready && lane.queued() > 0 {
            lane.ready = true;
            self.ready.push_back(endpoint);
        }
        if lane.wanted_claim().is_some() {
            self.make_hungry(endpoint);
        }
    }

    /// One delivery of each ready lane in turn, until the slots are taken (I6).
    pub(super) fn start_ready(&mut self) {
        while self.is_certain()
            && !self.stopping
            && self.in_flight < IN_FLIGHT_MAX
            && self.unsettled < UNSETTLED_MAX
            && let Some(endpoint) = self.ready.pop_front()
        {
            if let Some(lane) = self.lanes.get_mut(&endpoint) {
                lane.ready = false;
            }
            self.start_one(endpoint);
        }
    }

    /// Slots that a lane may take of what all share. Half of them is kept for lanes that have fewer
    /// than their part, so that many hanging endpoints cannot take everything.
    fn shared_slots(&self) -> usize {
        if self.in_flight < IN_FLIGHT_MAX / 2 {
            return IN_FLIGHT_MAX;
        }
        (IN_FLIGHT_MAX / 2 / self.busy_lanes.max(1)).max(1)
    }

    fn start_one(&mut self, endpoint: EndpointId) {
        let now = self.clock.now();
        let shared_slots = self.shared_slots();
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        let Some(lease) = self.leases.get(&lane.shard).copied() else {
            return;
        };
        if lane.suspended_until.is_some() || self.leaving.contains(&lane.shard) {
            return;
        }
        let Some(job) = lane.pop() else { return };
        match self.judge(endpoint, now) {
            Verdict::Send(_) if job.delivery.due_at > now && is_scheduled(&job.delivery) => {
                self.not_yet(&job);
            }
            Verdict::Send(entry) => {
                let Some(lane) = self.lanes.get_mut(&endpoint) else {
                    return;
                };
                let slots = usize::from(entry.endpoint.max_in_flight).min(shared_slots);
                if lane.in_flight >= slots {
                    // Its slots are taken: the end of an attempt makes it ready again.
                    lane.put_back(job);
                    return;
                }
                if lane.in_flight == 0 {
                    self.busy_lanes += 1;
                }
                lane.in_flight += 1;
                self.in_flight += 1;
                self.start_attempt(entry, job, lease);
                self.mark_ready(endpoint);
            }
            Verdict::Cancel(reason) => {
                self.held_bytes -= job.weight;
                self.finish_unsent(&job.delivery, DeliveryState::Cancelled, reason);
                self.mark_ready(endpoint);
            }
            Verdict::Pulled => self.leave_to_consumers(&job),
            Verdict::Wait => {
                let until = now + SUSPENDED_RECHECK;
                if let Some(lane) = self.lanes.get_mut(&endpoint) {
                    lane.put_back(job);
                    lane.suspended_until = Some(until);
                }
                self.arm(endpoint, until);
            }
        }
    }

    /// Whether consumers take the endpoint's deliveries. While it is disabled or deleted they do not:
    /// then a lane ends what waits.
    pub(super) fn is_pulled(&self, endpoint: EndpointId) -> bool {
        let index = self.config.load();
        let entry = index.endpoint(endpoint);
        entry.is_some_and(|entry| {
            entry.endpoint.is_active() && entry.endpoint.target.pull().is_some()
        })
    }

    /// The lane was made before the endpoint was known, or while it was gone: it holds nothing back.
    fn leave_to_consumers(&mut self, job: &Job) {
        let endpoint = job.delivery.endpoint;
        self.held -= 1;
        self.held_bytes -= job.weight;
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.forget(job.delivery.id);
            let (count, bytes) = lane.drain();
            self.held -= count;
            self.held_bytes -= bytes;
        }
        self.pulls.wake(endpoint);
    }

    /// The endpoint was gone when the delivery was taken, and is back: its time has not come.
    fn not_yet(&mut self, job: &Job) {
        let endpoint = job.delivery.endpoint;
        self.held -= 1;
        self.held_bytes -= job.weight;
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.forget(job.delivery.id);
        }
        self.retry_at(endpoint, job.delivery.due_at);
        self.mark_ready(endpoint);
    }

    /// Whether the endpoint is disabled or deleted. A delivery is committed after its endpoint: when a
    /// read of the configuration that began after the delivery was seen does not have the endpoint,
    /// it was deleted.
    pub(super) fn is_gone(&mut self, endpoint: EndpointId) -> bool {
        let known = self.config.load().endpoint(endpoint).map(|entry| entry.endpoint.is_active());
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return false };
        if let Some(is_active) = known {
            lane.unknown_since = None;
            return !is_active;
        }
        let reads = self.config.reads();
        let since = *lane.unknown_since.get_or_insert(reads.begun);
        reads.completed > since
    }

    /// The endpoint's present state decides, at the moment of sending (I5).
    fn judge(&mut self, endpoint: EndpointId, now: Timestamp) -> Verdict {
        let is_gone = self.is_gone(endpoint);
        let index = self.config.load();
        match index.endpoint(endpoint) {
            None if is_gone => Verdict::Cancel(FinishReason::EndpointDeleted),
            None => {
                self.config.refresh();
                Verdict::Wait
            }
            Some(_) if is_gone => Verdict::Cancel(FinishReason::EndpointDisabled),
            Some(entry) if entry.endpoint.target.pull().is_some() => Verdict::Pulled,
            Some(entry) if entry.rule.is_none() => {
                self.config.refresh();
                Verdict::Wait
            }
            Some(entry) if !entry.signer.can_sign(now) => Verdict::Wait,
            Some(entry) => Verdict::Send(Arc::clone(entry)),
        }
    }

    fn start_attempt(&self, entry: Arc<EndpointEntry>, job: Job, lease: ShardLease) {
        let (attempter, done) = (Arc::clone(&self.attempter), self.done.clone());
        let started_at = self.clock.now();
        let config = self.config.clone();
        self.tasks.spawn(async move {
            // A changed endpoint has another entry: then this turn is void, whatever changed (I5).
            let is_current = || {
                let index = config.load();
                index.endpoint(entry.endpoint.id).is_some_and(|now| Arc::ptr_eq(now, &entry))
            };
            let (outcome, duration) =
                attempter.attempt(&entry, &job, started_at, &is_current).await;
            let result = Done { job, lease, started_at, duration, outcome };
            if let Some(done) = done.upgrade() {
                // The dispatcher has ended; the delivery is still pending and will be tried again.
                drop(done.send(Input::Done(Box::new(result))).await);
            }
        });
    }
}
