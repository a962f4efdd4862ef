//! Deliveries that wait for a time of their own, and those whose time has come early.

use super::Dispatcher;
use crate::engine::{input::Due, lane::Lane, limits::FOREIGN_MAX};
use turnbuckle_domain::{LiveDelivery, Shard};

impl Dispatcher {
    /// Looks at a lane when something of it is due that was not handed over.
    pub(super) fn due(&mut self, due: Due) {
        let Due { endpoint, at } = due;
        let later = at.filter(|at| *at > self.clock.now());
        if self.is_pulled(endpoint) {
            // What is due later is found by those who look for it.
            if later.is_none() {
                self.pulls.wake(endpoint);
                self.tell_others(endpoint);
            }
            return;
        }
        if !self.is_usable(Shard::of(endpoint)) || self.stopping {
            // Its worker finds what is due later by itself.
            if self.shared_store && later.is_none() && self.foreign.len() < FOREIGN_MAX {
                self.foreign.insert(endpoint);
            }
            return;
        }
        let lane = self.lanes.entry(endpoint).or_insert_with(|| Lane::new(endpoint));
        match later {
            Some(at) => self.retry_at(endpoint, at),
            None => {
                lane.came_to_light();
                self.make_hungry(endpoint);
            }
        }
    }
}

/// Whether a delivery is meant to start no earlier than it is due: a retry, or one that waits for its
/// turn. Others are taken a little early, since the clock of who accepted them may be ahead.
pub(super) fn is_scheduled(delivery: &LiveDelivery) -> bool {
    delivery.attempts > 0 || delivery.due_at > delivery.round_at
}
