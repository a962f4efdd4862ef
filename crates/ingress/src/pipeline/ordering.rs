//! What an operator is told about the order of a request's events.

use crate::event::MissingOrder;
use metrics::counter;
use turnbuckle_domain::{EventOrder, OrderingPolicy};

/// How the events of a request stood.
#[derive(Default)]
pub(super) struct OrderTally {
    accepted: usize,
    /// Those that were not simply next: how many, and the first of them.
    others: usize,
    first: Option<EventOrder>,
    missing: Option<MissingOrder>,
}

impl OrderTally {
    /// Notes why the order of an event cannot be watched.
    pub(super) fn lacks(&mut self, missing: Option<MissingOrder>) {
        let Some(missing) = missing else { return };
        counter!("turnbuckle_ingress_unordered_total", "missing" => missing.as_str()).increment(1);
        self.missing.get_or_insert(missing);
    }

    /// Notes how an accepted event stood.
    pub(super) fn stood(&mut self, order: Option<EventOrder>) {
        self.accepted += 1;
        if let Some(order) = order {
            self.others += 1;
            self.first.get_or_insert(order);
        }
    }

    /// One line for the receipt; none when all is as it should be.
    pub(super) fn remark(&self, policy: OrderingPolicy) -> Option<String> {
        let Some(first) = self.first else {
            let missing = self.missing?.as_str();
            return Some(format!("its order is not watched: it has no {missing} at the place set"));
        };
        let why = match first {
            EventOrder::Stale => "its sequence is not above the last one of its subject",
            EventOrder::Gap => "sequences before it are missing",
            EventOrder::AfterFinal => "its subject has reached a final state",
            EventOrder::Held => "sequences before it are missing, and it waits for them",
        };
        let what = match (first, policy) {
            (EventOrder::Held, _) => "",
            (_, OrderingPolicy::Mark) => ": delivered with turnbuckle-order",
            _ => ": recorded, not delivered",
        };
        Some(match self.accepted {
            1 => format!("{why}{what}"),
            all => format!("{} of {all} events: {why}{what}", self.others),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_was_not_next_is_told() {
        let remark = |orders: &[Option<EventOrder>], policy| {
            let mut tally = OrderTally::default();
            orders.iter().for_each(|order| tally.stood(*order));
            tally.remark(policy)
        };
        let stale = Some(EventOrder::Stale);
        let why = "its sequence is not above the last one of its subject";
        assert_eq!(remark(&[None], OrderingPolicy::Mark), None);
        assert_eq!(
            remark(&[stale], OrderingPolicy::DropStale),
            Some(format!("{why}: recorded, not delivered"))
        );
        assert_eq!(
            remark(&[None, stale, stale], OrderingPolicy::Mark),
            Some(format!("2 of 3 events: {why}: delivered with turnbuckle-order"))
        );
        let held = remark(&[Some(EventOrder::Held)], OrderingPolicy::DropStale).unwrap();
        assert!(held.ends_with("waits for them"), "{held}");
        let mut tally = OrderTally::default();
        tally.lacks(Some(MissingOrder::Sequence));
        tally.stood(None);
        assert!(tally.remark(OrderingPolicy::Mark).unwrap().contains("no sequence"));
    }
}
