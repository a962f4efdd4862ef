//! The way from an ingress into the event log.
//!
//! ```text
//!  ingress ── verified, mapped ──► EventIntake: route, dedup, commit ──► what became of it
//! ```
//! Who routes owns this port: the ingress knows sources, and neither event types nor subscriptions.

use crate::{
    DedupRule, Error, EventDraft, EventOrder, EventUid, OperationalEvent, OrderInstruction,
    Reserved, StoreError, TenantId, Timestamp,
};
use async_trait::async_trait;
use bytes::Bytes;

/// An event that a source's sender sent.
pub struct IntakeEvent {
    /// The event, not yet checked. Without an event id it is never a repeat.
    pub draft: EventDraft,
    /// The part of the payload that makes two requests with one id the same; none: all of it.
    pub content: Option<Bytes>,
    /// What is to be done about its order; none: nothing. It has subject and sequence then.
    pub order: Option<OrderInstruction>,
    /// How repeats are known; none: it is a new event, whatever its id.
    pub dedup: Option<DedupRule>,
}

/// What became of an [`IntakeEvent`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// Durable and routed.
    Accepted {
        /// Names it.
        uid: EventUid,
        /// How it stood to the order of its subject, when it was not the next one.
        order: Option<EventOrder>,
    },
    /// It was accepted before; nothing new happened.
    Duplicate {
        /// The first one.
        uid: EventUid,
        /// When that was accepted.
        accepted_at: Timestamp,
    },
    /// Another id, which nobody signed, with a signed body that came before; nothing new happened.
    Replay {
        /// The event that the body made.
        uid: EventUid,
        /// When that was accepted.
        accepted_at: Timestamp,
    },
    /// Its id was used for other content: recorded, never processed.
    Anomaly,
    /// It cannot be an event. Nothing was stored.
    Refused(IntakeRefusal),
    /// The store did not say. Nothing new was stored; a repeat tells.
    Unknown,
}

/// Why something cannot be an event. For the operator; holds nothing of the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntakeRefusal {
    /// Its event type is registered, and refuses the version.
    UnknownVersion,
    /// A field breaks a rule.
    Unusable {
        /// Which fields, as in the API.
        fields: String,
    },
}

/// Takes what an ingress has verified.
#[async_trait]
pub trait EventIntake: Send + Sync + 'static {
    /// Routes events and commits each with its deliveries in one transaction, a large batch in several;
    /// answers in their order. Room set aside for the events is kept for as long as they wait for the
    /// store, also when the caller no longer does. When it returns `Ok`, everything accepted is durable (I1). Events of types that are not
    /// registered are taken too: what third parties send is not ours to name first.
    ///
    /// # Errors
    /// When the tenant is not known here yet, or the store does not answer. Repeating is safe for
    /// events with ids.
    async fn take(
        &self,
        tenant: TenantId,
        events: Vec<IntakeEvent>,
        room: Reserved,
    ) -> Result<Vec<Taken>, Error>;

    /// The event that was first under an id of a source, and when it was accepted.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn first_accepted(
        &self,
        tenant: TenantId,
        source: &str,
        event_id: &str,
    ) -> Result<Option<(EventUid, Timestamp)>, StoreError>;

    /// Tells the tenant something by an event of its own. Waits for nothing: one that finds no room, or
    /// repeats what was just told, is counted and left out.
    fn tell(&self, event: OperationalEvent);
}
