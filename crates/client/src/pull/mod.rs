//! Taking deliveries from a pull endpoint, at least once each.
//!
//! ```no_run
//! use turnbuckle_client::{Client, pull::{Delivery, Reply}};
//!
//! # async fn example(client: Client) -> Result<(), tonic::Status> {
//! client
//!     .consumer("tenants/acme/endpoints/billing")
//!     .run(
//!         async |delivery: Delivery| {
//!             println!("{} {:?}", delivery.event().event_type, delivery.event().data);
//!             Reply::Ack
//!         },
//!         std::future::pending(),
//!     )
//!     .await
//! # }
//! ```
//!
//! # Invariants
//! - A delivery is acknowledged only after its handler has said so.
//! - While a handler runs, its lease is prolonged; one that panics gives its delivery back.
//! - Of one consumer, no more handlers run than it was told, also across reconnects.

mod once;
mod session;

pub use once::{Claim, OnceKeys};

use crate::{
    Client,
    proto::{Event, PulledDelivery},
    publish::random,
};
use session::{Ended, Session};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;
use tonic::{Code, Status};

/// Handlers at once, when none is chosen.
const CONCURRENCY: u16 = 16;
/// First and longest wait before a broken stream is opened again.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));

/// A delivery to handle.
#[derive(Debug, Clone)]
pub struct Delivery(PulledDelivery);

impl Delivery {
    /// The event, with its payload as published.
    #[must_use]
    pub fn event(&self) -> &Event {
        static NONE: std::sync::LazyLock<Event> = std::sync::LazyLock::new(Event::default);
        self.0.event.as_ref().unwrap_or(&NONE)
    }

    /// Its name, `tenants/{tenant}/deliveries/{delivery}`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.delivery
    }

    /// The same for every attempt of this delivery and for no other: what an effect may happen once for.
    /// Keep it with the effect, in the same transaction, and a repeat is harmless.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        &self.0.idempotency_key
    }

    /// 1 for the first attempt.
    #[must_use]
    pub const fn attempt(&self) -> i32 {
        self.0.attempt
    }
}

/// What a handler says of its delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Done: it is never sent again.
    Ack,
    /// Failed: send it again, after this time or as the endpoint's retry policy says.
    Nack(Option<Duration>),
}

/// Takes deliveries of one endpoint. Made by [`Client::consumer`].
#[derive(Debug, Clone)]
pub struct Consumer {
    client: Client,
    endpoint: String,
    concurrency: u16,
    lease: Option<Duration>,
}

impl Client {
    /// A consumer of a pull endpoint, `tenants/{tenant}/endpoints/{endpoint}`: 16 handlers at once, and
    /// the endpoint's lease.
    #[must_use]
    pub fn consumer(&self, endpoint: impl Into<String>) -> Consumer {
        let (client, endpoint) = (self.clone(), endpoint.into());
        Consumer { client, endpoint, concurrency: CONCURRENCY, lease: None }
    }
}

impl Consumer {
    /// Handlers at once, 1 to 1,000. The endpoint may allow fewer.
    #[must_use]
    pub fn concurrency(self, concurrency: u16) -> Self {
        Self { concurrency, ..self }
    }

    /// How long a delivery is held without a sign of life, 5 s to 10 min: when this process dies, its
    /// deliveries come to others after that time at most.
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// Handles deliveries until `stop` is ready: then starts no more, waits for the handlers that run,
    /// and gives back the rest. Opens the stream again, with growing waits, whenever it breaks; what was
    /// being handled is finished first, but its reply is lost and the delivery comes again.
    ///
    /// # Errors
    /// When the server refuses for good: no such endpoint, a disabled one, no permission.
    pub async fn run<H, F>(
        self,
        handler: H,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), Status>
    where
        H: Fn(Delivery) -> F + Send + Sync + 'static,
        F: Future<Output = Reply> + Send + 'static,
    {
        let (told, stopped) = watch::channel(false);
        let handler = Arc::new(handler);
        let serving = self.serve(handler, stopped);
        tokio::pin!(serving, stop);
        tokio::select! {
            ended = &mut serving => return ended,
            () = &mut stop => {}
        }
        told.send_replace(true);
        serving.await
    }

    async fn serve<H, F>(
        &self,
        handler: Arc<H>,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<(), Status>
    where
        H: Fn(Delivery) -> F + Send + Sync + 'static,
        F: Future<Output = Reply> + Send + 'static,
    {
        let mut wait = BACKOFF.0;
        loop {
            let status = match Session::open(self).await {
                Ok(session) => match session.serve(&handler, &mut stopped).await {
                    Ended::Stopped => return Ok(()),
                    Ended::Broken { status, has_served } => {
                        if has_served {
                            wait = BACKOFF.0;
                        }
                        status
                    }
                },
                Err(status) => status,
            };
            if !may_pass(&status) {
                return Err(status);
            }
            // Half of it is random, so that consumers that lost one server do not come back as one.
            let half = wait / 2;
            let spread = half.mul_f64(f64::from(random()) / f64::from(u32::MAX));
            tokio::select! {
                () = tokio::time::sleep(half + spread) => {}
                () = told_to_stop(&mut stopped) => return Ok(()),
            }
            wait = (wait * 2).min(BACKOFF.1);
        }
    }
}

/// Waits until the consumer is to stop; also when whoever could say so is gone.
async fn told_to_stop(stopped: &mut watch::Receiver<bool>) {
    drop(stopped.wait_for(|stopped| *stopped).await);
}

/// Whether it is worth opening the stream again.
fn may_pass(status: &Status) -> bool {
    // The last three are what a connection that broke says, and a server that is being replaced.
    matches!(
        status.code(),
        Code::Unavailable
            | Code::ResourceExhausted
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::Unknown
            | Code::Internal
            | Code::Cancelled
    )
}
