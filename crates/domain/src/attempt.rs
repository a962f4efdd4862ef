//! Attempts: one try of a delivery, and what came of it.

use crate::Timestamp;
use std::{borrow::Cow, time::Duration};

/// The part of an attempt that took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Resolving the name.
    Dns,
    /// Opening the connection.
    Connect,
    /// The TLS handshake.
    Tls,
    /// Sending, and waiting for the answer's head.
    FirstByte,
}

/// Why no answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unreachable {
    /// The name has no address, or the resolver failed.
    Dns,
    /// Nothing listens, or no route.
    Connect,
    /// The handshake failed or the certificate is not trusted.
    Tls,
    /// The connection broke before the answer's head was complete.
    Reset,
    /// What came back is not HTTP, or its head is too large.
    Protocol,
}

/// Why a request could not be made at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestFault {
    /// The endpoint's configuration makes no valid request.
    Request,
    /// Signing failed.
    Signing,
    /// The worker failed in the middle.
    Worker,
}

/// What came of an attempt. Not an error: the retry policy decides what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// A 2xx answer.
    Delivered {
        /// The status code.
        status: u16,
    },
    /// Another answer.
    Refused {
        /// The status code.
        status: u16,
        /// How long the receiver asked to wait, counted from the end of the attempt.
        retry_after: Option<Duration>,
    },
    /// No answer in time.
    TimedOut {
        /// Where the time went.
        phase: Phase,
    },
    /// No answer at all.
    Unreachable {
        /// Why.
        cause: Unreachable,
    },
    /// The egress guard refused the target. Nothing was sent.
    Blocked,
    /// The request could not be made.
    Failed {
        /// Why.
        fault: RequestFault,
    },
    /// A consumer acknowledged it.
    Acknowledged,
    /// A consumer gave it back.
    Returned {
        /// How long it asked to wait; none leaves it to the policy.
        delay: Option<Duration>,
    },
    /// A consumer kept it longer than its lease.
    LeaseLapsed,
    /// The stream of the consumer that held it broke.
    StreamBroken,
}

impl AttemptOutcome {
    /// The receiver's status code, when there was an answer.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Delivered { status } | Self::Refused { status, .. } => Some(*status),
            Self::TimedOut { .. }
            | Self::Unreachable { .. }
            | Self::Blocked
            | Self::Failed { .. }
            | Self::Acknowledged
            | Self::Returned { .. }
            | Self::LeaseLapsed
            | Self::StreamBroken => None,
        }
    }

    /// The class, as stored, shown and used as a metric label.
    #[must_use]
    pub const fn class(&self) -> &'static str {
        match self {
            Self::Delivered { .. } | Self::Acknowledged => "delivered",
            Self::Refused { .. } => "refused",
            Self::TimedOut { .. } | Self::LeaseLapsed => "timed_out",
            Self::Unreachable { .. } | Self::StreamBroken => "unreachable",
            Self::Blocked => "blocked",
            Self::Failed { .. } | Self::Returned { .. } => "failed",
        }
    }

    /// More about it, in UPPER_SNAKE_CASE; empty when the class says all.
    #[must_use]
    pub const fn detail(&self) -> &'static str {
        match self {
            Self::Delivered { .. } | Self::Refused { .. } => "",
            Self::TimedOut { phase } => match phase {
                Phase::Dns => "DNS",
                Phase::Connect => "CONNECT",
                Phase::Tls => "TLS",
                Phase::FirstByte => "FIRST_BYTE",
            },
            Self::Unreachable { cause } => match cause {
                Unreachable::Dns => "DNS",
                Unreachable::Connect => "CONNECT",
                Unreachable::Tls => "TLS",
                Unreachable::Reset => "RESET",
                Unreachable::Protocol => "PROTOCOL",
            },
            Self::Blocked => "EGRESS_BLOCKED",
            Self::Failed { fault } => match fault {
                RequestFault::Request => "REQUEST",
                RequestFault::Signing => "SIGNING",
                RequestFault::Worker => "WORKER",
            },
            Self::Acknowledged => "ACK",
            Self::Returned { .. } => "NACK",
            Self::LeaseLapsed => "LEASE",
            Self::StreamBroken => "STREAM",
        }
    }
}

/// The record of an attempt, appended once and never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// 1 for the first; grows over manual retries too.
    pub number: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took, to the end of the answer's head.
    pub duration: Duration,
    /// As [`AttemptOutcome::class`].
    pub outcome: Cow<'static, str>,
    /// The receiver's status code.
    pub status: Option<u16>,
    /// As [`AttemptOutcome::detail`].
    pub detail: Cow<'static, str>,
    /// Wait until the next attempt, when one follows.
    pub retry_delay: Option<Duration>,
    /// Whether that wait follows the receiver's Retry-After.
    pub retry_after_honoured: bool,
}
