//! A readable view of a refused call.

use std::{collections::BTreeMap, fmt, time::Duration};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// One broken rule of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldViolation {
    /// Path of the field, such as `endpoint.http.url`.
    pub field: String,
    /// The limit and the remedy.
    pub description: String,
}

/// A `tonic::Status` with its `google.rpc` details decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The gRPC code.
    pub code: Code,
    /// What went wrong, for people.
    pub message: String,
    /// Stable reason in UPPER_SNAKE_CASE, when the server gave one.
    pub reason: Option<String>,
    /// Facts that belong to the reason.
    pub metadata: BTreeMap<String, String>,
    /// Every broken rule of an invalid request.
    pub violations: Vec<FieldViolation>,
    /// State that stands in the way.
    pub preconditions: Vec<String>,
    /// How long to wait before the next try.
    pub retry_delay: Option<Duration>,
}

impl ApiError {
    /// Decodes a status. Details that do not decode are left out.
    #[must_use]
    pub fn new(status: &Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info();
        Self {
            code: status.code(),
            message: status.message().to_owned(),
            reason: info.map(|info| info.reason.clone()).filter(|reason| !reason.is_empty()),
            metadata: info
                .map(|info| info.metadata.clone().into_iter().collect())
                .unwrap_or_default(),
            violations: details
                .bad_request()
                .map(|bad| bad.field_violations.iter().map(violation).collect())
                .unwrap_or_default(),
            preconditions: details
                .precondition_failure()
                .map(|failure| {
                    failure.violations.iter().map(|found| found.description.clone()).collect()
                })
                .unwrap_or_default(),
            retry_delay: details.retry_info().and_then(|info| info.retry_delay),
        }
    }

    /// The code as the gRPC specification spells it, such as `NOT_FOUND`.
    #[must_use]
    pub const fn code_name(&self) -> &'static str {
        match self.code {
            Code::Ok => "OK",
            Code::Cancelled => "CANCELLED",
            Code::Unknown => "UNKNOWN",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::FailedPrecondition => "FAILED_PRECONDITION",
            Code::Aborted => "ABORTED",
            Code::OutOfRange => "OUT_OF_RANGE",
            Code::Unimplemented => "UNIMPLEMENTED",
            Code::Internal => "INTERNAL",
            Code::Unavailable => "UNAVAILABLE",
            Code::DataLoss => "DATA_LOSS",
            Code::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

impl From<&Status> for ApiError {
    fn from(status: &Status) -> Self {
        Self::new(status)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code_name();
        match &self.reason {
            Some(reason) if reason != code => write!(f, "{} ({code}, {reason})", self.message),
            _ => write!(f, "{} ({code})", self.message),
        }
    }
}

impl std::error::Error for ApiError {}

fn violation(found: &tonic_types::FieldViolation) -> FieldViolation {
    FieldViolation { field: found.field.clone(), description: found.description.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic_types::ErrorDetails;

    #[test]
    fn every_detail_of_a_status_is_decoded() {
        let mut details = ErrorDetails::new();
        details
            .set_error_info("INVALID_REQUEST", "turnbuckle", [("limit".into(), "64".into())])
            .add_bad_request_violation("endpoint.http.url", "is missing")
            .add_bad_request_violation("endpoint.max_in_flight", "is 0; use 1 to 64")
            .set_retry_info(Some(Duration::from_millis(1500)));
        let status = Status::with_error_details(Code::InvalidArgument, "two fields", details);
        let error = ApiError::new(&status);
        assert_eq!(error.to_string(), "two fields (INVALID_ARGUMENT, INVALID_REQUEST)");
        assert_eq!(error.violations.len(), 2);
        assert_eq!(error.violations[1].field, "endpoint.max_in_flight");
        assert_eq!(error.retry_delay, Some(Duration::from_millis(1500)));
        assert_eq!(error.metadata["limit"], "64");
    }

    #[test]
    fn a_status_without_details_shows_code_and_message_once() {
        let error = ApiError::new(&Status::not_found("tenants/x not found"));
        assert_eq!(error.to_string(), "tenants/x not found (NOT_FOUND)");
        assert_eq!(error.reason, None);
    }
}
