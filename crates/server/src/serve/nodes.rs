//! Where the planes of this process get their configuration from, and how they report it.
//!
//! ```text
//!  with the control plane in this process, or a database alone: the store itself
//!  with --control-plane-url: a stream for each role, and its last-known-good file
//! ```

use super::{Base, Role, ServeArgs};
use anyhow::Context as _;
use async_trait::async_trait;
use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};
use turnbuckle_client::{Client, ClientOptions, TokenSource};
use turnbuckle_config_stream::{
    HeardReports, InUse, LastKnownGood, RemoteReports, Reporter, StoreReports, StreamParts,
    StreamSource, Usable, wire::Record,
};
use turnbuckle_control_plane::{Distribution, DistributionParts};
use turnbuckle_delivery::{OwnRevision, config::ConfigHandle};
use turnbuckle_domain::{
    AppliedRevisions, Clock, ConfigPosition, ConfigSource, Epoch, IdGenerator, NodeApplied, NodeId,
    NodeReports, NodeRole, Propagation, RefusedResource, ReportSink, ResourceId, Revision,
    StoreError, node_limits,
};
use turnbuckle_ingress::{SourceHandle, check_source};
use turnbuckle_runtime::{Supervisor, admin::AdminState, supervisor::OnExit};

/// Longest wait for an answer of the control plane; the stream itself is not bound by it.
const CALL_DEADLINE: Duration = Duration::from_secs(5);
/// Part of a host's name that is used for a node: leaves room for a port in 63 characters.
const HOST_CHARS: usize = 55;
/// Name of a node on a host that has none.
const NO_HOST: &str = "node";

/// Where the planes get their configuration from.
pub(super) struct Sources {
    client: Option<Client>,
    delivery: Option<StreamSource>,
    ingress: Option<StreamSource>,
    name: ResourceId,
    /// Reports that come to this process.
    reports: HeardReports,
}

impl Sources {
    /// Opens a stream for each role, when another process is the control plane.
    pub(super) fn open(
        args: &ServeArgs,
        base: &Base,
        supervisor: &Supervisor,
        admin: SocketAddr,
    ) -> anyhow::Result<Self> {
        let name = match &args.node_name {
            Some(name) => ResourceId::new(name.as_str()).context("--node-name")?,
            None => default_name(&host(), admin.port()),
        };
        let client = args.control_plane_url.as_ref().map(|url| client(url, args)).transpose()?;
        let reports = HeardReports::new(Arc::clone(&base.store.nodes));
        let mut sources = Self { client, delivery: None, ingress: None, name, reports };
        sources.delivery = sources.stream(args, base, supervisor, NodeRole::Delivery);
        sources.ingress = sources.stream(args, base, supervisor, NodeRole::Ingress);
        Ok(sources)
    }

    fn stream(
        &self,
        args: &ServeArgs,
        base: &Base,
        supervisor: &Supervisor,
        role: NodeRole,
    ) -> Option<StreamSource> {
        let (has_role, task) = match role {
            NodeRole::Delivery => (args.has(Role::Delivery), "config-stream-delivery"),
            NodeRole::Ingress => (args.has(Role::Ingress), "config-stream-ingress"),
        };
        let client = self.client.clone().filter(|_| has_role)?;
        let stream = StreamSource::open(StreamParts {
            client,
            node: self.node(role),
            file: LastKnownGood::new(&args.data_dir, role, Arc::clone(&base.sealer)),
            usable: usable(role),
            clock: Arc::clone(&base.clock),
            random: Arc::clone(&base.random),
        });
        let running = stream.clone().run(supervisor.shutdown());
        supervisor.spawn(task, OnExit::StopProcess, endless(running));
        Some(stream)
    }

    fn node(&self, role: NodeRole) -> NodeId {
        NodeId { role, name: self.name.clone() }
    }

    fn streams(&self) -> impl Iterator<Item = &StreamSource> {
        self.delivery.iter().chain(&self.ingress)
    }

    /// Makes readiness depend on having any configuration.
    pub(super) fn checked_by(&self, mut admin: AdminState) -> AdminState {
        for stream in self.streams() {
            let (checked, told) = (stream.clone(), stream.clone());
            admin = admin
                .with_check("configuration", Arc::new(move || checked.readiness()))
                .with_detail("configuration", Arc::new(move || detail(&told)));
        }
        admin
    }

    /// Waits until every role has a configuration to work by.
    pub(super) async fn loaded(
        &self,
        supervisor: &Supervisor,
        admin: SocketAddr,
    ) -> anyhow::Result<()> {
        let waits = self.streams().any(|stream| stream.at().is_none());
        if waits {
            tracing::warn!(
                readiness = format!("http://{admin}/readyz"),
                "not ready: there is no last-known-good configuration; waiting for the control plane"
            );
        }
        let loaded = async {
            for stream in self.streams() {
                stream.loaded().await;
            }
        };
        let stopped = supervisor.shutdown().run_until_cancelled(loaded).await.is_none();
        anyhow::ensure!(!stopped, "told to stop before the control plane gave a configuration");
        Ok(())
    }

    /// The configuration of the delivery plane.
    pub(super) fn of_delivery(&self, base: &Base) -> Arc<dyn ConfigSource> {
        match &self.delivery {
            Some(stream) => Arc::new(stream.clone()),
            None => base.store.config_source(),
        }
    }

    /// Reports what the delivery plane works by.
    pub(super) fn report_delivery(
        &self,
        base: &Base,
        supervisor: &Supervisor,
        config: ConfigHandle,
    ) {
        let reporter = self.reporter(base, NodeRole::Delivery, self.delivery.clone());
        let reporting = reporter.run(Index(config), supervisor.shutdown());
        supervisor.spawn("node-report-delivery", OnExit::Log, endless(reporting));
    }

    /// The configuration of the ingress: sources and their keys.
    pub(super) fn of_ingress(&self, base: &Base) -> Arc<dyn ConfigSource> {
        match &self.ingress {
            Some(stream) => Arc::new(stream.clone()),
            None => base.store.config_source(),
        }
    }

    /// Reports what the ingress works by.
    pub(super) fn report_ingress(
        &self,
        base: &Base,
        supervisor: &Supervisor,
        sources: SourceHandle,
    ) {
        let reporter = self.reporter(base, NodeRole::Ingress, self.ingress.clone());
        let reporting = reporter.run(Index(sources), supervisor.shutdown());
        supervisor.spawn("node-report-ingress", OnExit::Log, endless(reporting));
    }

    /// Which revisions delivery nodes work by: this process at first hand, others as they reported.
    pub(super) fn applied_revisions(
        &self,
        base: &Base,
        here: Option<OwnRevision>,
    ) -> Arc<dyn AppliedRevisions> {
        Arc::new(Reported {
            own: here.map(|here| (self.node(NodeRole::Delivery), here)),
            source: base.store.config_source(),
            nodes: self.reports.clone(),
            clock: Arc::clone(&base.clock),
        })
    }

    fn reporter(&self, base: &Base, role: NodeRole, stream: Option<StreamSource>) -> Reporter {
        let sink: Arc<dyn ReportSink> = match &self.client {
            Some(client) => Arc::new(RemoteReports(client.clone())),
            None => Arc::new(StoreReports(Arc::new(self.reports.clone()))),
        };
        Reporter {
            node: self.node(role),
            version: env!("CARGO_PKG_VERSION"),
            stream,
            sink,
            clock: Arc::clone(&base.clock),
        }
    }
}

/// The revisions that delivery nodes work by.
struct Reported {
    /// The node of this process, whose last report may be older than what it works by.
    own: Option<(NodeId, OwnRevision)>,
    source: Arc<dyn ConfigSource>,
    nodes: HeardReports,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl AppliedRevisions for Reported {
    async fn applied_revisions(&self) -> Result<Vec<NodeApplied>, StoreError> {
        let epoch = self.source.position().await?.at.epoch;
        // Who is silent may deliver on: how long ago it spoke is judged by those who ask.
        let since = self.clock.now() - node_limits::FORGOTTEN_AFTER;
        let is_own = |id: &NodeId| self.own.as_ref().is_some_and(|(own, _)| own == id);
        let mut found = match &self.own {
            Some((_, own)) => own.applied_revisions().await?,
            None => Vec::new(),
        };
        for report in self.nodes.nodes(since).await? {
            let id = report.id();
            if report.role == NodeRole::Delivery && !is_own(&id) {
                // What belongs to another history counts for nothing.
                let is_present = report.epoch == epoch;
                let revision = if is_present { report.applied } else { Revision::ZERO };
                let (node, at, refused) = (id.to_string(), report.reported_at, report.refused);
                found.push(NodeApplied { node, revision, at, refused });
            }
        }
        Ok(found)
    }

    fn reports_heard(&self) -> u64 {
        let own = self.own.as_ref().map_or(0, |(_, own)| own.reports_heard());
        self.nodes.count() + own
    }

    async fn heard_more_than(&self, count: u64) {
        let Some((_, own)) = &self.own else { return self.nodes.more_than(count).await };
        let (reports, applied) = (self.nodes.count(), own.reports_heard());
        if reports + applied > count {
            return;
        }
        tokio::select! {
            () = self.nodes.more_than(reports) => {}
            () = own.heard_more_than(applied) => {}
        }
    }
}

/// What `/readyz` tells of the configuration.
fn detail(stream: &StreamSource) -> serde_json::Value {
    serde_json::json!({
        "revision": stream.at().map(|at| at.revision.0),
        "connected": stream.is_connected(),
        "staleness_seconds": stream.staleness().as_secs(),
    })
}

/// The index of a plane, as reports see it.
struct Index<H>(H);

#[async_trait]
impl InUse for Index<ConfigHandle> {
    fn position(&self) -> Option<ConfigPosition> {
        read(self.0.load().position())
    }

    fn refused(&self) -> Vec<RefusedResource> {
        self.0.load().refused()
    }

    async fn changed(&mut self) {
        self.0.changed().await;
    }
}

#[async_trait]
impl InUse for Index<SourceHandle> {
    fn position(&self) -> Option<ConfigPosition> {
        read(self.0.load().position())
    }

    async fn changed(&mut self) {
        self.0.changed().await;
    }

    fn refused(&self) -> Vec<RefusedResource> {
        self.0.load().refused()
    }
}

/// Which resources the plane of a role can build.
fn usable(role: NodeRole) -> Usable {
    match role {
        // Builds of everything that can be read.
        NodeRole::Delivery => Usable::default(),
        NodeRole::Ingress => Usable::new(|record| match record {
            Record::Source(source) => check_source(source),
            _ => Ok(()),
        }),
    }
}

/// Before the first read there is no position.
fn read(at: ConfigPosition) -> Option<ConfigPosition> {
    (at.epoch != Epoch::default()).then_some(at)
}

/// Brings configuration from the store to the nodes that follow this process.
pub(super) fn distribute(
    base: &Base,
    sources: &Sources,
    supervisor: &Supervisor,
) -> Arc<Distribution> {
    let distribution = Arc::new(Distribution::new(DistributionParts {
        source: base.store.config_source(),
        nodes: Arc::new(sources.reports.clone()),
        ids: IdGenerator::new(Arc::clone(&base.clock), Arc::clone(&base.random)),
        clock: Arc::clone(&base.clock),
        random: Arc::clone(&base.random),
        stop: supervisor.shutdown(),
    }));
    let running = Arc::clone(&distribution).run();
    supervisor.spawn("config-tailer", OnExit::StopProcess, endless(running));
    distribution
}

/// A change waits for this process only; nodes are told at once.
pub(super) struct Told {
    pub(super) distribution: Arc<Distribution>,
    /// The planes of this process that work by the configuration.
    pub(super) here: Vec<Arc<dyn Propagation>>,
}

#[async_trait]
impl Propagation for Told {
    async fn applied(&self, revision: Revision) {
        self.distribution.hint();
        // One after the other: the second has mostly got there while the first did.
        for here in &self.here {
            here.applied(revision).await;
        }
    }
}

fn client(url: &str, args: &ServeArgs) -> anyhow::Result<Client> {
    let ca_pem = args.extra_ca_file.as_ref().map(std::fs::read).transpose();
    let options = ClientOptions {
        token: args.node_token_file.clone().map(TokenSource::File),
        deadline: CALL_DEADLINE,
        ca_pem: ca_pem.context("cannot read --extra-ca-file")?,
        ..ClientOptions::new(url)
    };
    Client::connect_lazy(options).context("--control-plane-url, --node-token-file")
}

/// The name of this host, as the system or the orchestrator tells it.
fn host() -> String {
    let told = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    let asked = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    told.or_else(asked).unwrap_or_default()
}

/// Host and port together are unique where several processes share a host, and stay over restarts.
fn default_name(host: &str, port: u16) -> ResourceId {
    let host = host.trim().to_ascii_lowercase();
    let tame = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let tamed: String = host.chars().map(tame).take(HOST_CHARS).collect();
    let starts_well = tamed.starts_with(|first: char| first.is_ascii_lowercase());
    let named = if starts_well { format!("{tamed}-{port}") } else { format!("n-{tamed}-{port}") };
    let fallback = || ResourceId::new(NO_HOST);
    match ResourceId::new(named).or_else(|_| fallback()) {
        Ok(name) => name,
        // Unreachable: the fallback is a constant that fits.
        Err(_) => default_name(NO_HOST, port),
    }
}

/// A task that cannot fail, in the supervisor's form.
async fn endless(task: impl Future<Output = ()>) -> Result<(), Infallible> {
    task.await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_host_makes_a_name() {
        let long = "h".repeat(200);
        for (host, expected) in [
            ("web-1\n", "web-1-7422".to_owned()),
            ("Web.Example.com", "web-example-com-7422".to_owned()),
            ("10.0.0.1", "n-10-0-0-1-7422".to_owned()),
            ("", "n--7422".to_owned()),
            ("ü", "n---7422".to_owned()),
            (long.as_str(), format!("{}-7422", "h".repeat(HOST_CHARS))),
        ] {
            assert_eq!(default_name(host, 7422).as_str(), expected, "{host}");
        }
    }
}
