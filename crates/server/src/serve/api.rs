//! The API's listener: services, authentication, health, reflection; gRPC, gRPC-Web and JSON.

use super::{
    callers::Callers,
    json::{FrontLayer, Origins},
    key_upkeep,
};
use std::{sync::Arc, time::Duration};
use tokio::net::TcpListener;
use tonic::{
    service::RoutesBuilder,
    transport::{Server, server::TcpIncoming},
};
use turnbuckle_control_plane::{ControlPlane, Dependencies, Distribution};
use turnbuckle_delivery::DeliveryPlane;
use turnbuckle_domain::Clock;
use turnbuckle_proto::DESCRIPTORS;
use turnbuckle_runtime::{
    Supervisor,
    auth::{AuthLayer, AuthMode},
    supervisor::OnExit,
    tls::{self, TlsAcceptor},
};

/// A call that takes longer is not going to be waited for by anybody.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for JSON, which must run out first: the server's own answer is in gRPC's terms.
const JSON_TIMEOUT: Duration = Duration::from_secs(29);
/// Calls under way on one connection: enough for a publisher with a thousand in flight.
const STREAMS_MAX: u32 = 1_024;
/// Finds peers that are gone without a word.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Adds a service to the routes.
pub(super) type RouteMaker = Box<dyn FnOnce(&mut RoutesBuilder) + Send>;

/// What the listener serves.
pub(super) struct ApiParts {
    pub(super) control_plane: Option<Dependencies>,
    pub(super) distribution: Option<Arc<Distribution>>,
    pub(super) delivery: Option<DeliveryPlane>,
    /// Serves tests of sources, where the control plane runs.
    pub(super) source_tests: Option<RouteMaker>,
    pub(super) callers: Callers,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) dev: bool,
    pub(super) origins: Origins,
    pub(super) key_upkeep_every: Duration,
}

/// Starts serving.
pub(super) fn spawn(
    supervisor: &Supervisor,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    parts: ApiParts,
) -> anyhow::Result<()> {
    let mode = match parts.dev {
        true => AuthMode::dev(parts.callers.authenticator),
        false => AuthMode::Required(parts.callers.authenticator),
    };
    let auth = AuthLayer::recording(DESCRIPTORS, mode, parts.callers.denials)?;
    let front = FrontLayer::new(parts.origins, JSON_TIMEOUT)?;
    let mut routes = RoutesBuilder::default();
    let (reporter, health) = tonic_health::server::health_reporter();
    routes.add_service(health);
    routes.add_service(
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1()?,
    );
    if let (Some(dependencies), Some(distribution)) = (parts.control_plane, parts.distribution) {
        let plane = ControlPlane::new(dependencies, distribution);
        key_upkeep::spawn(supervisor, plane.key_upkeep(), parts.key_upkeep_every);
        plane.add_to(&mut routes);
    }
    if let Some(delivery) = &parts.delivery {
        routes.add_service(delivery.events_service());
        routes.add_service(delivery.deliveries_service());
        routes.add_service(delivery.replays_service());
        routes.add_service(delivery.pull_service());
        routes.add_service(delivery.key_tests_service());
    }
    if let Some(add) = parts.source_tests {
        add(&mut routes);
    }
    let stop = supervisor.shutdown();
    let drained = stop.clone();
    supervisor.spawn("api", OnExit::StopProcess, async move {
        let server = Server::builder()
            .timeout(CALL_TIMEOUT)
            .accept_http1(true)
            .max_concurrent_streams(STREAMS_MAX)
            .http2_keepalive_interval(Some(KEEPALIVE))
            .layer(front)
            .layer(auth)
            .add_routes(routes.routes());
        // The socket's options are set here: the server would set them on its own listener only.
        let incoming =
            TcpIncoming::from(listener).with_nodelay(Some(true)).with_keepalive(Some(KEEPALIVE));
        match tls {
            None => server.serve_with_incoming_shutdown(incoming, stop.cancelled_owned()).await,
            Some(tls) => {
                let shaken = tls::incoming(incoming, tls, stop.clone());
                server.serve_with_incoming_shutdown(shaken, stop.cancelled_owned()).await
            }
        }
    });
    supervisor.spawn("health", OnExit::Log, async move {
        // The empty name is the whole server, as orchestrators ask for it.
        reporter.set_service_status("", tonic_health::ServingStatus::Serving).await;
        drained.cancelled().await;
        reporter.set_service_status("", tonic_health::ServingStatus::NotServing).await;
        Ok::<(), std::convert::Infallible>(())
    });
    Ok(())
}
