//! Use cases of the configuration stream: who may follow it, and what it tells of nodes.
//!
//! ```text
//!  store ── position, once for all ──► tailer ── seen ──► a watcher for each stream ──► node
//!  store ── changes since ──► encoded once, sent to many ───┘
//! ```
//! The tailer passes on where the store stands, not what happened: a stream that is slow finds one
//! larger step instead of many, and nothing piles up for it.

mod changes;
mod outgoing;
mod tailer;
mod watcher;

pub(crate) use watcher::Watcher;

use changes::Changes;
use std::{sync::Arc, time::Duration};
use tailer::Tailer;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{
    Caller, Clock, ConfigPosition, ConfigSource, Error, IdGenerator, NodeId, NodeReport,
    NodeReports, Random, Role,
};

/// Streams at once. Each is a node; more of them belong to more control planes.
const STREAMS_MAX: usize = 512;
/// When a node that found no room should come back; another control plane may have room at once.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// What the stream of configuration stands on.
pub struct DistributionParts {
    /// Where configuration is read.
    pub source: Arc<dyn ConfigSource>,
    /// Where reports of nodes are kept.
    pub nodes: Arc<dyn NodeReports>,
    /// Makes ids of epochs.
    pub ids: IdGenerator,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Spreads the ends of streams.
    pub random: Arc<dyn Random>,
    /// Ends every stream.
    pub stop: CancellationToken,
}

/// Brings configuration to nodes. One for a process.
pub struct Distribution {
    nodes: Arc<dyn NodeReports>,
    source: Arc<dyn ConfigSource>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    stop: CancellationToken,
    tailer: Tailer,
    changes: Changes,
    streams: Arc<Semaphore>,
}

impl Distribution {
    /// Puts it together. Nothing is read before [`Distribution::run`].
    #[must_use]
    pub fn new(parts: DistributionParts) -> Self {
        let DistributionParts { source, nodes, ids, clock, random, stop } = parts;
        describe_metrics();
        Self {
            tailer: Tailer::new(Arc::clone(&source), Arc::clone(&nodes), ids),
            changes: Changes::new(Arc::clone(&source)),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            nodes,
            source,
            clock,
            random,
            stop,
        }
    }

    /// Follows the store until the process stops.
    pub async fn run(self: Arc<Self>) {
        self.stop.run_until_cancelled(self.tailer.run()).await;
    }

    /// Says that something was committed. A hint: the store is polled too.
    pub fn hint(&self) {
        self.tailer.hint();
    }

    /// Opens a stream for a node, from the state that it has.
    pub(crate) fn watch(
        self: &Arc<Self>,
        caller: &Caller,
        node: &NodeId,
        known: Option<ConfigPosition>,
    ) -> Result<Watcher, Error> {
        identify(caller, node)?;
        let slot = Arc::clone(&self.streams).try_acquire_owned().map_err(|_| Error::Exhausted {
            message: format!("{STREAMS_MAX} nodes follow this control plane; ask another one"),
            retry_after: RETRY_AFTER,
        })?;
        tracing::info!(
            node = %node,
            config.revision = known.map_or(0, |known| known.revision.0),
            "a node follows the configuration"
        );
        Ok(Watcher::new(Arc::clone(self), node.role, known, slot))
    }

    /// The newest state, read after the call came.
    pub(crate) async fn newest(
        &self,
        caller: &Caller,
        node: &NodeId,
    ) -> Result<ConfigPosition, Error> {
        identify(caller, node)?;
        Ok(self.tailer.fresh().await?)
    }

    /// Keeps what a node says of itself; gives the snapshot that it may apply.
    pub(crate) async fn report(
        &self,
        caller: &Caller,
        report: &NodeReport,
    ) -> Result<Option<ConfigPosition>, Error> {
        identify(caller, &report.id())?;
        let report = NodeReport { reported_at: self.clock.now(), ..report.clone() };
        Ok(self.nodes.report_node(&report).await?)
    }

    /// Reports of nodes, for those who look at them.
    pub(crate) fn nodes(&self) -> &dyn NodeReports {
        self.nodes.as_ref()
    }

    /// Where configuration is read.
    pub(crate) fn source(&self) -> &dyn ConfigSource {
        self.source.as_ref()
    }

    /// Tells the time.
    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }
}

/// Whether the caller is the node it says. The token decides: its subject names the role, and may
/// name the node. What the request says is never enough.
fn identify(caller: &Caller, node: &NodeId) -> Result<(), Error> {
    // A service account is named after its cluster and namespace.
    let own = caller.subject.rsplit(':').next().unwrap_or_default();
    let (role, name) = match own.split_once('/') {
        Some((role, name)) => (role, Some(name)),
        None => (own, None),
    };
    let is_node = caller.role == Role::Node
        && role == node.role.as_str()
        && name.is_none_or(|name| name == node.name.as_str());
    // Nodes serve every tenant: a token for one does not make a node.
    if is_node && caller.tenant.is_none() {
        return Ok(());
    }
    tracing::warn!(
        subject = caller.subject,
        node = %node,
        "a node is refused: the subject of its token must be its role, or its role and name, such as \
         delivery or delivery/web-1, for every tenant"
    );
    Err(Error::PermissionDenied)
}

fn describe_metrics() {
    metrics::describe_gauge!(
        "turnbuckle_watch_streams",
        "Nodes that follow the configuration here"
    );
    metrics::describe_counter!(
        "turnbuckle_watch_messages_total",
        metrics::Unit::Count,
        "Messages sent to nodes, by kind"
    );
}

#[cfg(test)]
mod tests;
