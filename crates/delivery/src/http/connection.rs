//! One HTTP/1.1 connection and the task that drives it.

use super::{
    failure::Failure,
    wire::{Meter, Wire},
};
use crate::egress::Stream;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use std::{convert::Infallible, pin::pin, time::Duration};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout, timeout_at},
};
use tokio_util::task::TaskTracker;

/// Room for an answer's head, which receivers keep below 8 to 16 KiB themselves. The parser's own
/// limit of 100 headers stays in force: setting it costs an allocation per answer.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// A discarded connection may say goodbye this long; then its socket is dropped.
const GOODBYE: Duration = Duration::from_secs(1);

/// How long a connection from the pool may need to finish its last turn. It is done already unless
/// its task waits for a processor.
const TURN_END: Duration = Duration::from_millis(50);

/// A connection that can carry one request at a time. Dropping it closes it.
pub(super) struct Connection {
    requests: SendRequest<Full<Bytes>>,
    meter: Meter,
    opened_at: Instant,
    /// Dropped with the connection; tells its task to come to an end.
    _kept: oneshot::Sender<Infallible>,
}

impl Connection {
    /// Speaks HTTP over the stream, in a task of the tracker.
    pub(super) async fn open(stream: Stream, tasks: &TaskTracker) -> hyper::Result<Self> {
        let meter = Meter::default();
        let (requests, driver) = http1::Builder::new()
            .max_buf_size(MAX_HEAD_BYTES)
            .handshake(TokioIo::new(Wire::new(stream, meter.clone())))
            .await?;
        let (kept, discarded) = oneshot::channel();
        tasks.spawn(drive(driver, discarded));
        Ok(Self { requests, meter, opened_at: Instant::now(), _kept: kept })
    }

    /// Sends the request and waits for the answer's head.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
        deadline: Instant,
    ) -> Result<Response<Incoming>, Failure> {
        self.meter.reset();
        match timeout_at(deadline, self.requests.send_request(request)).await {
            Err(_) => Err(Failure::TimedOut),
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(Failure::new(&error, self.meter.received())),
        }
    }

    /// Whether a request can be sent now, or in a moment.
    pub(super) async fn becomes_ready(&mut self, deadline: Instant) -> bool {
        if self.requests.is_ready() {
            return true;
        }
        let end = (Instant::now() + TURN_END).min(deadline);
        matches!(timeout_at(end, self.requests.ready()).await, Ok(Ok(())))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.opened_at)
    }
}

async fn drive(
    driver: http1::Connection<TokioIo<Wire>, Full<Bytes>>,
    discarded: oneshot::Receiver<Infallible>,
) {
    let mut driver = pin!(driver);
    tokio::select! {
        biased;
        // An error reaches whoever waits for the answer; nobody else needs it.
        _ended = &mut driver => return,
        _dropped = discarded => {}
    }
    // A receiver that stops reading must not keep the socket and this task.
    drop(timeout(GOODBYE, driver).await);
}
