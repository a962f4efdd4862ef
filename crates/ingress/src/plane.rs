//! Puts the plane together and runs it under the supervisor.

use crate::{
    config::{SourceFollower, SourceHandle},
    fetched::FetchedKeys,
    heavy::Heavy,
    key_meter::KeyMeter,
    listener,
    memory::BodyMemory,
    pipeline::Pipeline,
    proxies::TrustedProxies,
    receipts::{ReceiptQueue, sweep},
    spikes::Spikes,
    strangers::Strangers,
};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::net::TcpListener;
use turnbuckle_domain::{
    Clock, ConfigSource, DocumentFetch, EventIntake, IdGenerator, KeyUsageStore, Random,
    ReceiptLog, SecretLearning, SecretSealer, StoreError,
};
use turnbuckle_runtime::{
    supervisor::{OnExit, Supervisor},
    tls::TlsAcceptor,
};
use turnbuckle_signing::scheme::TrustAnchor;

/// What the plane is made of.
pub struct IngressParts {
    /// Configuration: sources and their keys.
    pub config: Arc<dyn ConfigSource>,
    /// Where events go.
    pub intake: Arc<dyn EventIntake>,
    /// Where receipts go.
    pub receipts: Arc<dyn ReceiptLog>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub random: Arc<dyn Random>,
    /// Opens verification keys.
    pub sealer: Arc<dyn SecretSealer>,
    /// How long receipts are kept, and dead letters with them.
    pub receipt_retention: Duration,
    /// Proxies whose word on the sender's address is taken; none unless the operator says so.
    pub proxies: TrustedProxies,
    /// Fetches keys of senders, and confirms subscriptions.
    pub fetch: Arc<dyn DocumentFetch>,
    /// Who may have issued the certificates of senders.
    pub anchors: Vec<TrustAnchor<'static>>,
    /// Keeps secrets that senders choose.
    pub learning: Arc<dyn SecretLearning>,
    /// Where the use of keys is counted.
    pub key_usage: Arc<dyn KeyUsageStore>,
    /// How often it is written.
    pub key_usage_every: Duration,
}

/// The plane, before and while it listens.
pub struct IngressPlane {
    pipeline: Arc<Pipeline>,
    sources: SourceHandle,
}

impl IngressPlane {
    /// Reads the sources and starts every task of the plane but its listener.
    ///
    /// # Errors
    /// When the configuration does not answer.
    pub async fn start(parts: IngressParts, supervisor: &Supervisor) -> Result<Self, StoreError> {
        crate::metrics::describe();
        let (follower, sources) = SourceFollower::start(parts.config).await?;
        let following = follower.run(supervisor.shutdown());
        supervisor.spawn("source-follower", OnExit::StopProcess, endless(following));
        let (receipts, writer, prompt) = ReceiptQueue::new(Arc::clone(&parts.receipts));
        supervisor.spawn("receipt-writer", OnExit::StopProcess, endless(writer.run()));
        let (clock, kept) = (Arc::clone(&parts.clock), parts.receipt_retention);
        supervisor.spawn("dead-letter-writer", OnExit::StopProcess, endless(prompt.run()));
        let sweeping = sweep(parts.receipts, clock, kept, supervisor.shutdown());
        supervisor.spawn("receipt-sweep", OnExit::Log, endless(sweeping));
        let meter = Arc::new(KeyMeter::default());
        let every = parts.key_usage_every;
        let metering = Arc::clone(&meter).run(parts.key_usage, every, supervisor.shutdown());
        supervisor.spawn("ingress-key-usage", OnExit::Log, endless(metering));
        let pipeline = Pipeline {
            meter,
            sources: sources.clone(),
            intake: parts.intake,
            sealer: parts.sealer,
            receipts,
            receipt_retention: kept,
            spikes: Spikes::default(),
            memory: BodyMemory::default(),
            heavy: Heavy::default(),
            strangers: Strangers::default(),
            proxies: parts.proxies,
            ids: IdGenerator::new(Arc::clone(&parts.clock), parts.random),
            fetched: FetchedKeys::new(parts.fetch, parts.anchors, Arc::clone(&parts.clock)),
            learning: parts.learning,
            clock: parts.clock,
        };
        Ok(Self { pipeline: Arc::new(pipeline), sources })
    }

    /// The sources in use here; also tells writers when theirs are.
    #[must_use]
    pub fn sources(&self) -> SourceHandle {
        self.sources.clone()
    }

    pub(crate) fn pipeline(&self) -> Arc<Pipeline> {
        Arc::clone(&self.pipeline)
    }

    /// Starts to listen; with TLS when there is an acceptor.
    pub fn listen(self, listener: TcpListener, tls: Option<TlsAcceptor>, supervisor: &Supervisor) {
        let serving = listener::serve(listener, tls, self.pipeline, supervisor.shutdown());
        supervisor.spawn("ingress", OnExit::StopProcess, serving);
    }
}

/// A task that cannot fail, in the supervisor's form.
async fn endless(task: impl Future<Output = ()>) -> Result<(), Infallible> {
    task.await;
    Ok(())
}
