//! What becomes of the rows of a step, the same on both backends.

use std::collections::BTreeSet;
use turnbuckle_domain::{
    DeliveryId, DeliveryState, EndpointId, ReopenedStates, Reopening, ReplayCounts, ReplayStep,
    Rerouted, StepDone,
};

/// What became of a finished delivery that was to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is pending again.
    Opened,
    /// It was pending already.
    Pending,
    /// Its event is gone.
    Gone,
    /// It is in a state that is not chosen, or is no longer kept.
    Unchosen,
}

/// A step under way.
pub(crate) struct Tally<'s> {
    states: ReopenedStates,
    counts: ReplayCounts,
    endpoints: BTreeSet<EndpointId>,
    /// Finished deliveries to be opened.
    pub(crate) reopen: Vec<Reopening>,
    /// Deliveries to be made.
    pub(crate) make: Vec<&'s Rerouted>,
}

impl<'s> Tally<'s> {
    pub(crate) fn of(step: &'s ReplayStep) -> Self {
        Self {
            states: step.states,
            counts: step.counts,
            endpoints: BTreeSet::new(),
            reopen: step.reopen.clone(),
            make: Vec::new(),
        }
    }

    /// Sorts an event that is to be placed, by the delivery that it has at that endpoint.
    pub(crate) fn found(&mut self, one: &'s Rerouted, known: Option<(DeliveryId, DeliveryState)>) {
        match known {
            None => self.make.push(one),
            Some((_, DeliveryState::Pending)) => self.counts.skipped_pending += 1,
            Some((delivery, state)) if self.states.has(state) => {
                self.reopen.push(Reopening { delivery, endpoint: one.delivery.endpoint });
            }
            Some(_) => self.counts.skipped_finished += 1,
        }
    }

    /// Counts what became of one to be opened.
    pub(crate) fn opened(&mut self, one: Reopening, fate: Fate) {
        match fate {
            Fate::Opened => {
                self.counts.reopened += 1;
                self.endpoints.insert(one.endpoint);
            }
            Fate::Pending => self.counts.skipped_pending += 1,
            Fate::Gone => self.counts.skipped_gone += 1,
            Fate::Unchosen => self.counts.skipped_finished += 1,
        }
    }

    /// Counts what became of one to be made: nothing, when its event is gone.
    pub(crate) fn made(&mut self, one: &Rerouted, made: bool) {
        if made {
            self.counts.made += 1;
            self.endpoints.insert(one.delivery.endpoint);
        } else {
            self.counts.skipped_gone += 1;
        }
    }

    pub(crate) const fn counts(&self) -> &ReplayCounts {
        &self.counts
    }

    pub(crate) fn finish(self) -> StepDone {
        StepDone { counts: self.counts, endpoints: self.endpoints.into_iter().collect() }
    }
}
