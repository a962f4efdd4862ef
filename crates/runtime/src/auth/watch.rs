//! Sees what becomes of a call: a handler that denies its caller is noted for the audit record.

use super::denials::Denials;
use http::{HeaderMap, HeaderName, Response, Uri};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tonic::Code;
use turnbuckle_domain::{Caller, DenialReason};

/// Where an answer without a body says what it is.
const STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// One call of a known caller.
pub(super) struct Watch {
    pub(super) denials: Denials,
    pub(super) caller: Caller,
    pub(super) uri: Uri,
}

impl Watch {
    /// Notes the call when this is an answer that denies it.
    pub(super) fn look(&self, headers: &HeaderMap) {
        if is_denied(headers) {
            self.denials.note(&self.caller, method(self.uri.path()), DenialReason::Reach);
        }
    }
}

/// Service and method of a request path.
pub(super) fn method(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}

fn is_denied(headers: &HeaderMap) -> bool {
    headers
        .get(STATUS)
        .is_some_and(|status| Code::from_bytes(status.as_bytes()) == Code::PermissionDenied)
}

pin_project! {
    /// The call itself, looked at when it is answered.
    pub struct Watched<F> {
        #[pin]
        call: F,
        watch: Option<Watch>,
    }
}

impl<F> Watched<F> {
    pub(super) const fn new(call: F, watch: Option<Watch>) -> Self {
        Self { call, watch }
    }
}

impl<F, R, E> Future for Watched<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.call.poll(context));
        if let (Some(watch), Ok(response)) = (this.watch.take(), &answer) {
            watch.look(response.headers());
        }
        Poll::Ready(answer)
    }
}
