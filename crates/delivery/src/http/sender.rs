//! Sending one request and judging what comes back.

use super::{answer, connection::Connection, failure::Failure, pool::Pool, retry_after};
use crate::egress::{EgressGuard, Target};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use turnbuckle_domain::{AttemptOutcome, Clock, Unreachable};

/// Headers that would change how the message is framed or answered. Ours replace `Host` and
/// `Content-Length`; the others never leave.
const NEVER_SENT: [HeaderName; 7] = [
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::EXPECT,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::ACCEPT_ENCODING,
];

/// Sent unless the request brings its own.
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("turnbuckle/", env!("CARGO_PKG_VERSION")));

/// How long an answer's body is waited for. What counts came with its head; waiting longer holds a
/// slot and puts off the writing of the result.
const BODY_WAIT: Duration = Duration::from_secs(1);

/// Bounds of a sender.
#[derive(Debug, Clone, Copy)]
pub struct SenderLimits {
    /// Idle connections kept per origin.
    pub max_idle_per_origin: usize,
    /// Idle connections kept in all.
    pub max_idle: usize,
    /// Bytes of an answer's body read before the connection is dropped.
    pub max_body: usize,
}

impl Default for SenderLimits {
    /// 128 connections carry more than one core can send; 512 in all stay below the usual 1,024
    /// open files; 16 KiB hold any acknowledgement and most error pages.
    fn default() -> Self {
        Self { max_idle_per_origin: 128, max_idle: 512, max_body: 16 * 1024 }
    }
}

/// One POST to be made. It has no `Debug`: signatures and payload are in it (I7).
pub struct OutgoingRequest<'a> {
    /// Where to.
    pub target: &'a Arc<Target>,
    /// All headers but those about connection and framing.
    pub headers: HeaderMap,
    /// The signed bytes.
    pub body: Bytes,
    /// For everything: connection, sending, the answer's head and body.
    pub timeout: Duration,
    /// Asked before every sending, the first and a resend: may it still leave?
    pub is_current: &'a (dyn Fn() -> bool + Send + Sync),
}

/// What came of a POST.
pub struct Sent {
    /// The outcome.
    pub outcome: AttemptOutcome,
    /// Time until the answer's head was there, or the attempt had failed.
    pub duration: Duration,
    /// Whether an idle connection carried it.
    pub reused: bool,
    /// The beginning of the answer's body.
    pub body_excerpt: Bytes,
}

/// How an exchange ended before an answer's head was there.
enum Unanswered {
    /// As an outcome.
    Outcome(AttemptOutcome),
    /// It was not to leave any more, and nothing has left.
    NotSent,
}

impl From<AttemptOutcome> for Unanswered {
    fn from(outcome: AttemptOutcome) -> Self {
        Self::Outcome(outcome)
    }
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Outcome(failure.into())
    }
}

/// An answer's head, and the connection it came on.
struct Answered {
    response: Response<Incoming>,
    connection: Connection,
    reused: bool,
}

/// Sends requests over pooled connections that the egress guard opened.
pub struct HttpSender {
    guard: Arc<EgressGuard>,
    pool: Pool,
    max_body: usize,
    tasks: TaskTracker,
    clock: Arc<dyn Clock>,
}

impl HttpSender {
    /// A sender whose connections are driven by tasks of the tracker.
    #[must_use]
    pub fn new(
        guard: Arc<EgressGuard>,
        limits: SenderLimits,
        tasks: TaskTracker,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let pool = Pool::new(limits.max_idle_per_origin, limits.max_idle);
        Self { guard, pool, max_body: limits.max_body, tasks, clock }
    }

    /// The guard that judges targets and opens connections.
    #[must_use]
    pub fn guard(&self) -> &EgressGuard {
        &self.guard
    }

    #[cfg(test)]
    pub(super) const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Makes the POST. Whatever happens is an outcome, not an error; none when the request was not to
    /// leave any more.
    pub async fn send(&self, request: OutgoingRequest<'_>) -> Option<Sent> {
        let started_at = Instant::now();
        let OutgoingRequest { target, headers, body, timeout, is_current } = request;
        let (deadline, origin) = (started_at + timeout, target.origin());
        let request = post(target, headers, body);
        let result = self.exchange(target, request, is_current, deadline).await;
        let duration = started_at.elapsed();
        let sent = match result {
            Err(Unanswered::NotSent) => return None,
            Err(Unanswered::Outcome(outcome)) => {
                Sent { outcome, duration, reused: false, body_excerpt: Bytes::new() }
            }
            Ok(Answered { response, connection, reused }) => {
                let outcome = self.judge(&response);
                let is_upgrade = response.status() == StatusCode::SWITCHING_PROTOCOLS;
                // The receiver has decided; only a connection is at stake any more.
                let until = deadline.min(Instant::now() + BODY_WAIT);
                let body = answer::read(response.into_body(), self.max_body, until).await;
                if body.is_complete && !is_upgrade {
                    self.pool.put(origin, connection, Instant::now());
                }
                Sent { outcome, duration, reused, body_excerpt: body.excerpt }
            }
        };
        Some(sent)
    }

    /// Closes connections that have been idle too long. Sending does this too, now and then; this
    /// is for quiet times.
    pub fn sweep_idle(&self) {
        self.pool.sweep(Instant::now());
    }

    /// Sends on an idle connection, or a fresh one when there is none or it turns out to be closed.
    async fn exchange(
        &self,
        target: &Target,
        request: Request<Full<Bytes>>,
        is_current: &(dyn Fn() -> bool + Send + Sync),
        deadline: Instant,
    ) -> Result<Answered, Unanswered> {
        if !is_current() {
            return Err(Unanswered::NotSent);
        }
        if let Some(mut connection) = self.idle_connection(target, deadline).await {
            match connection.send(request.clone(), deadline).await {
                Ok(response) => {
                    return Ok(Answered { response, connection, reused: true });
                }
                // The receiver closed it while it lay idle. It may have seen the request, but the
                // same bytes under the same id do no harm.
                Err(Failure::Unanswered(_)) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        // Boxed, because resolving and handshakes are large and rare.
        let mut connection = Box::pin(self.fresh_connection(target, deadline)).await?;
        if !is_current() {
            return Err(Unanswered::NotSent);
        }
        let response = connection.send(request, deadline).await?;
        Ok(Answered { response, connection, reused: false })
    }

    async fn idle_connection(&self, target: &Target, deadline: Instant) -> Option<Connection> {
        let now = Instant::now();
        loop {
            let mut connection = self.pool.take(target.origin(), now)?;
            if connection.becomes_ready(deadline).await {
                return Some(connection);
            }
        }
    }

    async fn fresh_connection(
        &self,
        target: &Target,
        deadline: Instant,
    ) -> Result<Connection, AttemptOutcome> {
        let stream = self.guard.connect(target, deadline).await?;
        Connection::open(stream, &self.tasks)
            .await
            .map_err(|_| AttemptOutcome::Unreachable { cause: Unreachable::Connect })
    }

    fn judge(&self, response: &Response<Incoming>) -> AttemptOutcome {
        let status = response.status().as_u16();
        if response.status().is_success() {
            return AttemptOutcome::Delivered { status };
        }
        let asked = response.headers().get(header::RETRY_AFTER);
        let retry_after = asked.and_then(|value| retry_after::parse(value, self.clock.now()));
        AttemptOutcome::Refused { status, retry_after }
    }
}

/// The request as it leaves: complete, with a length, asking for nothing special.
fn post(target: &Target, mut headers: HeaderMap, body: Bytes) -> Request<Full<Bytes>> {
    for name in &NEVER_SENT {
        headers.remove(name);
    }
    headers.insert(header::HOST, target.host_header().clone());
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = target.uri().clone();
    *request.headers_mut() = headers;
    request
}
