//! The one mapping from domain errors to gRPC statuses with `google.rpc` details.

#[cfg(test)]
mod tests;

use crate::text::{chain, clip};
use metrics::counter;
use std::collections::HashMap;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use turnbuckle_domain::{Error, Violation, Violations};

/// Whose reasons these are, in every `ErrorInfo`.
pub const ERROR_DOMAIN: &str = "turnbuckle.dev";

/// Longest text of one field of the details. Texts may repeat what the caller sent.
const TEXT_MAX: usize = 300;

/// Where a request's id stands in requests.
const REQUEST_ID_FIELD: &str = "request_id";

/// Most bytes of violations in one status. Details travel base64-coded in one header, and common
/// proxies take 8 KiB of headers; this leaves room for the message and the rest.
const VIOLATIONS_MAX: usize = 4096;

/// The status for an error. Causes of unavailability and bugs go to the log here, once, with all
/// that is beneath them; no client sees them.
#[must_use]
pub fn status(error: &Error) -> Status {
    let reason = error.reason();
    counter!("turnbuckle_errors_total", "reason" => reason).increment(1);
    let mut facts = HashMap::new();
    let mut details = ErrorDetails::new();
    let mut message = clip(&error.to_string(), TEXT_MAX);
    match error {
        Error::Invalid(violations) => message = add_violations(&mut details, violations),
        Error::NotFound { resource } | Error::AlreadyExists { resource } => {
            add_resource(&mut details, resource, &message);
        }
        Error::Stale { resource, current } => {
            facts.insert("current_etag".to_owned(), current.clone());
            add_resource(&mut details, resource, &message);
        }
        Error::Precondition { kind, subject, message } => {
            let (subject, message) = (clip(subject, TEXT_MAX), clip(message, TEXT_MAX));
            details.add_precondition_failure_violation(kind.reason(), subject, message);
        }
        Error::RequestIdReused { request_id } => {
            facts.insert("request_id".to_owned(), clip(request_id, TEXT_MAX));
            details.add_bad_request_violation(REQUEST_ID_FIELD, message.clone());
        }
        Error::QuotaExceeded { tenant, what, limit, setting } => {
            facts.insert("limit".to_owned(), limit.to_string());
            facts.insert("setting".to_owned(), (*setting).to_owned());
            details.add_quota_failure_violation(format!("{tenant}/{what}"), message.clone());
        }
        Error::Anomaly { event_id, source_name } => {
            facts.insert("event_id".to_owned(), clip(event_id, TEXT_MAX));
            facts.insert("source".to_owned(), clip(source_name, TEXT_MAX));
        }
        Error::Exhausted { retry_after, .. } => {
            details.set_retry_info(Some(*retry_after));
        }
        Error::Unavailable { retry_after, cause } => {
            let cause = cause.as_ref().map(|cause| chain(cause.as_ref()));
            tracing::warn!(reason, cause, "a dependency does not answer");
            details.set_retry_info(Some(*retry_after));
        }
        Error::Internal { cause } => {
            let error_id = error_id();
            tracing::error!(error_id, cause = chain(cause.as_ref()), "internal error");
            message =
                format!("internal error {error_id}: the server's log tells more under this id");
            facts.insert("error_id".to_owned(), error_id);
        }
        Error::Unauthenticated { .. } | Error::PermissionDenied => {}
    }
    details.set_error_info(reason, ERROR_DOMAIN, facts);
    Status::with_error_details(code(error), message, details)
}

const fn code(error: &Error) -> Code {
    match error {
        Error::Invalid(_) | Error::RequestIdReused { .. } => Code::InvalidArgument,
        Error::NotFound { .. } => Code::NotFound,
        Error::AlreadyExists { .. } | Error::Anomaly { .. } => Code::AlreadyExists,
        Error::Stale { .. } => Code::Aborted,
        Error::Precondition { .. } => Code::FailedPrecondition,
        Error::Unauthenticated { .. } => Code::Unauthenticated,
        Error::PermissionDenied => Code::PermissionDenied,
        Error::Exhausted { .. } | Error::QuotaExceeded { .. } => Code::ResourceExhausted,
        Error::Unavailable { .. } => Code::Unavailable,
        Error::Internal { .. } => Code::Internal,
    }
}

/// Adds as many violations as fit, and makes the message: the first one, and how many there are.
fn add_violations(details: &mut ErrorDetails, violations: &[Violation]) -> String {
    let mut bytes = 0;
    for violation in violations.iter().take(Violations::MAX) {
        let field = clip(&violation.field, TEXT_MAX);
        let description = clip(&violation.message, TEXT_MAX);
        bytes += field.len() + description.len();
        if bytes > VIOLATIONS_MAX {
            break;
        }
        details.add_bad_request_violation(field, description);
    }
    let Some(first) = violations.first() else {
        return "invalid request".to_owned();
    };
    let shown = clip(&format!("{} {}", first.field, first.message), TEXT_MAX);
    match violations.len() {
        1 => format!("invalid request: {shown}"),
        count => format!("invalid request: {shown} (and {} more, see the details)", count - 1),
    }
}

fn add_resource(details: &mut ErrorDetails, resource: &str, message: &str) {
    // The collection before the last id: `endpoints` of `tenants/a/endpoints/b`.
    let kind = resource.rsplit('/').nth(1).unwrap_or_default();
    details.set_resource_info(clip(kind, TEXT_MAX), clip(resource, TEXT_MAX), "", message);
}

/// Joins an answer to its log line. Without randomness it is zero, and the time must do.
fn error_id() -> String {
    format!("{:016x}", getrandom::u64().unwrap_or_default())
}
