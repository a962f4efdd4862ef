//! The HTTP ingress: where third parties send their webhooks.
//!
//! ```text
//!  third party ── POST /… ──► known source? ── no ──► 404, the same body whatever was asked
//! ```
//! A source is what gives a path its meaning. The control plane has no sources yet, so every request
//! ends at the first step: nothing is read, nothing is stored, nothing is acknowledged.
//!
//! # Invariants
//! - **I1** No 2xx is answered for anything that is not durable.
//! - **I10** A request body is never read before its source is known.
//! - Answers give no hint which paths exist.

use axum::{
    Router,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use std::io;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// RFC 9457 body of every answer for an unknown source.
const UNKNOWN_SOURCE: &str =
    r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"no such source"}"#;

/// Answers until the token is cancelled.
///
/// # Errors
/// When the listener fails.
pub async fn serve(listener: TcpListener, stop: CancellationToken) -> io::Result<()> {
    let router = Router::new().fallback(unknown_source);
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

async fn unknown_source() -> Response {
    let problem = HeaderValue::from_static("application/problem+json");
    // The body was not read: the connection cannot carry another request.
    let close = HeaderValue::from_static("close");
    let headers = [(header::CONTENT_TYPE, problem), (header::CONNECTION, close)];
    (StatusCode::NOT_FOUND, headers, UNKNOWN_SOURCE).into_response()
}
