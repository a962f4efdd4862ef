//! Reports of nodes, with a bell for those who wait for one.

use async_trait::async_trait;
use std::sync::Arc;
use tokio::sync::watch;
use turnbuckle_domain::{
    ChangeContext, ConfigPosition, Epoch, Error, NodeId, NodeReport, NodeReports, StoreError,
    Timestamp,
};

/// Counts the reports that come to this process. Clones share the count.
#[derive(Clone)]
pub struct HeardReports {
    kept: Arc<dyn NodeReports>,
    count: watch::Sender<u64>,
}

impl HeardReports {
    /// Keeps reports there.
    #[must_use]
    pub fn new(kept: Arc<dyn NodeReports>) -> Self {
        Self { kept, count: watch::Sender::new(0) }
    }

    /// How many reports have come.
    #[must_use]
    pub fn count(&self) -> u64 {
        *self.count.borrow()
    }

    /// Waits until more than that have come.
    pub async fn more_than(&self, count: u64) {
        // The sender lives as long as this.
        drop(self.count.subscribe().wait_for(|heard| *heard > count).await);
    }
}

#[async_trait]
impl NodeReports for HeardReports {
    async fn report_node(&self, report: &NodeReport) -> Result<Option<ConfigPosition>, StoreError> {
        let accepted = self.kept.report_node(report).await?;
        // Whoever is woken reads the store, so the report must be there.
        self.count.send_modify(|count| *count += 1);
        Ok(accepted)
    }

    async fn nodes(&self, alive_since: Timestamp) -> Result<Vec<NodeReport>, StoreError> {
        self.kept.nodes(alive_since).await
    }

    async fn accept_snapshot(
        &self,
        node: &NodeId,
        snapshot: ConfigPosition,
        by: &ChangeContext,
    ) -> Result<bool, Error> {
        self.kept.accept_snapshot(node, snapshot, by).await
    }

    async fn begin_epoch(&self, after: Epoch, next: Epoch) -> Result<(), StoreError> {
        self.kept.begin_epoch(after, next).await
    }
}
