//! One error for every use case. Transports map it once; nothing internal is in its client text.

use std::{fmt, time::Duration};

/// One broken rule of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Path of the field as in the request, such as `endpoint.http.url`.
    pub field: String,
    /// The limit and the remedy.
    pub message: String,
}

/// Collects every violation of a request, so that a caller sees all at once.
#[derive(Debug, Default)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Most violations reported: error details travel in headers of about 8 KiB.
    pub const MAX: usize = 25;

    /// Nothing wrong so far.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes one violation.
    pub fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        if self.0.len() < Self::MAX {
            self.0.push(Violation { field: field.into(), message: message.into() });
        }
    }

    /// Takes the value of a checked field, or notes why there is none.
    pub fn take<T, E: fmt::Display>(&mut self, field: &str, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.add(field, error.to_string());
                None
            }
        }
    }

    /// True when nothing was noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The error that lists everything noted.
    #[must_use]
    pub fn into_error(self) -> Error {
        Error::Invalid(self.0)
    }

    /// `Ok` when nothing was noted.
    ///
    /// # Errors
    /// [`Error::Invalid`] with every violation.
    pub fn finish(self) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(self.into_error()) }
    }
}

/// Why a request does not fit the present state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition {
    /// A rotation is open already.
    RotationOpen,
    /// There is no staged key to activate.
    NoStagedKey,
    /// There is no earlier key to go back to.
    NothingToRollBack,
    /// The key is destroyed.
    KeyRevoked,
    /// No key is retiring, or the rotation is not paused.
    NoOpenRotation,
    /// Nodes do not use this state of the ring yet.
    KeyNotPropagated,
    /// The server was not started with what this needs.
    SwitchedOff,
    /// A key's algorithm does not fit the endpoint's signature profile.
    ProfileMismatch,
    /// A key cannot be used as the source's scheme says.
    SchemeMismatch,
    /// Something still uses the resource.
    InUse,
    /// The delivery is finished.
    DeliveryFinished,
    /// The replay is finished, or was never paused.
    ReplayFinished,
    /// The endpoint is deleted or disabled.
    EndpointInactive,
    /// The next version is compared with this one.
    LatestVersion,
    /// An event type has as many versions as it can have.
    TooManyVersions,
    /// A deleted tenant had the name.
    NameRetired,
    /// There are as many as there may be.
    LimitReached,
    /// Another resource has the name of the deleted one.
    NameTaken,
    /// Something the resource refers to is deleted.
    ReferenceDeleted,
    /// The payload is not kept, or no more.
    PayloadGone,
}

impl Precondition {
    /// Stable reason in UPPER_SNAKE_CASE.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::RotationOpen => "ROTATION_IN_PROGRESS",
            Self::NoStagedKey => "NO_STAGED_KEY",
            Self::NothingToRollBack => "NOTHING_TO_ROLL_BACK",
            Self::KeyRevoked => "KEY_REVOKED",
            Self::NoOpenRotation => "NO_ROTATION_IN_PROGRESS",
            Self::KeyNotPropagated => "KEY_NOT_PROPAGATED",
            Self::SwitchedOff => "SWITCHED_OFF",
            Self::ProfileMismatch => "SIGNATURE_PROFILE_MISMATCH",
            Self::SchemeMismatch => "VERIFICATION_SCHEME_MISMATCH",
            Self::InUse => "RESOURCE_IN_USE",
            Self::DeliveryFinished => "DELIVERY_FINISHED",
            Self::ReplayFinished => "REPLAY_FINISHED",
            Self::EndpointInactive => "ENDPOINT_INACTIVE",
            Self::LatestVersion => "LATEST_VERSION",
            Self::TooManyVersions => "TOO_MANY_VERSIONS",
            Self::NameRetired => "NAME_RETIRED",
            Self::LimitReached => "LIMIT_REACHED",
            Self::NameTaken => "NAME_TAKEN",
            Self::ReferenceDeleted => "REFERENCE_DELETED",
            Self::PayloadGone => "PAYLOAD_NOT_KEPT",
        }
    }
}

/// What can go wrong in a use case.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request breaks rules; all of them are listed.
    #[error("invalid request: {}", list(.0))]
    Invalid(Vec<Violation>),
    /// There is no such resource, or the caller may not know of it.
    #[error("{resource} not found")]
    NotFound {
        /// Resource name as the caller gave it.
        resource: String,
    },
    /// The name is taken.
    #[error("{resource} already exists")]
    AlreadyExists {
        /// Resource name as the caller gave it.
        resource: String,
    },
    /// The resource changed since the caller read it.
    #[error("{resource} has changed: read it again and repeat with etag {current}")]
    Stale {
        /// Resource name.
        resource: String,
        /// The etag it has now.
        current: String,
    },
    /// The request does not fit the present state.
    #[error("{message}")]
    Precondition {
        /// What is in the way.
        kind: Precondition,
        /// Resource name.
        subject: String,
        /// State and remedy.
        message: String,
    },
    /// The request id was used for other content.
    #[error(
        "request_id {request_id} was used before for another request: repeat that one unchanged, \
         or send a new id"
    )]
    RequestIdReused {
        /// The caller's id of the request.
        request_id: String,
    },
    /// The tenant has as much as it may.
    #[error(
        "{tenant} has {limit} {what}, which is the most: delete what is not needed, or have the \
         operator raise {setting}"
    )]
    QuotaExceeded {
        /// Name of the tenant.
        tenant: String,
        /// What there is too much of, as in resource names.
        what: &'static str,
        /// The most there may be.
        limit: u32,
        /// The server's setting that says so.
        setting: &'static str,
    },
    /// The event id was used for other content.
    #[error(
        "event id {event_id} of source {source_name} was accepted before with other content; \
         the first stays, this one was recorded as an anomaly: use a new event id"
    )]
    Anomaly {
        /// The sender's event id.
        event_id: String,
        /// The event's source.
        source_name: String,
    },
    /// No valid credentials.
    #[error("{message}")]
    Unauthenticated {
        /// What to do; says nothing about why a token was refused.
        message: &'static str,
    },
    /// The caller's role or tenant does not allow it.
    #[error("the caller may not do this")]
    PermissionDenied,
    /// A bound is reached.
    #[error("{message}")]
    Exhausted {
        /// Which bound, and the remedy.
        message: String,
        /// When to try again.
        retry_after: Duration,
    },
    /// Something we depend on does not answer. Nothing was changed, or the caller may repeat safely.
    #[error("the store does not answer; try again")]
    Unavailable {
        /// When to try again.
        retry_after: Duration,
        /// For the log only.
        #[source]
        cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// A bug. The cause goes to the log, not to the caller.
    #[error("internal error")]
    Internal {
        /// For the log only.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// A single broken rule.
    #[must_use]
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid(vec![Violation { field: field.into(), message: message.into() }])
    }

    /// A bug with its cause for the log.
    #[must_use]
    pub fn internal(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Internal { cause: cause.into() }
    }

    /// Stable reason in UPPER_SNAKE_CASE.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "INVALID_REQUEST",
            Self::NotFound { .. } => "NOT_FOUND",
            Self::AlreadyExists { .. } => "ALREADY_EXISTS",
            Self::Stale { .. } => "ETAG_MISMATCH",
            Self::Precondition { kind, .. } => kind.reason(),
            Self::RequestIdReused { .. } => "REQUEST_ID_REUSED",
            Self::QuotaExceeded { .. } => "QUOTA_EXCEEDED",
            Self::Anomaly { .. } => "EVENT_ANOMALY",
            Self::Unauthenticated { .. } => "UNAUTHENTICATED",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::Exhausted { .. } => "RESOURCE_EXHAUSTED",
            Self::Unavailable { .. } => "STORE_UNAVAILABLE",
            Self::Internal { .. } => "INTERNAL",
        }
    }
}

fn list(violations: &[Violation]) -> String {
    let lines: Vec<String> = violations
        .iter()
        .map(|violation| format!("{}: {}", violation.field, violation.message))
        .collect();
    lines.join("; ")
}
