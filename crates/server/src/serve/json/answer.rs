//! From what a gRPC call answered to an HTTP response in JSON.

use super::{body::PREFIX, refusal};
use bytes::Bytes;
use data_encoding::BASE64;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS},
};
use http_body_util::{BodyExt as _, Full};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde::Serialize;
use serde_json::{Value, json};
use tonic::{Code, Status, body::Body};
use tonic_types::StatusExt as _;

/// Writes responses; knows the messages that error details are made of.
pub(super) struct Answers {
    details: DescriptorPool,
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: Fault<'a>,
}

#[derive(Serialize)]
struct Fault<'a> {
    code: i32,
    status: &'static str,
    message: &'a str,
    details: Vec<Value>,
}

impl Answers {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self { details: DescriptorPool::decode(tonic_types::pb::FILE_DESCRIPTOR_SET)? })
    }

    /// The response to a call that was made.
    pub(super) async fn call(
        &self,
        called: Response<Body>,
        output: MessageDescriptor,
    ) -> Response<Body> {
        match message(called, output).await {
            Ok(message) => self.success(&message),
            Err(status) => self.failure(&status),
        }
    }

    fn success(&self, message: &DynamicMessage) -> Response<Body> {
        // Proto3 JSON: camelCase, fields with default values left out, 64-bit integers as strings.
        match serde_json::to_vec(message) {
            Ok(json) => respond(StatusCode::OK, json),
            // A time beyond the year 9999, say.
            Err(_) => self.failure(&Status::internal("the answer has no JSON form")),
        }
    }

    /// The one shape of errors.
    pub(super) fn failure(&self, status: &Status) -> Response<Body> {
        let fault = Fault {
            code: status.code() as i32,
            status: name(status.code()),
            message: status.message(),
            details: self.details(status),
        };
        let json = serde_json::to_vec(&Envelope { error: fault }).unwrap_or_default();
        let mut response = respond(http_status(status), json);
        if let Some(seconds) = retry_after(status) {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        if status.code() == Code::Unauthenticated {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }

    fn details(&self, status: &Status) -> Vec<Value> {
        let decoded = tonic_types::pb::Status::decode(status.details()).unwrap_or_default();
        let details = decoded.details.iter();
        details.map(|any| self.detail(&any.type_url, &any.value)).collect()
    }

    /// One detail in the JSON form of `Any`; a type that is not known here keeps its bytes.
    fn detail(&self, url: &str, bytes: &[u8]) -> Value {
        let name = url.rsplit('/').next().unwrap_or_default();
        let known = self.details.get_message_by_name(name);
        let message = known.and_then(|known| DynamicMessage::decode(known, bytes).ok());
        match message.and_then(|message| serde_json::to_value(&message).ok()) {
            Some(Value::Object(mut fields)) => {
                fields.insert("@type".to_owned(), url.into());
                Value::Object(fields)
            }
            _ => json!({ "@type": url, "value": BASE64.encode(bytes) }),
        }
    }
}

/// The message of a successful call, or its status.
async fn message(
    called: Response<Body>,
    output: MessageDescriptor,
) -> Result<DynamicMessage, Status> {
    let (head, body) = called.into_parts();
    // A call that failed at once says so in its headers, and has no body.
    refused(&head.headers)?;
    if head.status != StatusCode::OK {
        return Err(Status::internal(format!("the service answered with HTTP {}", head.status)));
    }
    let body = body.collect().await?;
    if let Some(trailers) = body.trailers() {
        refused(trailers)?;
    }
    let framed = body.to_bytes();
    // No compression: the call did not offer any. One message: the method does not stream.
    let encoded = framed.get(PREFIX..).ok_or_else(|| Status::internal("there was no answer"))?;
    DynamicMessage::decode(output, encoded).map_err(|_| Status::internal("unreadable answer"))
}

fn refused(headers: &HeaderMap) -> Result<(), Status> {
    match Status::from_header_map(headers) {
        Some(status) if status.code() != Code::Ok => Err(status),
        Some(_) | None => Ok(()),
    }
}

/// A body of these bytes.
pub(super) fn body(bytes: Vec<u8>) -> Body {
    Body::new(Full::new(Bytes::from(bytes)))
}

fn respond(status: StatusCode, mut json: Vec<u8>) -> Response<Body> {
    // For terminals.
    json.push(b'\n');
    let mut response = Response::new(body(json));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Some answers carry a secret, once.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Whole seconds, rounded up: a client that comes back early is refused again.
fn retry_after(status: &Status) -> Option<u64> {
    let delay = status.get_details_retry_info()?.retry_delay?;
    Some(delay.as_secs() + u64::from(delay.subsec_nanos() > 0))
}

/// The mapping that `google.rpc.Code` documents, with one status that it lacks.
fn http_status(status: &Status) -> StatusCode {
    match status.code() {
        Code::Ok => StatusCode::OK,
        Code::OutOfRange if is_too_large(status) => StatusCode::PAYLOAD_TOO_LARGE,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => {
            StatusCode::BAD_REQUEST
        }
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        // There is no constant for 499; it is a valid number.
        Code::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Said by the gateway, or by the framework when a message is over its service's limit: nothing
/// else of ours is out of range without a reason.
fn is_too_large(status: &Status) -> bool {
    match status.get_details_error_info() {
        Some(info) => info.reason == refusal::TOO_LARGE,
        None => true,
    }
}

const fn name(code: Code) -> &'static str {
    match code {
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

#[cfg(test)]
mod tests;
