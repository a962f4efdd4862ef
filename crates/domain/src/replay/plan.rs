//! What a replay does about a page of rows: a pure function of filter and rows.

use super::{Reopening, ReplayCounts, ReplayFilter, Rerouted};
use crate::{DeliveryId, DeliveryState, EndpointId, Event, EventUid, FinishReason};
use uuid::Uuid;

/// A row of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplayRow {
    /// A finished delivery.
    Delivery {
        /// Which one.
        id: DeliveryId,
        /// Where it went.
        endpoint: EndpointId,
        /// Its event.
        event: EventUid,
        /// How it ended.
        state: DeliveryState,
        /// Why, unless delivered.
        reason: Option<FinishReason>,
        /// Source and type of the event; none when retention took it.
        kept: Option<(String, String)>,
    },
    /// An event, without its payload.
    Event(Box<Event>),
}

/// What the filter says of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// It is not chosen.
    Other,
    /// It is chosen.
    Chosen,
    /// It is chosen as far as one can tell, but its event is gone.
    Gone,
}

impl ReplayRow {
    /// Where the walk stands after this row.
    #[must_use]
    pub fn position(&self) -> Uuid {
        match self {
            Self::Delivery { id, .. } => id.uuid(),
            Self::Event(event) => event.uid.uuid(),
        }
    }
}

impl ReplayFilter {
    /// Whether this row is chosen. Times are not looked at: they bound the walk.
    #[must_use]
    pub fn look(&self, row: &ReplayRow) -> Looked {
        match row {
            ReplayRow::Event(event) => {
                let chosen = self.has_event(event.uid)
                    && self.has_kind(&event.source, event.event_type.as_str());
                if chosen { Looked::Chosen } else { Looked::Other }
            }
            ReplayRow::Delivery { endpoint, event, state, reason, kept, .. } => {
                let chosen = self.endpoint.is_none_or(|only| only == *endpoint)
                    && self.states.has(*state)
                    && (self.reasons.is_empty()
                        || reason.is_some_and(|reason| self.reasons.contains(&reason)))
                    && self.has_event(*event);
                match kept {
                    _ if !chosen => Looked::Other,
                    Some((source, event_type)) if self.has_kind(source, event_type) => {
                        Looked::Chosen
                    }
                    Some(_) => Looked::Other,
                    // What it was cannot be told any more.
                    None if self.source.is_none() && self.event_types.is_empty() => Looked::Gone,
                    None => Looked::Other,
                }
            }
        }
    }

    fn has_event(&self, event: EventUid) -> bool {
        self.events.is_empty() || self.events.binary_search(&event).is_ok()
    }

    fn has_kind(&self, source: &str, event_type: &str) -> bool {
        self.source.as_ref().is_none_or(|only| only == source)
            && (self.event_types.is_empty()
                || self.event_types.iter().any(|pattern| pattern.matches(event_type)))
    }
}

/// A step in the making.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepPlan {
    /// Finished deliveries to be opened again.
    pub reopen: Vec<Reopening>,
    /// Events to be placed with an endpoint.
    pub place: Vec<Rerouted>,
    /// What was counted.
    pub counts: ReplayCounts,
    /// The last row looked at.
    pub position: Option<Uuid>,
}

impl StepPlan {
    /// Rows that it opens or makes.
    #[must_use]
    pub fn touched(&self) -> usize {
        self.reopen.len() + self.place.len()
    }

    /// Where they go.
    pub fn endpoints(&self) -> impl Iterator<Item = EndpointId> {
        let opened = self.reopen.iter().map(|one| one.endpoint);
        opened.chain(self.place.iter().map(|one| one.delivery.endpoint))
    }

    /// Takes a finished delivery that was looked at. `is_active` says whether its endpoint takes
    /// deliveries today.
    pub fn delivery(
        &mut self,
        looked: Looked,
        one: Reopening,
        is_active: impl FnOnce(EndpointId) -> bool,
    ) {
        self.counts.looked_at += 1;
        self.position = Some(one.delivery.uuid());
        match looked {
            Looked::Other => return,
            Looked::Gone => self.counts.skipped_gone += 1,
            Looked::Chosen if is_active(one.endpoint) => self.reopen.push(one),
            Looked::Chosen => self.counts.skipped_inactive += 1,
        }
        self.counts.matched += 1;
    }

    /// Takes an event that was looked at, with where it goes today.
    pub fn event(&mut self, event: EventUid, chosen: Option<Vec<Rerouted>>) {
        self.counts.looked_at += 1;
        self.position = Some(event.uuid());
        let Some(targets) = chosen else { return };
        self.counts.matched += 1;
        if targets.is_empty() {
            self.counts.skipped_unwanted += 1;
        }
        self.place.extend(targets);
    }
}
