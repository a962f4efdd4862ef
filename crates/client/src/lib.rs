//! The Rust client of Turnbuckle: one channel, typed clients, and a publish that can be repeated.
//!
//! ```text
//!                 ┌── tenants() endpoints() keys() deliveries() …   generated, typed
//!  Client ────────┤
//!  one channel,   ├── publish(): event id first, then retries ──► Status ──► ApiError
//!  bearer token   └── create_endpoint() rotate_key() …: request id first       (readable)
//! ```
//!
//! ```no_run
//! use turnbuckle_client::{Client, ClientOptions, TokenSource, proto::Event};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect(ClientOptions {
//!     token: Some(TokenSource::File("/var/run/turnbuckle/token".into())),
//!     ..ClientOptions::new("http://127.0.0.1:7420")
//! })
//! .await?;
//! let event = Event {
//!     event_type: "order.paid".into(),
//!     data: r#"{"order": 1001}"#.into(),
//!     ..Event::default()
//! };
//! let accepted = client.publish("tenants/acme", event).await?;
//! assert!(!accepted.event_id.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! # Invariants
//! - `publish` never sends an event without an id, so a repeat after a lost answer cannot make a
//!   second event.
//! - Neither do the calls that create configuration or change keys send a request without one.
//! - A token file is read again when it changes; a rotated token needs no restart.
//! - Tokens appear in no `Debug` text and no error.

mod auth;
mod error;
mod options;
mod publish;
pub mod pull;
mod repeat;

pub use auth::{Auth, TokenError};
pub use error::{ApiError, FieldViolation};
pub use options::{ClientOptions, TokenSource};
pub use publish::{RetryLimits, is_retryable};
pub use turnbuckle_proto::v1 as proto;

use proto::{
    api_tokens_client::ApiTokensClient, audit_client::AuditClient,
    configuration_client::ConfigurationClient, deliveries_client::DeliveriesClient,
    endpoints_client::EndpointsClient, event_type_versions_client::EventTypeVersionsClient,
    event_types_client::EventTypesClient, events_client::EventsClient,
    key_rings_client::KeyRingsClient, key_tests_client::KeyTestsClient,
    keyring_client::KeyringClient, keys_client::KeysClient, nodes_client::NodesClient,
    pull_client::PullClient, receipts_client::ReceiptsClient, replays_client::ReplaysClient,
    retry_policies_client::RetryPoliciesClient, source_tests_client::SourceTestsClient,
    sources_client::SourcesClient, subscriptions_client::SubscriptionsClient,
    tenants_client::TenantsClient,
};
use std::time::Duration;
use tonic::{
    service::interceptor::InterceptedService,
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint},
};

/// What the generated clients run on: the shared channel behind the interceptor.
pub type Transport = InterceptedService<Channel, Auth>;

/// Time to reach the server: a loaded one answers SYNs late, a wrong address never.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A half-open connection is noticed after this much silence plus as much again.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Largest answer read: a page of 1,000 events is below it, and a wrong peer cannot exhaust memory.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL is no `http` or `https` URL.
    #[error("{0:?} is no server URL; use http://host:port or https://host:port")]
    InvalidUrl(String),
    /// The token cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// Nobody answers there.
    #[error("cannot reach {url}")]
    Unreachable {
        /// Where.
        url: String,
        /// What the network said.
        #[source]
        cause: tonic::transport::Error,
    },
}

/// A connected client. Cloning is cheap and shares the channel.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    auth: Auth,
    retry: RetryLimits,
}

macro_rules! accessors {
    ($($(#[$doc:meta])* $name:ident: $client:ident;)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(&self) -> $client<Transport> {
                $client::with_interceptor(self.channel.clone(), self.auth.clone())
                    .max_decoding_message_size(MAX_ANSWER_BYTES)
            }
        )*
    };
}

impl Client {
    /// Connects, so that a wrong address shows here and not in the first call.
    ///
    /// # Errors
    /// When the URL or the token cannot be used, or nobody answers.
    pub async fn connect(options: ClientOptions) -> Result<Self, ConnectError> {
        let auth = Auth::new(options.token, options.deadline)?;
        let channel = endpoint(&options.url, options.ca_pem.as_deref())?
            .connect()
            .await
            .map_err(|cause| ConnectError::Unreachable { url: options.url, cause })?;
        Ok(Self { channel, auth, retry: options.retry })
    }

    /// Makes a client that connects when it is first used, and again whenever it has to: for
    /// processes that outlive the server.
    ///
    /// # Errors
    /// When the URL or the token cannot be used.
    pub fn connect_lazy(options: ClientOptions) -> Result<Self, ConnectError> {
        let auth = Auth::new(options.token, options.deadline)?;
        let channel = endpoint(&options.url, options.ca_pem.as_deref())?.connect_lazy();
        Ok(Self { channel, auth, retry: options.retry })
    }

    accessors! {
        /// Sources.
        sources: SourcesClient;
        /// Tests of sources.
        source_tests: SourceTestsClient;
        /// What the ingress decided, request by request.
        receipts: ReceiptsClient;
        /// Tenants.
        tenants: TenantsClient;
        /// Event types.
        event_types: EventTypesClient;
        /// Versions of event types, with their schemas.
        event_type_versions: EventTypeVersionsClient;
        /// Endpoints.
        endpoints: EndpointsClient;
        /// Subscriptions.
        subscriptions: SubscriptionsClient;
        /// Retry policies.
        retry_policies: RetryPoliciesClient;
        /// Signing keys of endpoints.
        keys: KeysClient;
        /// API tokens.
        api_tokens: ApiTokensClient;
        /// Where rotations of signing keys stand.
        key_rings: KeyRingsClient;
        /// Tests of signing keys.
        key_tests: KeyTestsClient;
        /// Key-encryption keys of stored secrets.
        keyring: KeyringClient;
        /// The record of configuration changes.
        audit: AuditClient;
        /// The stream that nodes follow.
        configuration: ConfigurationClient;
        /// Nodes, and by which configuration they work.
        nodes: NodesClient;
        /// Events: publish and read. See also [`Client::publish`].
        events: EventsClient;
        /// Deliveries and their attempts.
        deliveries: DeliveriesClient;
        /// Replays: what a filter chooses is sent again.
        replays: ReplaysClient;
        /// Deliveries of pull endpoints, message by message. See also [`Client::consumer`].
        pulls: PullClient;
    }
}

impl Client {
    /// For calls whose messages are known at run time only. Bring your own codec.
    #[must_use]
    pub fn grpc(&self) -> tonic::client::Grpc<Transport> {
        tonic::client::Grpc::new(InterceptedService::new(self.channel.clone(), self.auth.clone()))
            .max_decoding_message_size(MAX_ANSWER_BYTES)
    }
}

fn endpoint(url: &str, ca_pem: Option<&[u8]>) -> Result<Endpoint, ConnectError> {
    let invalid = || ConnectError::InvalidUrl(url.to_owned());
    let secure = url.starts_with("https://");
    if !secure && !url.starts_with("http://") {
        return Err(invalid());
    }
    let endpoint = Endpoint::from_shared(url.to_owned())
        .map_err(|_| invalid())?
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    if secure {
        let mut tls = ClientTlsConfig::new().with_enabled_roots();
        if let Some(pem) = ca_pem {
            tls = tls.ca_certificate(Certificate::from_pem(pem));
        }
        return endpoint.tls_config(tls).map_err(|_| invalid());
    }
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_and_https_urls_are_servers() {
        for good in ["http://127.0.0.1:7420", "https://turnbuckle.example", "http://[::1]:7420"] {
            assert!(endpoint(good, None).is_ok(), "{good}");
        }
        for bad in ["", "127.0.0.1:7420", "ftp://example.org", "http://", "http:// x"] {
            assert!(endpoint(bad, None).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn an_address_where_nobody_listens_is_named_in_the_error() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let error =
            Client::connect(ClientOptions::new(format!("http://{address}"))).await.unwrap_err();
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
}
