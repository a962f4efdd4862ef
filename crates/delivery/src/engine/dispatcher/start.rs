//! Starting attempts: which lane is next, and whether its delivery may leave.

use super::Dispatcher;
use crate::{
    config::EndpointEntry,
    engine::{
        input::{Done, Input, Job},
        limits::{IN_FLIGHT_MAX, SUSPENDED_RECHECK, UNSETTLED_MAX},
    },
};
use std::{cmp::Reverse, sync::Arc};
use turnbuckle_domain::{
    DeliveryState, EndpointId, EndpointState, FinishReason, ShardLease, Timestamp,
};

/// What may happen to the delivery at the head of a lane.
enum Verdict {
    Send(Arc<EndpointEntry>),
    Cancel(FinishReason),
    /// Nothing is known of the endpoint yet, or it has no key: later.
    Wait,
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
        while self.certain
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

    fn start_one(&mut self, endpoint: EndpointId) {
        let now = self.clock.now();
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
        match self.judge(endpoint, &job, now) {
            Verdict::Send(_) if job.delivery.due_at > now => self.not_yet(&job),
            Verdict::Send(entry) => {
                let Some(lane) = self.lanes.get_mut(&endpoint) else {
                    return;
                };
                if lane.in_flight >= usize::from(entry.endpoint.max_in_flight) {
                    // Its slots are taken: the end of an attempt makes it ready again.
                    lane.put_back(job);
                    return;
                }
                lane.in_flight += 1;
                self.in_flight += 1;
                self.start_attempt(entry, job, lease);
                self.mark_ready(endpoint);
            }
            Verdict::Cancel(reason) => {
                self.held_bytes -= job.event.data.len();
                self.finish_unsent(&job.delivery, DeliveryState::Cancelled, reason);
                self.mark_ready(endpoint);
            }
            Verdict::Wait => {
                let until = now + SUSPENDED_RECHECK;
                if let Some(lane) = self.lanes.get_mut(&endpoint) {
                    lane.put_back(job);
                    lane.suspended_until = Some(until);
                }
                self.timers.push(Reverse((until, endpoint)));
            }
        }
    }

    /// The endpoint was gone when the delivery was taken, and is back: its time has not come.
    fn not_yet(&mut self, job: &Job) {
        let endpoint = job.delivery.endpoint;
        self.held -= 1;
        self.held_bytes -= job.event.data.len();
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.forget(job.delivery.id);
        }
        self.retry_at(endpoint, job.delivery.due_at);
        self.mark_ready(endpoint);
    }

    /// Whether the endpoint is disabled or deleted. A delivery is committed after its endpoint: when
    /// the configuration was read after that and does not have the endpoint, it was deleted.
    pub(super) fn is_gone(&self, endpoint: EndpointId, committed_after: Timestamp) -> bool {
        match self.config.load().endpoint(endpoint) {
            Some(entry) => !entry.endpoint.is_active(),
            None => self.config.checked_at() > committed_after + SUSPENDED_RECHECK,
        }
    }

    /// The endpoint's present state decides, at the moment of sending (I5).
    fn judge(&self, endpoint: EndpointId, job: &Job, now: Timestamp) -> Verdict {
        let index = self.config.load();
        let Some(entry) = index.endpoint(endpoint) else {
            if self.is_gone(endpoint, job.event.accepted_at) {
                return Verdict::Cancel(FinishReason::EndpointDeleted);
            }
            self.config.refresh();
            return Verdict::Wait;
        };
        match entry.endpoint.state {
            EndpointState::Disabled { .. } => Verdict::Cancel(FinishReason::EndpointDisabled),
            EndpointState::Active if !entry.signer.can_sign(now) => Verdict::Wait,
            EndpointState::Active => Verdict::Send(Arc::clone(entry)),
        }
    }

    fn start_attempt(&self, entry: Arc<EndpointEntry>, job: Job, lease: ShardLease) {
        let (attempter, done) = (Arc::clone(&self.attempter), self.done.clone());
        let started_at = self.clock.now();
        self.tasks.spawn(async move {
            let (outcome, duration) = attempter.attempt(&entry, &job, started_at).await;
            let result = Done { job, lease, started_at, duration, outcome };
            if let Some(done) = done.upgrade() {
                // The dispatcher has ended; the delivery is still pending and will be tried again.
                drop(done.send(Input::Done(Box::new(result))).await);
            }
        });
    }
}
