//! The data planes that a control plane knows, and the configuration that they work by.

use super::{Base, nodes::Sources};
use async_trait::async_trait;
use std::sync::Arc;
use turnbuckle_delivery::{DeliveryPlane, OwnRevision};
use turnbuckle_domain::{
    AppliedRevisions, Clock, ConfigSource, NodeApplied, NodeId, NodeReport, NodeReports, NodeRole,
    Revision, StoreError, node_limits,
};

/// The delivery plane of this process as it is now, and all others as they last said.
pub(super) struct Planes {
    here: Option<OwnRevision>,
    own: NodeId,
    reports: Arc<dyn NodeReports>,
    source: Arc<dyn ConfigSource>,
    clock: Arc<dyn Clock>,
}

impl Sources {
    /// The data planes that this process knows.
    pub(super) fn planes(&self, base: &Base, delivery: Option<&DeliveryPlane>) -> Planes {
        Planes {
            here: delivery.map(DeliveryPlane::own_revision),
            own: self.node(NodeRole::Delivery),
            reports: Arc::clone(&base.store.nodes),
            source: base.store.config_source(),
            clock: Arc::clone(&base.clock),
        }
    }
}

impl Planes {
    /// Whether a report is of another data plane: that of this process is asked, not remembered.
    fn is_elsewhere(&self, report: &NodeReport) -> bool {
        report.role == NodeRole::Delivery && (self.here.is_none() || report.id() != self.own)
    }
}

#[async_trait]
impl AppliedRevisions for Planes {
    async fn applied_revisions(&self) -> Result<Vec<NodeApplied>, StoreError> {
        let mut planes = match &self.here {
            Some(here) => here.applied_revisions().await?,
            None => Vec::new(),
        };
        let epoch = self.source.position().await?.at.epoch;
        let alive_since = self.clock.now() - node_limits::LIVE_WITHIN;
        let reports = self.reports.nodes(alive_since).await?;
        planes.extend(reports.into_iter().filter(|report| self.is_elsewhere(report)).map(
            |report| {
                NodeApplied {
                    node: report.id().to_string(),
                    // A revision of another history says nothing about this one.
                    revision: if report.epoch == epoch { report.applied } else { Revision::ZERO },
                    at: report.reported_at,
                }
            },
        ));
        Ok(planes)
    }
}
