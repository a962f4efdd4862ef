//! Configuration nouns: tenants, event types, endpoints, subscriptions.

use crate::{
    Channels, Compatibility, EndpointId, EventTypeId, Filter, Labels, Meta, ResourceId,
    RetryPolicyId, SubscriptionId, TenantId, TypeName, TypePattern, UnknownVersion,
};
use std::{collections::BTreeMap, time::Duration};

/// Bounds of configuration, each with its reason.
pub mod limits {
    use std::time::Duration;

    /// Display names are one line.
    pub const DISPLAY_NAME_CHARS: usize = 200;
    /// Descriptions are a paragraph.
    pub const DESCRIPTION_CHARS: usize = 2_000;
    /// Longest URL that every receiver and proxy in between takes.
    pub const URL_CHARS: usize = 2_048;
    /// Extra request headers of an endpoint: well inside the header count limits of common servers.
    pub const HEADERS: usize = 32;
    /// Longest extra header value.
    pub const HEADER_VALUE_BYTES: usize = 4_096;
    /// Shortest attempt: below this a TLS handshake across a continent fails.
    pub const TIMEOUT_MIN: Duration = Duration::from_secs(1);
    /// Longest attempt: a slot is held for that long.
    pub const TIMEOUT_MAX: Duration = Duration::from_secs(30);
    /// Attempt timeout when none is chosen: the low end of what Standard Webhooks advises.
    pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(15);
    /// Most deliveries in flight to one endpoint.
    pub const IN_FLIGHT_MAX: u16 = 64;
    /// Deliveries in flight to one endpoint when none is chosen.
    pub const IN_FLIGHT_DEFAULT: u16 = 16;
    /// Patterns of one subscription.
    pub const PATTERNS: usize = 64;
    /// Channels of one subscription, as for patterns.
    pub const CHANNELS: usize = 64;
    /// Reasons given by people.
    pub const REASON_CHARS: usize = 500;
    /// Longest header prefix of the Standard Webhooks names.
    pub const HEADER_PREFIX_CHARS: usize = 32;
    /// Shortest lease of a pulled delivery: below it, a pause of the consumer's garbage collector or
    /// scheduler makes every delivery come twice.
    pub const LEASE_MIN: Duration = Duration::from_secs(5);
    /// Longest lease without an extension: how long a crashed consumer may hold a delivery back.
    pub const LEASE_MAX: Duration = Duration::from_mins(10);
    /// Lease when none is chosen.
    pub const LEASE_DEFAULT: Duration = Duration::from_secs(30);
    /// Most deliveries that one stream of a pull endpoint holds at once.
    pub const OUTSTANDING_MAX: u16 = 1_000;
    /// Deliveries that one stream holds when none is chosen.
    pub const OUTSTANDING_DEFAULT: u16 = 100;
}

/// An isolation unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Unique for ever.
    pub id: TenantId,
    /// Last part of its name.
    pub slug: ResourceId,
    /// For people.
    pub display_name: String,
    /// Free pairs.
    pub labels: Labels,
    /// Times and revision.
    pub meta: Meta,
}

/// A kind of event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventType {
    /// Unique for ever.
    pub id: EventTypeId,
    /// Whose it is.
    pub tenant: TenantId,
    /// The type itself.
    pub type_name: TypeName,
    /// For people.
    pub description: String,
    /// What a new version must keep of the latest one.
    pub compatibility: Compatibility,
    /// What becomes of events of other versions than its own.
    pub unknown_version: UnknownVersion,
    /// Free pairs.
    pub labels: Labels,
    /// Times and revision.
    pub meta: Meta,
}

/// Whether events are sent to an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointState {
    /// Events are sent.
    Active,
    /// Nothing is sent and nothing new matches.
    Disabled {
        /// Why, in words.
        reason: String,
    },
}

/// How requests to an endpoint are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignatureProfile {
    /// Standard Webhooks, v1 and v1a.
    StandardWebhooks,
    /// `v1=` and hex over timestamp and body.
    TimestampedHex,
    /// `sha256=` and hex over the body.
    HubSha256,
}

impl SignatureProfile {
    /// All profiles.
    pub const ALL: [Self; 3] = [Self::StandardWebhooks, Self::TimestampedHex, Self::HubSha256];

    /// The name stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StandardWebhooks => "standard-webhooks",
            Self::TimestampedHex => "timestamped-hex",
            Self::HubSha256 => "hub-sha256",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.as_str() == text)
    }
}

/// What the body of a delivery looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PayloadFormat {
    /// The event as JSON.
    Envelope,
    /// The Standard Webhooks payload.
    Standard,
    /// The published bytes.
    Raw,
}

impl PayloadFormat {
    /// The number stored for it.
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            Self::Envelope => 0,
            Self::Standard => 1,
            Self::Raw => 2,
        }
    }

    /// Reads the stored number.
    #[must_use]
    pub const fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::Envelope),
            1 => Some(Self::Standard),
            2 => Some(Self::Raw),
            _ => None,
        }
    }
}

/// An HTTP receiver. `Debug` hides URL and header values: both may carry credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpTarget {
    /// Absolute URL, already judged by the egress rules that need no name resolution.
    pub url: String,
    /// Time for one attempt, all phases together.
    pub timeout: Duration,
    /// Extra request headers, lower-case names.
    pub headers: BTreeMap<String, String>,
    /// First part of the Standard Webhooks header names.
    pub header_prefix: String,
}

impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTarget").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// A queue that internal services consume over gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PullTarget {
    /// How long a consumer has for a delivery, unless it extends the lease.
    pub lease: Duration,
    /// Most deliveries that one stream holds at once.
    pub max_outstanding: u16,
    /// Whether of deliveries with the same subject only the earliest is out at a time.
    pub ordered_by_subject: bool,
}

impl Default for PullTarget {
    fn default() -> Self {
        Self {
            lease: limits::LEASE_DEFAULT,
            max_outstanding: limits::OUTSTANDING_DEFAULT,
            ordered_by_subject: false,
        }
    }
}

/// How deliveries reach their receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointTarget {
    /// We post to a URL.
    Http(HttpTarget),
    /// A consumer takes them.
    Pull(PullTarget),
}

impl EndpointTarget {
    /// The HTTP receiver, when it is one.
    #[must_use]
    pub const fn http(&self) -> Option<&HttpTarget> {
        match self {
            Self::Http(http) => Some(http),
            Self::Pull(_) => None,
        }
    }

    /// The pull queue, when it is one.
    #[must_use]
    pub const fn pull(&self) -> Option<&PullTarget> {
        match self {
            Self::Pull(pull) => Some(pull),
            Self::Http(_) => None,
        }
    }
}

/// Where events go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Unique for ever.
    pub id: EndpointId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Last part of its name.
    pub slug: ResourceId,
    /// For people.
    pub display_name: String,
    /// The receiver. Its kind never changes.
    pub target: EndpointTarget,
    /// How requests are signed; without meaning for a pull endpoint.
    pub signature_profile: SignatureProfile,
    /// Its retry policy; none means the built-in default.
    pub retry_policy: Option<RetryPolicyId>,
    /// Most deliveries in flight at once; without meaning for a pull endpoint.
    pub max_in_flight: u16,
    /// Whether events are sent.
    pub state: EndpointState,
    /// Free pairs.
    pub labels: Labels,
    /// Times and revision.
    pub meta: Meta,
}

impl Endpoint {
    /// Whether events are sent.
    #[must_use]
    pub const fn is_active(&self) -> bool {
        matches!(self.state, EndpointState::Active)
    }
}

/// Which events an endpoint wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// Unique for ever; the older of two has the smaller id.
    pub id: SubscriptionId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Last part of its name.
    pub slug: ResourceId,
    /// The endpoint that wants them.
    pub endpoint: EndpointId,
    /// Type patterns; any match suffices.
    pub patterns: Vec<TypePattern>,
    /// What the body looks like.
    pub format: PayloadFormat,
    /// Which events of these types; none wants every one.
    pub filter: Option<Filter>,
    /// Only events that share one of these channels; none wants every event.
    pub channels: Channels,
    /// Free pairs.
    pub labels: Labels,
    /// Times and revision.
    pub meta: Meta,
}
