//! How the dispatcher reacts to each input.

use super::Dispatcher;
use crate::engine::{
    input::{Done, Handoff, Input, Job},
    lane::Lane,
    limits::{FOREIGN_MAX, HELD_BYTES_MAX, HELD_MAX},
};
use std::{cmp::Reverse, collections::HashMap, sync::Arc};
use turnbuckle_domain::{
    Attempt, AttemptOutcome, CLAIM_BYTES_MAX, Claimed, Decision, DeliveryId, DeliveryState,
    EndpointId, FinishReason, LaneClaim, LiveDelivery, Next, PendingLane, Progress, RetryRule,
    Settlement, Shard, ShardLease, Timestamp,
};

impl Dispatcher {
    pub(super) fn react(&mut self, input: Input) {
        match input {
            Input::HandedOff(handoffs) => {
                handoffs.into_iter().for_each(|handoff| self.hand_off(handoff));
            }
            Input::Done(done) => self.attempt_ended(*done),
            Input::Claimed { lanes, rows } => self.claim_ended(&lanes, rows),
            Input::Discovered { lanes, shared } => self.discovered(lanes, shared),
            Input::Settled(settled) => {
                settled.into_iter().for_each(|(endpoint, id)| self.settled(endpoint, id));
            }
            Input::Leases { leases, valid_until } => self.leases_renewed(leases, valid_until),
            Input::GiveBack(shards) => self.give_back(shards),
            Input::Cancelled(endpoint, id) => self.cancelled(endpoint, id),
            Input::Hinted => self.reads.hinting = false,
            Input::Wake(endpoint) => self.wake(endpoint),
            Input::Due(due) => due.into_iter().for_each(|due| self.due(due)),
        }
    }

    fn hand_off(&mut self, handoff: Handoff) {
        let Handoff { event, deliveries } = handoff;
        let weight = event.data.len() / deliveries.len().max(1);
        for new in deliveries {
            if self.is_pulled(new.endpoint) {
                self.pulls.wake(new.endpoint);
                self.tell_others(new.endpoint);
                continue;
            }
            if !self.is_usable(Shard::of(new.endpoint)) || self.stopping {
                // Another worker's, or the next owner's: it is in the store.
                self.tell_others(new.endpoint);
                continue;
            }
            let job = Job {
                delivery: LiveDelivery {
                    id: new.id,
                    tenant: event.tenant,
                    endpoint: new.endpoint,
                    shard: Shard::of(new.endpoint),
                    format: new.format,
                    due_at: event.accepted_at,
                    attempts: 0,
                    round_start: 0,
                    round_at: event.accepted_at,
                },
                event: Arc::clone(&event),
                weight,
            };
            let has_room =
                self.room() > 0 && !self.predates_lease(job.delivery.shard, event.accepted_at);
            let lane = self.lanes.entry(new.endpoint).or_insert_with(|| Lane::new(new.endpoint));
            if lane.hand_off(job, has_room).is_ok() {
                self.held += 1;
                self.held_bytes += weight;
                self.mark_ready(new.endpoint);
            } else {
                self.metrics.handoff_overflow.increment(1);
                self.make_hungry(new.endpoint);
            }
        }
    }

    pub(super) fn tell_others(&mut self, endpoint: EndpointId) {
        if self.shared_store && self.foreign.len() < FOREIGN_MAX {
            self.foreign.insert(endpoint);
        }
    }

    /// Deliveries that may still be taken into memory.
    pub(super) fn room(&self) -> usize {
        if self.held_bytes >= HELD_BYTES_MAX { 0 } else { HELD_MAX.saturating_sub(self.held) }
    }

    fn attempt_ended(&mut self, done: Done) {
        let Done { job, lease, started_at, duration, outcome } = done;
        let LiveDelivery { id, tenant, endpoint, attempts, round_start, round_at, .. } =
            job.delivery;
        self.slot_freed(endpoint);
        let Some(outcome) = outcome else { return self.unsent(job, lease) };
        self.held_bytes -= job.weight;
        let ended_at = started_at + duration;
        let progress = Progress { attempts: (attempts + 1).saturating_sub(round_start), round_at };
        let decision = self.decide(endpoint, progress, &outcome, ended_at);
        self.metrics.attempt(&outcome);
        self.health.observe((tenant, endpoint), &outcome, ended_at);
        let attempt = Attempt {
            number: attempts + 1,
            started_at,
            duration,
            outcome: outcome.class().into(),
            status: outcome.status(),
            detail: outcome.detail().into(),
            retry_delay: decision.delay(),
            retry_after_honoured: matches!(
                decision,
                Decision::Retry { retry_after_honoured: true, .. }
            ),
        };
        let next = next_of(decision, ended_at);
        if let Next::Finish { state, .. } = next {
            self.metrics.processed(state, ended_at.since(job.event.accepted_at));
        }
        if let Next::Retry { due_at } = next
            && self.is_usable(lease.shard)
        {
            self.retry_at(endpoint, due_at);
        }
        let settlement = Settlement {
            tenant,
            delivery: id,
            lease,
            attempts_before: attempts,
            attempt: Some(attempt),
            next,
            at: ended_at,
        };
        self.settle(endpoint, settlement);
        self.mark_ready(endpoint);
    }

    /// The endpoint's present policy decides, not the one of when the delivery was made.
    fn decide(
        &self,
        endpoint: EndpointId,
        progress: Progress,
        outcome: &AttemptOutcome,
        ended_at: Timestamp,
    ) -> Decision {
        let index = self.config.load();
        let random = self.random.unit();
        match index.endpoint(endpoint) {
            Some(entry) => entry.decide(progress, outcome, ended_at, random),
            None => RetryRule::default().decide(progress, outcome, ended_at, random),
        }
    }

    pub(super) fn retry_at(&mut self, endpoint: EndpointId, due_at: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        lane.retry_at(due_at);
        self.arm(endpoint, due_at);
    }

    /// Looks at the lane again at this time. One timer per lane counts: the nearest.
    pub(super) fn arm(&mut self, endpoint: EndpointId, at: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return };
        if lane.armed.is_none_or(|armed| at < armed) {
            lane.armed = Some(at);
            self.timers.push(Reverse((at, endpoint)));
        }
    }

    fn slot_freed(&mut self, endpoint: EndpointId) {
        self.in_flight -= 1;
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            lane.in_flight -= 1;
            if lane.in_flight == 0 {
                self.busy_lanes -= 1;
            }
        }
    }

    /// Nothing was sent, since the endpoint changed after the turn began: the turn begins anew.
    fn unsent(&mut self, job: Job, lease: ShardLease) {
        let endpoint = job.delivery.endpoint;
        let is_ours = self.leases.get(&lease.shard) == Some(&lease) && self.is_usable(lease.shard);
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            if is_ours {
                lane.put_back(job);
            } else {
                self.held -= 1;
                self.held_bytes -= job.weight;
                lane.settled(job.delivery.id);
            }
        }
        self.mark_ready(endpoint);
    }

    /// Its row is gone. One that is in flight cannot be called back.
    fn cancelled(&mut self, endpoint: EndpointId, id: DeliveryId) {
        let Some(lane) = self.lanes.get_mut(&endpoint) else { return };
        if let Some(job) = lane.take_out(id) {
            self.held -= 1;
            self.held_bytes -= job.weight;
        }
    }

    pub(super) fn settle(&mut self, endpoint: EndpointId, settlement: Settlement) {
        if let Next::Finish { state, .. } = settlement.next {
            self.metrics.finished(state);
        }
        self.unsettled += 1;
        self.results.push(endpoint, settlement);
    }

    fn settled(&mut self, endpoint: EndpointId, id: DeliveryId) {
        self.unsettled = self.unsettled.saturating_sub(1);
        if let Some(lane) = self.lanes.get_mut(&endpoint) {
            if lane.holds(id) {
                lane.settled(id);
                self.held -= 1;
            }
            if lane.is_idle() && lane.can_go(self.clock.now()) {
                self.lanes.remove(&endpoint);
            }
        }
    }

    fn claim_ended(&mut self, lanes: &[LaneClaim], rows: Option<Vec<Claimed>>) {
        self.reads.claiming = false;
        let Some(rows) = rows else {
            for claim in lanes {
                if let Some(lane) = self.lanes.get_mut(&claim.endpoint) {
                    lane.claim_failed();
                }
            }
            // Discovery, a second away, makes them hungry again: no storm on a store in trouble.
            return;
        };
        let mut got: HashMap<EndpointId, usize> = HashMap::with_capacity(lanes.len());
        let size = |row: &Claimed| row.event.as_ref().map_or(0, |event| event.data.len());
        // Then there may be more than were answered, in every lane.
        let is_cut = rows.iter().map(size).sum::<usize>() >= CLAIM_BYTES_MAX;
        for row in rows {
            *got.entry(row.delivery.endpoint).or_default() += 1;
            self.claimed(row);
        }
        for claim in lanes {
            let Some(lane) = self.lanes.get_mut(&claim.endpoint) else {
                continue;
            };
            let got = got.get(&claim.endpoint).copied().unwrap_or(0);
            lane.claim_ended(claim.limit, if is_cut { usize::from(claim.limit) } else { got });
            self.mark_ready(claim.endpoint);
        }
    }

    fn claimed(&mut self, row: Claimed) {
        let Claimed { delivery, event } = row;
        let endpoint = delivery.endpoint;
        if !self.is_usable(delivery.shard) {
            // The shard went while the claim was under way.
            return;
        }
        let Some(lane) = self.lanes.get_mut(&endpoint) else {
            return;
        };
        let Some(event) = event else {
            if lane.wants(delivery.id) {
                lane.skip_to(delivery.due_at, delivery.id);
                self.held += 1;
                self.finish_unsent(&delivery, DeliveryState::Dead, FinishReason::EventGone);
            }
            return;
        };
        let weight = event.data.len();
        if lane.claimed(Job { delivery, event, weight }) {
            self.held += 1;
            self.held_bytes += weight;
        }
    }

    /// Ends a delivery without an attempt.
    pub(super) fn finish_unsent(
        &mut self,
        delivery: &LiveDelivery,
        state: DeliveryState,
        reason: FinishReason,
    ) {
        let Some(lease) = self.leases.get(&delivery.shard).copied() else {
            return;
        };
        let settlement = Settlement {
            tenant: delivery.tenant,
            delivery: delivery.id,
            lease,
            attempts_before: delivery.attempts,
            attempt: None,
            next: Next::Finish { state, reason: Some(reason) },
            at: self.clock.now(),
        };
        self.settle(delivery.endpoint, settlement);
    }

    fn discovered(&mut self, lanes: Vec<PendingLane>, shared: bool) {
        self.reads.discovered();
        let now = self.clock.now();
        self.lanes.retain(|_, lane| !lane.can_go(now));
        for PendingLane { endpoint, due_at, first } in lanes {
            if !self.is_usable(Shard::of(endpoint)) || self.is_pulled(endpoint) {
                continue;
            }
            self.lanes.entry(endpoint).or_insert_with(|| Lane::new(endpoint));
            let is_gone = self.is_gone(endpoint);
            let Some(lane) = self.lanes.get_mut(&endpoint) else { continue };
            if is_gone {
                lane.close();
                self.make_hungry(endpoint);
                continue;
            }
            if due_at > now {
                if lane.next_retry().is_none() {
                    self.retry_at(endpoint, due_at);
                }
                continue;
            }
            lane.discovered(due_at, first, shared);
            if lane.backlog {
                self.make_hungry(endpoint);
            }
        }
    }

    fn wake(&mut self, endpoint: EndpointId) {
        if !self.is_usable(Shard::of(endpoint)) || self.is_pulled(endpoint) {
            return;
        }
        let lane = self.lanes.entry(endpoint).or_insert_with(|| Lane::new(endpoint));
        lane.note_overflow();
        self.make_hungry(endpoint);
    }
}

fn next_of(decision: Decision, ended_at: Timestamp) -> Next {
    match decision {
        Decision::Delivered => Next::Finish { state: DeliveryState::Delivered, reason: None },
        Decision::Retry { delay, .. } => Next::Retry { due_at: ended_at + delay },
        Decision::Dead(reason) => Next::Finish { state: DeliveryState::Dead, reason: Some(reason) },
    }
}
