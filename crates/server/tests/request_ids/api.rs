//! The control plane on an embedded store, and clients of it.

use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status, service::RoutesBuilder, transport::Server};
use turnbuckle_client::{Client, ClientOptions, RetryLimits, TokenSource, proto as v1};
use turnbuckle_control_plane::{
    ControlPlane, Dependencies, Distribution, DistributionParts, Sweeper,
};
use turnbuckle_domain::{
    AppliedRevisions, Caller, Clock, ConfigStore, IdGenerator, NodeApplied, NodeReports,
    Propagation, Quotas, Random, Revision, Role, SecretSealer, SeededRandom, StoreError,
    TargetPolicy, Timestamp,
};
use turnbuckle_runtime::keyring::Keyring;
use turnbuckle_store::Store;
use turnbuckle_testkit::clock::ManualClock;

/// When every test begins: a Friday in 2027.
const START: Timestamp = Timestamp::from_micros(1_800_000_000_000_000);

/// The tenant of every test.
pub(crate) const ACME: &str = "tenants/acme";

pub(crate) struct Api {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) client: Client,
    pub(crate) sweeper: Sweeper,
    pub(crate) store: Arc<dyn ConfigStore>,
    pub(crate) nodes: Arc<dyn NodeReports>,
    url: String,
    _home: tempfile::TempDir,
}

struct AtOnce;

#[async_trait::async_trait]
impl Propagation for AtOnce {
    async fn applied(&self, _: Revision) {}
}

struct NoPlanes;

#[async_trait::async_trait]
impl AppliedRevisions for NoPlanes {
    async fn applied_revisions(&self) -> Result<Vec<NodeApplied>, StoreError> {
        Ok(Vec::new())
    }
}

struct Anywhere;

impl TargetPolicy for Anywhere {
    fn check_url(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

impl Api {
    pub(crate) async fn start() -> Self {
        Self::with(Quotas::default()).await
    }

    pub(crate) async fn with(quotas: Quotas) -> Self {
        let home = tempfile::tempdir().unwrap();
        let clock = ManualClock::shared(START);
        let port: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
        let store = Store::open_embedded(home.path(), Arc::clone(&port)).await.unwrap();
        let store = store.with_quotas(quotas);
        let random: Arc<dyn Random> = Arc::new(SeededRandom::from_number(7));
        let distribution = Arc::new(Distribution::new(DistributionParts {
            source: store.config_source(),
            nodes: Arc::clone(&store.nodes),
            ids: IdGenerator::new(Arc::clone(&port), Arc::clone(&random)),
            clock: Arc::clone(&port),
            random: Arc::clone(&random),
            stop: CancellationToken::new(),
        }));
        let keyring = Arc::new(Keyring::generate_in_memory().unwrap());
        let dependencies = Dependencies {
            store: Arc::clone(&store.config),
            receipts: Arc::clone(&store.receipts),
            replays: None,
            history: Arc::clone(&store.history),
            sealer: Arc::<Keyring>::clone(&keyring) as Arc<dyn SecretSealer>,
            ids: IdGenerator::new(Arc::clone(&port), random),
            clock: port,
            propagation: Arc::new(AtOnce),
            targets: Arc::new(Anywhere),
            key_usage: Arc::clone(&store.key_usage),
            applied: Arc::new(NoPlanes),
            sealed: Arc::clone(&store.sealed),
            rewrapper: keyring,
            reveals_keys: true,
        };
        let sweeper = Sweeper::new(&dependencies);
        let url = serve(dependencies, distribution).await;
        let client = connect(&url, "alice").await;
        let tenant_id = "acme".to_owned();
        let request = v1::CreateTenantRequest { tenant_id, ..Default::default() };
        client.tenants().create_tenant(request).await.unwrap();
        let (store, nodes) = (store.config, store.nodes);
        Self { clock, client, sweeper, store, nodes, url, _home: home }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Another caller, as powerful.
    pub(crate) async fn client_of(&self, subject: &str) -> Client {
        connect(&self.url, subject).await
    }

    pub(crate) async fn create(&self, id: &str) -> v1::Endpoint {
        self.client.create_endpoint(endpoint_request(id, "")).await.unwrap()
    }

    pub(crate) async fn delete(&self, id: &str) {
        let request = v1::DeleteEndpointRequest { name: endpoint_name(id), ..Default::default() };
        self.client.endpoints().delete_endpoint(request).await.unwrap();
    }

    pub(crate) async fn subscribe(&self, id: &str, endpoint: &str) -> v1::Subscription {
        let subscription = v1::Subscription {
            endpoint: endpoint_name(endpoint),
            event_types: vec!["*".to_owned()],
            ..Default::default()
        };
        let request = v1::CreateSubscriptionRequest {
            parent: ACME.to_owned(),
            subscription_id: id.to_owned(),
            subscription: Some(subscription),
            ..Default::default()
        };
        self.client.create_subscription(request).await.unwrap()
    }

    pub(crate) async fn ring(&self, endpoint: &str) -> v1::KeyRing {
        let name = format!("{}/keyRing", endpoint_name(endpoint));
        let request = v1::GetKeyRingRequest { name };
        self.client.keys().get_key_ring(request).await.unwrap().into_inner()
    }
}

/// Serves the control plane; the bearer token is the subject, and everybody is an admin.
async fn serve(dependencies: Dependencies, distribution: Arc<Distribution>) -> String {
    let mut routes = RoutesBuilder::default();
    ControlPlane::new(dependencies, distribution).add_to(&mut routes);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    let enter = |mut request: Request<()>| -> Result<Request<()>, Status> {
        let token = request.metadata().get("authorization").and_then(|it| it.to_str().ok());
        let subject = token.unwrap_or_default().trim_start_matches("Bearer ").to_owned();
        let issuer = "https://id.example.org".to_owned();
        let caller = Caller { issuer, subject, role: Role::Admin, tenant: None };
        request.extensions_mut().insert(caller);
        Ok(request)
    };
    let server = Server::builder()
        .layer(tonic::service::InterceptorLayer::new(enter))
        .add_routes(routes.routes());
    tokio::spawn(server.serve_with_incoming(incoming));
    url
}

async fn connect(url: &str, subject: &str) -> Client {
    Client::connect(ClientOptions {
        token: Some(TokenSource::Text(subject.to_owned())),
        retry: RetryLimits { tries: 1, ..RetryLimits::default() },
        deadline: Duration::from_secs(60),
        ..ClientOptions::new(url)
    })
    .await
    .unwrap()
}

pub(crate) fn endpoint_name(id: &str) -> String {
    format!("{ACME}/endpoints/{id}")
}

pub(crate) fn endpoint(name: &str) -> v1::Endpoint {
    let http =
        v1::HttpTarget { url: "https://receiver.example/hook".to_owned(), ..Default::default() };
    let labels = [("team", "a"), ("stage", "b")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    v1::Endpoint {
        name: name.to_owned(),
        target: Some(v1::endpoint::Target::Http(http)),
        labels,
        ..Default::default()
    }
}

pub(crate) fn endpoint_request(id: &str, request_id: &str) -> v1::CreateEndpointRequest {
    v1::CreateEndpointRequest {
        parent: ACME.to_owned(),
        endpoint_id: id.to_owned(),
        endpoint: Some(endpoint("")),
        request_id: request_id.to_owned(),
        ..Default::default()
    }
}

/// A fresh id of a request.
pub(crate) fn fresh() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Code and reason of a refusal.
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, Status>) -> (tonic::Code, String) {
    let error = turnbuckle_client::ApiError::new(&result.unwrap_err());
    (error.code, error.reason.unwrap_or_default())
}
