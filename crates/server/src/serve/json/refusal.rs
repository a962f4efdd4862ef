//! What the gateway itself refuses, before or instead of a call.

use http::{
    HeaderValue, Response, StatusCode,
    header::{ALLOW, HeaderName},
};
use std::collections::HashMap;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};
use turnbuckle_runtime::grpc::ERROR_DOMAIN;

/// Longest text that repeats what the caller sent.
const TEXT_MAX: usize = 300;

/// Reason of a request that is too large, for the HTTP status that gRPC has no code for.
pub(super) const TOO_LARGE: &str = "REQUEST_TOO_LARGE";

/// Why there was no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// From a web page that is not listed.
    Origin,
    /// No such method.
    Method,
    /// Something else than POST, or than GET at the root.
    Verb(&'static str),
    /// Something else than JSON.
    ContentType,
    /// A compressed body.
    ContentEncoding,
    /// A method that streams.
    Streaming,
    /// A body beyond the limit.
    TooLarge(u64),
}

impl Refusal {
    pub(super) const fn http_status(self) -> StatusCode {
        match self {
            Self::Origin => StatusCode::FORBIDDEN,
            Self::Method => StatusCode::NOT_FOUND,
            Self::Verb(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::ContentType | Self::ContentEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Streaming => StatusCode::NOT_IMPLEMENTED,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
        }
    }

    /// The header that HTTP demands beside some statuses.
    pub(super) const fn header(self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::Verb(allowed) => Some((ALLOW, HeaderValue::from_static(allowed))),
            _ => None,
        }
    }

    pub(super) fn status(self, path: &str) -> Status {
        let (code, reason, message) = match self {
            Self::Origin => (
                Code::PermissionDenied,
                "ORIGIN_NOT_ALLOWED",
                "web pages of this origin may not call; the operator lists those that may in \
                 --cors-origin"
                    .to_owned(),
            ),
            Self::Method => (
                Code::NotFound,
                "UNKNOWN_METHOD",
                format!("there is no method {}; GET / lists them", clip(path)),
            ),
            Self::Verb(allowed) => (
                Code::Unimplemented,
                "WRONG_HTTP_METHOD",
                format!("{} takes {allowed} only", clip(path)),
            ),
            Self::ContentType => (
                Code::InvalidArgument,
                "UNSUPPORTED_CONTENT_TYPE",
                "send content-type: application/json, in UTF-8; or application/grpc over HTTP/2, \
                 or application/grpc-web"
                    .to_owned(),
            ),
            Self::ContentEncoding => (
                Code::InvalidArgument,
                "UNSUPPORTED_CONTENT_ENCODING",
                "send the body as it is, without compression".to_owned(),
            ),
            Self::Streaming => (
                Code::Unimplemented,
                "STREAMING_METHOD",
                format!("{} streams: call it over gRPC", clip(path)),
            ),
            Self::TooLarge(limit) => return too_large(limit),
        };
        with_reason(code, message, reason)
    }
}

/// A body or its parts are beyond a limit.
pub(super) fn too_large(limit: u64) -> Status {
    let message = format!("the request is larger than {limit} bytes: split it");
    with_reason(Code::OutOfRange, message, TOO_LARGE)
}

/// A status with the reason that programs read.
pub(super) fn with_reason(code: Code, message: String, reason: &str) -> Status {
    let details = ErrorDetails::with_error_info(reason, ERROR_DOMAIN, HashMap::new());
    Status::with_error_details(code, message, details)
}

/// A status that also says which field is meant.
pub(super) fn with_field(message: String, reason: &str, field: &str) -> Status {
    let mut details = ErrorDetails::with_error_info(reason, ERROR_DOMAIN, HashMap::new());
    details.add_bad_request_violation(clip(field), clip(&message));
    Status::with_error_details(Code::InvalidArgument, message, details)
}

/// The text, cut to what fits into an answer.
pub(super) fn clip(text: &str) -> String {
    if text.len() <= TEXT_MAX {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(TEXT_MAX)])
}

/// Adds the refusal's own header.
pub(super) fn dress<B>(response: &mut Response<B>, refusal: Refusal) {
    *response.status_mut() = refusal.http_status();
    if let Some((name, value)) = refusal.header() {
        response.headers_mut().insert(name, value);
    }
}
