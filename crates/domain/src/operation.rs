//! Operational events: what the service itself tells a tenant, in the tenant's own event log.
//!
//! They are events like any other, of the source `operations` and of types that begin with
//! `turnbuckle.`, and reach whoever subscribes to those types by name or by `turnbuckle.*`; the
//! pattern `*` leaves them out. Nothing about an operational event makes another one: no loops.

use crate::{Event, TenantId};
use serde_json::Value;

/// What the service has to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// An event id came again with other content.
    Anomaly,
    /// Many requests to a source were not believed within a short time.
    VerificationFailures,
    /// The service disabled an endpoint.
    EndpointDisabled,
}

impl OperationKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Anomaly, Self::VerificationFailures, Self::EndpointDisabled];

    /// The event type.
    #[must_use]
    pub const fn event_type(self) -> &'static str {
        match self {
            Self::Anomaly => "turnbuckle.anomaly",
            Self::VerificationFailures => "turnbuckle.verification_failures",
            Self::EndpointDisabled => "turnbuckle.endpoint.disabled",
        }
    }

    /// Reads the event type.
    #[must_use]
    pub fn parse(event_type: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.event_type() == event_type)
    }
}

/// One operational event. Holds no payload, no secret and no signature.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationalEvent {
    /// Whom it concerns.
    pub tenant: TenantId,
    /// What happened.
    pub kind: OperationKind,
    /// What it is about, such as `sources/github`. Of each kind one a minute is told about it.
    pub subject: String,
    /// The payload, a JSON object.
    pub data: Value,
}

impl OperationalEvent {
    /// The source of operational events; nobody else may use it.
    pub const SOURCE: &'static str = "operations";
    /// What the types of operational events begin with; nobody else may use it.
    pub const TYPES: &'static str = "turnbuckle.";

    /// Whether an event is an operational one, about which nothing is told.
    #[must_use]
    pub fn is(event: &Event) -> bool {
        event.source == Self::SOURCE
    }
}
