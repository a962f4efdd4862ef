//! Puts the plane together and runs it under the supervisor.

use crate::{
    body::BodyMemory,
    config::{SourceFollower, SourceHandle},
    key_meter::KeyMeter,
    listener,
    pipeline::Pipeline,
    receipts::{ReceiptQueue, sweep},
};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::net::TcpListener;
use turnbuckle_domain::{
    Clock, ConfigSource, EventIntake, IdGenerator, KeyUsageStore, Random, ReceiptLog, SecretSealer,
    StoreError,
};
use turnbuckle_runtime::supervisor::{OnExit, Supervisor};

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
        let (receipts, writer) = ReceiptQueue::new(Arc::clone(&parts.receipts));
        supervisor.spawn("receipt-writer", OnExit::StopProcess, endless(writer.run()));
        let sweeping = sweep(parts.receipts, Arc::clone(&parts.clock), supervisor.shutdown());
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
            memory: BodyMemory::default(),
            ids: IdGenerator::new(Arc::clone(&parts.clock), parts.random),
            clock: parts.clock,
        };
        Ok(Self { pipeline: Arc::new(pipeline), sources })
    }

    /// The sources in use here; also tells writers when theirs are.
    #[must_use]
    pub fn sources(&self) -> SourceHandle {
        self.sources.clone()
    }

    /// Starts to listen.
    pub fn listen(self, listener: TcpListener, supervisor: &Supervisor) {
        let serving = listener::serve(listener, self.pipeline, supervisor.shutdown());
        supervisor.spawn("ingress", OnExit::StopProcess, serving);
    }
}

/// A task that cannot fail, in the supervisor's form.
async fn endless(task: impl Future<Output = ()>) -> Result<(), Infallible> {
    task.await;
    Ok(())
}
