//! The control plane: gRPC services for configuration, and their use cases.
//!
//! ```text
//!  request ──► convert (wire → command, every violation at once)
//!                 │
//!                 ▼                       ┌─ ConfigStore  rows, revision by revision
//!              use case ─── enter tenant ─┼─ SecretSealer keys at rest
//!                 │                       ├─ TargetPolicy which URLs may be stored
//!                 ▼                       └─ Propagation  wait until this process uses the change
//!  answer ◄── convert (row → wire, cannot fail)
//! ```
//!
//! A handler has three lines: decode, use case, encode. Whether a role may call a method at all is
//! decided by a layer in front, from the proto's method options; whether the caller may touch this
//! tenant is decided here, in every use case, before anything is read.
//!
//! # Invariants
//! - The tenant is entered before it is looked up, so that tenants cannot be probed (I12).
//! - A reference is resolved inside the tenant of the row that holds it (I12).
//! - A write that changes nothing makes no revision and no audit entry.
//! - A request that is only validated takes the same way as a real one and leaves no trace.
//! - A write is answered after this process uses it, so that the next publish sees it.
//! - An etag, when sent, must be current; verbs on keys always need one, so that two admins cannot
//!   lose a key (I14).
//! - No token is made with more rights, or for longer, than the caller's own.
//! - A secret leaves once, in the answer of the call that made it, and of repeats of that call by the
//!   same caller for some minutes; it is in no error and no log (I7).
//! - A request with an id of its own makes one thing, however often it is sent.

mod api_token;
mod audit;
mod by;
mod configuration;
mod convert;
mod dependencies;
mod endpoint;
mod event_type;
mod event_type_version;
mod grpc;
mod headers;
mod kept;
mod key_learning;
mod key_material;
mod key_owner;
mod key_pause;
mod key_propagation;
mod key_reveal;
mod key_ring;
mod key_status;
mod key_upkeep;
mod keyring;
mod names;
mod node;
mod page;
mod preset_settings;
mod receipt;
mod repeat;
mod retry_policy;
mod source;
mod source_preset;
mod source_state;
mod subscription;
mod sweep;
mod target;
mod tenant;
mod verification;
mod write;

pub use configuration::{Distribution, DistributionParts};
pub use convert::scheme_message;
pub use dependencies::Dependencies;
pub use key_learning::KeyLearner;
pub use key_upkeep::KeyUpkeep;
pub use sweep::{Sweeper, Swept};

use std::sync::Arc;
use tonic::service::RoutesBuilder;
use turnbuckle_proto::v1::{
    api_tokens_server::ApiTokensServer, audit_server::AuditServer,
    configuration_server::ConfigurationServer, endpoints_server::EndpointsServer,
    event_type_versions_server::EventTypeVersionsServer, event_types_server::EventTypesServer,
    key_rings_server::KeyRingsServer, keyring_server::KeyringServer, keys_server::KeysServer,
    nodes_server::NodesServer, receipts_server::ReceiptsServer,
    retry_policies_server::RetryPoliciesServer, sources_server::SourcesServer,
    subscriptions_server::SubscriptionsServer, tenants_server::TenantsServer,
};

/// Largest request read. The largest valid one is an endpoint with 32 headers of 4 KiB.
const REQUEST_BYTES_MAX: usize = 256 * 1024;

/// The configuration services and their audit record.
pub struct ControlPlane {
    dependencies: Arc<Dependencies>,
    distribution: Arc<Distribution>,
}

impl ControlPlane {
    /// Builds the services on these ports.
    #[must_use]
    pub fn new(dependencies: Dependencies, distribution: Arc<Distribution>) -> Self {
        Self { dependencies: Arc::new(dependencies), distribution }
    }

    /// What is to be done with keys now and then, without a caller.
    #[must_use]
    pub fn key_upkeep(&self) -> KeyUpkeep {
        KeyUpkeep::new(Arc::clone(&self.dependencies))
    }

    /// Adds the services to a server's routes.
    pub fn add_to(self, routes: &mut RoutesBuilder) {
        let on = || Arc::clone(&self.dependencies);
        let limit = REQUEST_BYTES_MAX;
        let distribution = || Arc::clone(&self.distribution);
        routes
            .add_service(
                ConfigurationServer::new(grpc::configuration::Service::new(distribution()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                NodesServer::new(grpc::node::Service::new(distribution(), on()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                TenantsServer::new(grpc::tenant::Service::new(on()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                EventTypesServer::new(grpc::event_type::Service::new(on()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                EventTypeVersionsServer::new(grpc::event_type_version::Service::new(on()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                EndpointsServer::new(grpc::endpoint::Service::new(on()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                SubscriptionsServer::new(grpc::subscription::Service::new(on()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                RetryPoliciesServer::new(grpc::retry_policy::Service::new(on()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                KeysServer::new(grpc::key_ring::Service::new(on()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                SourcesServer::new(grpc::source::Service::new(on()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                ReceiptsServer::new(grpc::receipt::Service::new(on()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                ApiTokensServer::new(grpc::api_token::Service::new(on()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                KeyRingsServer::new(grpc::key_status::Service::new(on()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                KeyringServer::new(grpc::keyring::Service::new(on()))
                    .max_decoding_message_size(limit),
            )
            .add_service(
                AuditServer::new(grpc::audit::Service::new(on())).max_decoding_message_size(limit),
            );
    }
}
