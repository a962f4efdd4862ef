//! Pulling: streams of consumers take deliveries of pull endpoints straight from the queue.
//!
//! ```text
//!  append ─► wake ─┐                          ┌─► consumer
//!  other nodes ────┼─► feed ─► claim (lease) ─┤     │ ack, return, extend
//!  poll ───────────┘   (one of an endpoint)   └◄────┘
//!                                   settler ◄─ in groups ─► store
//! ```
//!
//! # Invariants
//! - **I3** A delivery comes again after a lapsed lease, a broken stream or a return, always under the same
//!   id; a consumer that acknowledges in time gets it once.
//! - **I4** Every write names the token of the lease it was made under.
//! - **I5** The endpoint's state is read from the index when deliveries are sent; a change ends the stream.
//! - **I10** Streams, deliveries and payload bytes on their way are bounded.
//! - **I13** A lapsed lease and a broken stream count as attempts, so a delivery that kills its consumers
//!   becomes dead.

mod held;
mod hub;
mod limits;
mod settle;
mod stream;

pub(crate) use hub::PullHub;
pub(crate) use limits::{ACTIONS_MAX, BYTES_MAX, EXTENSION_MIN, REQUEST_BYTES};
pub(crate) use settle::{Action, Written};
pub(crate) use stream::{Farewell, Heard, Pulled, Said, Told};

use crate::{config::ConfigHandle, metrics::EngineMetrics, plane::endless};
use futures_util::Stream;
use limits::BYTES_DEFAULT;
use settle::{PullWrites, Settler};
use std::{sync::Arc, time::Duration};
use stream::PullStream;
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use turnbuckle_domain::{
    Clock, EndpointId, Error, Precondition, PullQueue, PullTarget, Random, ResourceId, TenantId,
};
use turnbuckle_runtime::supervisor::{OnExit, Supervisor};

/// Messages that are on their way to the transport.
const OUT: usize = 2;

/// What a consumer asks for; none leaves it to the endpoint.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted {
    pub(crate) max_outstanding: Option<u16>,
    pub(crate) bytes: Option<usize>,
    pub(crate) lease: Option<Duration>,
}

/// What is agreed with a consumer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    pub(crate) max_outstanding: u16,
    pub(crate) bytes: usize,
    pub(crate) lease: Duration,
}

impl Terms {
    fn new(target: &PullTarget, wanted: Wanted) -> Self {
        let most = wanted.max_outstanding.unwrap_or(target.max_outstanding);
        Self {
            max_outstanding: most.min(target.max_outstanding),
            bytes: wanted.bytes.unwrap_or(BYTES_DEFAULT).min(BYTES_MAX),
            lease: wanted.lease.unwrap_or(target.lease),
        }
    }
}

/// The pull use case of a process.
pub(crate) struct Puller {
    pub(crate) queue: Arc<dyn PullQueue>,
    pub(crate) config: ConfigHandle,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) hub: Arc<PullHub>,
    pub(crate) writes: Arc<PullWrites>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) metrics: EngineMetrics,
}

impl Puller {
    /// Starts what writes for consumers.
    pub(crate) fn start(
        supervisor: &Supervisor,
        (queue, config): (Arc<dyn PullQueue>, ConfigHandle),
        (clock, random): (Arc<dyn Clock>, Arc<dyn Random>),
        hub: Arc<PullHub>,
    ) -> Arc<Self> {
        let writes = Arc::new(PullWrites::default());
        let tasks = TaskTracker::new();
        let stop = supervisor.shutdown();
        let streams = tasks.clone();
        let settler = Settler { queue: Arc::clone(&queue), writes: Arc::clone(&writes), streams };
        let settling = settler.run(stop.clone());
        supervisor.spawn("pull-settler", OnExit::StopProcess, endless(settling));
        let metrics = EngineMetrics::new();
        Arc::new(Self { queue, config, clock, random, hub, writes, tasks, stop, metrics })
    }

    /// Opens a stream and starts it. What it tells comes out of the receiver; the end of that is the end
    /// of the stream.
    ///
    /// # Errors
    /// When there is no such endpoint, it cannot be pulled from, or there are too many streams.
    pub(crate) fn open(
        self: &Arc<Self>,
        tenant: TenantId,
        slug: &ResourceId,
        name: &str,
        wanted: Wanted,
        said: impl Stream<Item = Heard> + Send + Unpin + 'static,
    ) -> Result<mpsc::Receiver<Result<Told, Farewell>>, Error> {
        if self.stop.is_cancelled() {
            return Err(stopping());
        }
        let index = self.config.load();
        let entry = index.endpoint_by_slug(tenant, slug);
        let endpoint = entry.map(|entry| entry.endpoint.id).ok_or_else(|| not_found(name))?;
        let target = self.target(endpoint, name)?;
        let seat = self.hub.join(endpoint)?;
        let (out, told) = mpsc::channel(OUT);
        let terms = Terms::new(&target, wanted);
        let stream = PullStream::new(Arc::clone(self), seat, endpoint, name.to_owned(), terms);
        self.tasks.spawn(stream.run(said, out));
        Ok(told)
    }

    /// The endpoint as it is now.
    fn target(&self, endpoint: EndpointId, name: &str) -> Result<PullTarget, Error> {
        let index = self.config.load();
        let entry = index.endpoint(endpoint).ok_or_else(|| not_found(name))?;
        let refuse = |message: &str| Error::Precondition {
            kind: Precondition::EndpointInactive,
            subject: name.to_owned(),
            message: message.to_owned(),
        };
        let target = entry.endpoint.target.pull();
        let target = target.ok_or_else(|| {
            refuse("deliveries are sent to its URL: make a pull endpoint to take them from")
        })?;
        match entry.endpoint.is_active() {
            true => Ok(*target),
            false => Err(refuse("the endpoint is disabled: enable it, then open the stream again")),
        }
    }
}

fn not_found(name: &str) -> Error {
    Error::NotFound { resource: name.to_owned() }
}

fn stopping() -> Error {
    Error::Unavailable { retry_after: turnbuckle_domain::StoreError::RETRY_AFTER, cause: None }
}
