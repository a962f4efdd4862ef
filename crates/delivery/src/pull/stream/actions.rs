//! What happens to deliveries: taken, acknowledged, given back, prolonged, written down.

use super::{PullStream, Pulled, Said, Told};
use crate::pull::{
    held::{Held, parse_lease_token},
    limits::{ACTIONS_MAX, MESSAGE_BYTES},
    settle::{Action, Asked, Write, Written},
};
use turnbuckle_domain::{
    Attempt, AttemptOutcome, Decision, DeliveryId, DeliveryState, FinishReason, LeaseExtension,
    LeaseToken, Leased, LiveDelivery, Next, Progress, PullSettlement, RetryRule, Settled,
    Timestamp, extended_until,
};

impl PullStream {
    /// Takes a leased row in: what lapsed before is settled first, what has no event ends here.
    pub(super) fn take(&mut self, row: Leased) {
        let Leased { delivery, event, token, lapsed, .. } = row;
        let now = self.puller.clock.now();
        let expires_at = delivery.due_at;
        let bytes = event.as_ref().map_or(0, |event| event.data.len());
        let held = Held { delivery, token, leased_at: now, expires_at, bytes, is_sent: false };
        if let Some(lapsed) = lapsed {
            let before = Held { leased_at: lapsed.leased_at, ..held };
            self.settle_own(&before, &AttemptOutcome::LeaseLapsed, lapsed.expired_at);
            return;
        }
        let Some(event) = event else {
            let next =
                Next::Finish { state: DeliveryState::Dead, reason: Some(FinishReason::EventGone) };
            self.puller.metrics.finished(DeliveryState::Dead);
            let settlement = settlement(&held, None, next, now);
            return self.write(Write::Settle(Box::new(settlement)), Action::Own, String::new());
        };
        let pulled = Pulled {
            delivery: held.delivery.id,
            lease_token: held.lease_token(),
            expires_at,
            attempt: held.delivery.attempts + 1,
            event,
        };
        self.seat.took(bytes);
        self.held.insert(held);
        self.put_out(pulled, bytes);
    }

    /// Adds to the last message while it stays small enough.
    fn put_out(&mut self, pulled: Pulled, bytes: usize) {
        if let Some(Told::Deliveries(last)) = self.outbox.back_mut() {
            let weight: usize = last.iter().map(|one| one.event.data.len()).sum();
            if weight + bytes <= MESSAGE_BYTES {
                last.push(pulled);
                return;
            }
        }
        self.outbox.push_back(Told::Deliveries(vec![pulled]));
    }

    pub(super) fn note_sent(&mut self, told: &Told) {
        if let Told::Deliveries(deliveries) = told {
            deliveries.iter().for_each(|one| self.held.mark_sent(one.delivery));
        }
    }

    pub(super) fn act(&mut self, said: Said) {
        let now = self.puller.clock.now();
        match said {
            Said::Ack { lease_token } => match self.release(&lease_token) {
                Some(held) => {
                    let settlement = self.attempt(&held, &AttemptOutcome::Acknowledged, now);
                    self.writing += 1;
                    self.write(Write::Settle(Box::new(settlement)), Action::Ack, lease_token);
                }
                None => self.tell(stale(Action::Ack, lease_token)),
            },
            Said::Return { lease_token, delay } => match self.release(&lease_token) {
                Some(held) => {
                    let settlement = self.attempt(&held, &AttemptOutcome::Returned { delay }, now);
                    self.writing += 1;
                    self.write(Write::Settle(Box::new(settlement)), Action::Return, lease_token);
                }
                None => self.tell(stale(Action::Return, lease_token)),
            },
            Said::Extend { lease_token, lease } => {
                let named = parse_lease_token(&lease_token);
                let Some(held) = named.and_then(|(id, token)| self.held.get(id, token)) else {
                    return self.tell(stale(Action::Extend(now), lease_token));
                };
                let until = extended_until(held.leased_at, now, lease);
                let (tenant, delivery) = (held.delivery.tenant, held.delivery.id);
                let extension = LeaseExtension { tenant, delivery, token: held.token, until };
                self.write(Write::Extend(extension), Action::Extend(until), lease_token);
            }
        }
    }

    /// Takes a delivery out whose lease holds.
    fn release(&mut self, lease_token: &str) -> Option<Held> {
        let (id, token): (DeliveryId, LeaseToken) = parse_lease_token(lease_token)?;
        let held = self.held.take(id, token)?;
        self.seat.gave(held.bytes);
        Some(held)
    }

    pub(super) fn note_written(&mut self, written: Written) {
        self.unanswered -= 1;
        let ordered = self.puller.target(self.endpoint, &self.name);
        let is_ordered = ordered.is_ok_and(|target| target.ordered_by_subject);
        match written.action {
            Action::Own => return self.seat.wake(),
            Action::Extend(until) => {
                if written.outcome == Settled::Applied
                    && let Some((id, token)) = parse_lease_token(&written.lease_token)
                {
                    self.held.extend(id, token, until);
                }
            }
            Action::Ack | Action::Return => {
                self.writing -= 1;
                // A return may be due at once, and the next of a subject may follow.
                if is_ordered || written.action == Action::Return {
                    self.seat.wake();
                }
            }
        }
        self.tell(written);
    }

    fn tell(&mut self, written: Written) {
        match self.outbox.back_mut() {
            Some(Told::Results(last)) if last.len() < ACTIONS_MAX => last.push(written),
            _ => self.outbox.push_back(Told::Results(vec![written])),
        }
    }

    pub(super) fn write(&mut self, write: Write, action: Action, lease_token: String) {
        self.unanswered += 1;
        let reply = self.reply.clone();
        // The settler outlives every stream.
        self.puller.writes.push(Asked { write, action, lease_token, reply });
    }

    pub(super) fn settle_own(
        &mut self,
        held: &Held,
        outcome: &AttemptOutcome,
        ended_at: Timestamp,
    ) {
        let settlement = self.attempt(held, outcome, ended_at);
        self.write(Write::Settle(Box::new(settlement)), Action::Own, String::new());
    }

    /// The end of an attempt, by the endpoint's present policy.
    fn attempt(
        &self,
        held: &Held,
        outcome: &AttemptOutcome,
        ended_at: Timestamp,
    ) -> PullSettlement {
        let LiveDelivery { attempts, round_start, round_at, .. } = held.delivery;
        let progress = Progress { attempts: (attempts + 1).saturating_sub(round_start), round_at };
        let (index, random) = (self.puller.config.load(), self.puller.random.unit());
        let decision = match index.endpoint(self.endpoint) {
            Some(entry) => entry.decide(progress, outcome, ended_at, random),
            None => RetryRule::default().decide(progress, outcome, ended_at, random),
        };
        let attempt = Attempt {
            number: attempts + 1,
            started_at: held.leased_at,
            duration: ended_at.since(held.leased_at),
            outcome: outcome.class().into(),
            status: None,
            detail: outcome.detail().into(),
            retry_delay: decision.delay(),
            retry_after_honoured: false,
        };
        self.puller.metrics.attempt(outcome);
        let next = next_of(decision, ended_at);
        if let Next::Finish { state, .. } = next {
            self.puller.metrics.finished(state);
        }
        settlement(held, Some(attempt), next, ended_at)
    }
}

const fn stale(action: Action, lease_token: String) -> Written {
    Written { action, lease_token, outcome: Settled::Stale }
}

pub(super) fn settlement(
    held: &Held,
    attempt: Option<Attempt>,
    next: Next,
    at: Timestamp,
) -> PullSettlement {
    PullSettlement {
        tenant: held.delivery.tenant,
        delivery: held.delivery.id,
        token: held.token,
        attempts_before: held.delivery.attempts,
        attempt,
        next,
        at,
    }
}

fn next_of(decision: Decision, ended_at: Timestamp) -> Next {
    match decision {
        Decision::Delivered => Next::Finish { state: DeliveryState::Delivered, reason: None },
        Decision::Retry { delay, .. } => Next::Retry { due_at: ended_at + delay },
        Decision::Dead(reason) => Next::Finish { state: DeliveryState::Dead, reason: Some(reason) },
    }
}
