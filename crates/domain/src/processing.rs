//! How far the processing of an event is, as its deliveries tell.

use crate::{Delivery, DeliveryState, Timestamp};

/// How far the processing of an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessingState {
    /// It is durable, and nothing was tried yet. An event that nobody wants stays so.
    Received,
    /// Some of its deliveries are under way or wait for their next attempt.
    Processing,
    /// Every receiver took it, or its delivery was cancelled.
    Processed,
    /// Every delivery has ended, and at least one will not be tried again by itself.
    Failed,
}

/// The processing of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processing {
    /// How far it is.
    pub state: ProcessingState,
    /// Deliveries looked at.
    pub deliveries: u32,
    /// Attempts of all of them.
    pub attempts: u32,
    /// When the last delivery ended; none while one has not.
    pub finished_at: Option<Timestamp>,
}

impl Processing {
    /// Deliveries looked at: an event that goes to more endpoints is judged by the first of them.
    pub const DELIVERIES: u16 = 1_000;

    /// Judges the deliveries of one event.
    pub fn of<'a>(deliveries: impl Iterator<Item = &'a Delivery>) -> Self {
        let (mut pending, mut dead) = (false, false);
        let mut found = Self {
            state: ProcessingState::Received,
            deliveries: 0,
            attempts: 0,
            finished_at: None,
        };
        for delivery in deliveries {
            found.deliveries = found.deliveries.saturating_add(1);
            found.attempts = found.attempts.saturating_add(delivery.attempts);
            pending |= delivery.state == DeliveryState::Pending;
            dead |= delivery.state == DeliveryState::Dead;
            found.finished_at = found.finished_at.max(delivery.finished_at);
        }
        found.state = match (pending, dead) {
            _ if found.deliveries == 0 => ProcessingState::Received,
            (true, _) if found.attempts == 0 && found.finished_at.is_none() => {
                ProcessingState::Received
            }
            (true, _) => ProcessingState::Processing,
            (false, true) => ProcessingState::Failed,
            (false, false) => ProcessingState::Processed,
        };
        if pending {
            found.finished_at = None;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeliveryId, EndpointId, EventUid, TenantId};
    use uuid::Uuid;

    #[test]
    fn an_event_is_processed_when_all_of_its_deliveries_are() {
        use DeliveryState::{Cancelled, Dead, Delivered, Pending};
        let delivery = |(state, attempts): &(DeliveryState, u32)| Delivery {
            id: DeliveryId::from_uuid(Uuid::nil()),
            tenant: TenantId::from_uuid(Uuid::nil()),
            endpoint: EndpointId::from_uuid(Uuid::nil()),
            event: EventUid::from_uuid(Uuid::nil()),
            state: *state,
            attempts: *attempts,
            due_at: None,
            finished_at: (*state != Pending)
                .then(|| Timestamp::from_micros(attempts.to_owned().into())),
            reason: None,
        };
        for (deliveries, expected, finished) in [
            (vec![], ProcessingState::Received, None),
            (vec![(Pending, 0), (Pending, 0)], ProcessingState::Received, None),
            (vec![(Pending, 1)], ProcessingState::Processing, None),
            (vec![(Pending, 0), (Delivered, 1)], ProcessingState::Processing, None),
            (vec![(Delivered, 1), (Delivered, 3)], ProcessingState::Processed, Some(3)),
            (vec![(Delivered, 1), (Cancelled, 0)], ProcessingState::Processed, Some(1)),
            (vec![(Delivered, 1), (Dead, 8)], ProcessingState::Failed, Some(8)),
        ] {
            let deliveries: Vec<Delivery> = deliveries.iter().map(delivery).collect();
            let judged = Processing::of(deliveries.iter());
            assert_eq!(judged.state, expected, "{deliveries:?}");
            assert_eq!(judged.finished_at, finished.map(Timestamp::from_micros));
        }
    }
}
