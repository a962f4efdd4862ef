//! Tells the control plane by which revision a node works.

use crate::{StreamSource, wire::wire_role};
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use turnbuckle_client::Client;
use turnbuckle_domain::{
    Clock, ConfigPosition, Epoch, Error, NodeId, NodeReport, NodeReports, RefusedResource,
    ReportSink, Revision, StoreError, Timestamp, node_limits,
};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::{duration, timestamp};
use uuid::Uuid;

/// Reports of one node are at least this far apart, however often the configuration changes.
const REPORT_GAP: Duration = Duration::from_millis(200);
/// Longest wait for a report to be kept; the next one makes up for it.
const REPORT_WAIT: Duration = Duration::from_secs(5);

/// The revision that a plane works by.
#[async_trait]
pub trait InUse: Send + 'static {
    /// The state in use now; none before the first.
    fn position(&self) -> Option<ConfigPosition>;

    /// What is configured and could not be taken over by what is in use.
    fn refused(&self) -> Vec<RefusedResource> {
        Vec::new()
    }

    /// Waits until another state is in use.
    async fn changed(&mut self);
}

/// A role that builds nothing from the configuration works by what has come.
#[async_trait]
impl InUse for (StreamSource, Option<ConfigPosition>) {
    fn position(&self) -> Option<ConfigPosition> {
        self.0.at()
    }

    async fn changed(&mut self) {
        self.0.moved_from(self.1).await;
        self.1 = self.0.at();
    }
}

/// Reports for one node.
pub struct Reporter {
    /// Who.
    pub node: NodeId,
    /// Version of this program.
    pub version: &'static str,
    /// Where the configuration comes from, when it is not the store of this process.
    pub stream: Option<StreamSource>,
    /// Where reports go.
    pub sink: Arc<dyn ReportSink>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
}

impl Reporter {
    /// Reports every change and every few seconds, until cancelled.
    pub async fn run(self, mut in_use: impl InUse, stop: CancellationToken) {
        let started_at = self.clock.now();
        let reporting = async {
            loop {
                if let Some(at) = in_use.position() {
                    self.report(at, in_use.refused(), started_at).await;
                }
                sleep(REPORT_GAP).await;
                // Either way it is time for a report.
                drop(timeout(node_limits::REPORT_EVERY - REPORT_GAP, in_use.changed()).await);
            }
        };
        stop.run_until_cancelled(reporting).await;
    }

    async fn report(
        &self,
        at: ConfigPosition,
        mut refused: Vec<RefusedResource>,
        started_at: Timestamp,
    ) {
        let condition = self.stream.as_ref().map(StreamSource::condition).unwrap_or_default();
        refused.extend(condition.refused);
        refused.truncate(node_limits::REFUSED_MAX);
        let report = NodeReport {
            node: self.node.name.clone(),
            role: self.node.role,
            epoch: at.epoch,
            applied: at.revision,
            reported_at: self.clock.now(),
            started_at,
            version: self.version.to_owned(),
            refused,
            staleness: condition.staleness,
            held: condition.held,
        };
        match timeout(REPORT_WAIT, self.sink.report(report)).await {
            Ok(Ok(accepted)) => {
                if let (Some(stream), Some(accepted)) = (&self.stream, accepted) {
                    stream.accept(accepted);
                }
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "the revision in use was not reported");
            }
            Err(_) => tracing::debug!("the revision in use was not reported in time"),
        }
    }
}

/// Keeps reports of a node that runs where the store is.
pub struct StoreReports(pub Arc<dyn NodeReports>);

#[async_trait]
impl ReportSink for StoreReports {
    async fn report(&self, report: NodeReport) -> Result<Option<ConfigPosition>, Error> {
        Ok(self.0.report_node(&report).await?)
    }
}

/// Passes reports on to the control plane.
pub struct RemoteReports(pub Client);

/// The control plane did not take a report.
#[derive(Debug, thiserror::Error)]
#[error("the control plane did not take a report ({0})")]
struct NotTaken(tonic::Code);

#[async_trait]
impl ReportSink for RemoteReports {
    async fn report(&self, report: NodeReport) -> Result<Option<ConfigPosition>, Error> {
        let sent = self.0.configuration().report_applied(request(report)).await;
        let answer = sent
            .map_err(|status| {
                if matches!(
                    status.code(),
                    tonic::Code::PermissionDenied | tonic::Code::Unauthenticated
                ) {
                    tracing::error!(error = status.message(), "reports of this node are refused");
                }
                StoreError::Unavailable(NotTaken(status.code()).into())
            })?
            .into_inner();
        let epoch = Uuid::parse_str(&answer.accepted_epoch).map(Epoch::from_uuid);
        let revision = Revision(answer.accepted_revision);
        Ok(epoch.ok().map(|epoch| ConfigPosition { epoch, revision }))
    }
}

fn request(report: NodeReport) -> v1::ReportAppliedRequest {
    let NodeReport {
        node,
        role,
        epoch,
        applied,
        reported_at: _,
        started_at,
        version,
        refused,
        staleness,
        held,
    } = report;
    v1::ReportAppliedRequest {
        node: node.to_string(),
        role: wire_role(role).into(),
        epoch: epoch.to_string(),
        revision: applied.0,
        refused: refused.into_iter().map(refused_message).collect(),
        start_time: Some(timestamp(started_at)),
        version,
        staleness: Some(duration(staleness)),
        held: held.map(held_message),
    }
}

fn refused_message(refused: turnbuckle_domain::RefusedResource) -> v1::RefusedResource {
    let turnbuckle_domain::RefusedResource { kind, uid, revision, reason } = refused;
    v1::RefusedResource { kind, uid, revision: revision.0, reason }
}

fn held_message(held: turnbuckle_domain::HeldSnapshot) -> v1::HeldSnapshot {
    v1::HeldSnapshot {
        epoch: held.at.epoch.to_string(),
        revision: held.at.revision.0,
        present: held.present.into(),
        removed: held.removed.into(),
    }
}
