//! What follows from the place of an event in the order of its subject.

use crate::engine::{Due, Handoff};
use metrics::{Counter, counter};
use std::sync::Arc;
use turnbuckle_domain::{Append, Event, EventOrder, Placed};

/// Splits a placed event into what can be sent at once and what is to be looked at later. What waited
/// and is due now is in the store.
pub(super) fn hand_off(
    append: Append,
    placed: &Placed,
    handoffs: &mut Vec<Handoff>,
    due: &mut Vec<Due>,
) {
    due.extend(placed.released.iter().map(|endpoint| Due { endpoint: *endpoint, at: None }));
    let Append { event, deliveries, .. } = append;
    let Some(due_at) = placed.due_at.filter(|_| !deliveries.is_empty()) else { return };
    if due_at > event.accepted_at {
        let later = |endpoint| Due { endpoint, at: Some(due_at) };
        due.extend(deliveries.into_iter().map(|delivery| later(delivery.endpoint)));
        return;
    }
    let event = match placed.order {
        None => event,
        // As the store has it now: every send says the same (I3).
        order => Arc::new(Event { order, ..Event::clone(&event) }),
    };
    handoffs.push(Handoff { event, deliveries });
}

/// Metrics of watched events.
pub(crate) struct OrderMetrics {
    in_order: Counter,
    /// In the order of [`EventOrder::ALL`].
    others: [Counter; 4],
    closed: Counter,
    timed_out: Counter,
    overfull: Counter,
}

impl OrderMetrics {
    pub(crate) fn new() -> Self {
        let stood =
            |order: &'static str| counter!("turnbuckle_ordered_events_total", "order" => order);
        let ended = |end: &'static str| counter!("turnbuckle_order_gaps_total", "end" => end);
        Self {
            in_order: stood("in-order"),
            others: EventOrder::ALL.map(|order| stood(order.as_str())),
            closed: ended("closed"),
            timed_out: ended("timed_out"),
            overfull: ended("overfull"),
        }
    }

    pub(crate) fn count(&self, placed: &Placed) {
        let place = EventOrder::ALL.iter().position(|order| Some(*order) == placed.order);
        place.and_then(|place| self.others.get(place)).unwrap_or(&self.in_order).increment(1);
        self.closed.increment(placed.gaps.closed.into());
        self.timed_out.increment(placed.gaps.timed_out.into());
        self.overfull.increment(placed.gaps.overfull.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::{
        Channels, DeliveryId, EndpointId, EventUid, NewDelivery, PayloadFormat, TenantId,
        Timestamp, TypeName,
    };
    use uuid::Uuid;

    const NOW: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);
    const LATER: Timestamp = Timestamp::from_micros(1_800_000_001_000_000);

    fn endpoint(number: u128) -> EndpointId {
        EndpointId::from_uuid(Uuid::from_u128(number))
    }

    fn append() -> Append {
        let event = Event {
            uid: EventUid::from_uuid(Uuid::nil()),
            tenant: TenantId::from_uuid(Uuid::nil()),
            event_id: "e".into(),
            event_type: TypeName::new("a").unwrap(),
            event_version: "1".into(),
            occurred_at: NOW,
            source: "s".into(),
            subject: Some("o".into()),
            sequence: Some(1),
            content_type: String::new(),
            data: bytes::Bytes::new(),
            accepted_at: NOW,
            channels: Channels::default(),
            order: None,
        };
        let delivery = NewDelivery {
            id: DeliveryId::from_uuid(Uuid::nil()),
            endpoint: endpoint(1),
            format: PayloadFormat::Raw,
        };
        let content_hash = event.content_hash();
        let event = Arc::new(event);
        Append { event, content_hash, dedup: None, deliveries: vec![delivery], order: None }
    }

    fn parts(placed: &Placed) -> (Vec<Option<EventOrder>>, Vec<Due>) {
        let (mut handoffs, mut due) = (Vec::new(), Vec::new());
        hand_off(append(), placed, &mut handoffs, &mut due);
        (handoffs.iter().map(|handoff| handoff.event.order).collect(), due)
    }

    #[test]
    fn only_what_is_due_at_once_is_handed_over() {
        let now = Placed { due_at: Some(NOW), ..Placed::default() };
        assert_eq!(parts(&now), (vec![None], vec![]));
        let marked = Placed { order: Some(EventOrder::Stale), ..now };
        assert_eq!(parts(&marked), (vec![Some(EventOrder::Stale)], vec![]));
        let held = Placed { due_at: Some(LATER), ..Placed::default() };
        assert_eq!(parts(&held), (vec![], vec![Due { endpoint: endpoint(1), at: Some(LATER) }]));
        let dropped = Placed { released: vec![endpoint(7)], ..Placed::default() };
        assert_eq!(parts(&dropped), (vec![], vec![Due { endpoint: endpoint(7), at: None }]));
    }
}
