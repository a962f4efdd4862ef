//! Everything on the API's port that is not native gRPC: JSON over HTTP, gRPC-Web, and `GET /`.
//!
//! ```text
//!                 ┌─ application/grpc, HTTP/2 ──────────────────────────────────┐
//!  connection ──► Front                                                         ├─► auth ─► services
//!                 ├─ application/grpc-web ──► tonic-web ────────────────────────┤
//!                 └─ everything else ──► Gateway: JSON ─► message ─► gRPC call ─┘
//! ```
//!
//! # Invariants
//! - A JSON call is a gRPC call: authentication, permissions, limits and handlers are the same ones.
//! - The body of a JSON call is read after its caller is known to be allowed the call.
//! - Every refusal has the one error shape, and a native gRPC call pays for none of this but one
//!   look at its content type.

mod about;
mod answer;
mod body;
mod gateway;
mod origin;
mod refusal;

use gateway::Gateway;
pub(super) use origin::Origins;

use http::{HeaderMap, Request, Response, Version, header::CONTENT_TYPE};
use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio_util::either::Either;
use tonic::body::Body;
use tower::{Layer, Service};

/// The content types of gRPC-Web.
const GRPC_WEB: [&str; 4] = [
    "application/grpc-web",
    "application/grpc-web+proto",
    "application/grpc-web-text",
    "application/grpc-web-text+proto",
];

/// Puts the other protocols beside gRPC.
#[derive(Clone)]
pub(super) struct FrontLayer(Arc<Gateway>);

impl FrontLayer {
    /// `timeout` is for a whole JSON call. It must be shorter than the server's own, which would
    /// answer in gRPC's terms.
    pub(super) fn new(origins: Origins, timeout: Duration) -> anyhow::Result<Self> {
        Ok(Self(Arc::new(Gateway::new(origins, timeout)?)))
    }
}

impl<S> Layer<S> for FrontLayer {
    type Service = Front<S>;

    fn layer(&self, inner: S) -> Front<S> {
        Front { inner, gateway: Arc::clone(&self.0) }
    }
}

/// A gRPC service with a [`FrontLayer`] before it.
#[derive(Clone)]
pub(super) struct Front<S> {
    inner: S,
    gateway: Arc<Gateway>,
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<S> Service<Request<Body>> for Front<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<S::Future, Answering>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if is_native(&request) {
            return Either::Left(self.inner.call(request));
        }
        let (inner, gateway) = (self.inner.clone(), Arc::clone(&self.gateway));
        Either::Right(Box::pin(async move { Ok(gateway.answer(inner, request).await) }))
    }
}

/// gRPC itself: `application/grpc`, alone or with a suffix, over HTTP/2. HTTP/1.1 would lose its
/// trailers, so there it is refused like any other unknown type.
fn is_native(request: &Request<Body>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let Some(suffix) = kind.strip_prefix(b"application/grpc") else {
        return false;
    };
    !suffix.starts_with(b"-") && request.version() == Version::HTTP_2
}

fn is_grpc_web(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    GRPC_WEB.iter().any(|known| known.as_bytes() == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(version: Version, kind: &str) -> Request<Body> {
        let builder = Request::builder().version(version).header(CONTENT_TYPE, kind);
        builder.body(Body::empty()).unwrap()
    }

    #[test]
    fn only_grpc_over_http_2_passes_untouched() {
        for native in ["application/grpc", "application/grpc+proto", "application/grpc;x=y"] {
            assert!(is_native(&request(Version::HTTP_2, native)), "{native}");
            assert!(!is_native(&request(Version::HTTP_11, native)), "{native}");
        }
        for other in ["application/grpc-web", "application/json", ""] {
            assert!(!is_native(&request(Version::HTTP_2, other)), "{other}");
        }
    }
}
