//! The stage: receivers, and everything registered over gRPC.

use super::{
    ledger::{FLAKY, HEALTHY, Seen},
    payloads,
    receiver::{Receiver, Script},
};
use anyhow::Context as _;
use prost_types::Duration;
use tokio::sync::mpsc;
use turnbuckle_client::{Client, ClientOptions, TokenSource};
use turnbuckle_proto::v1;

/// The demo's tenant.
pub(super) const TENANT: &str = "demo";
/// `tenants/demo`.
pub(super) const PARENT: &str = "tenants/demo";
/// Label of the key an endpoint is created with.
pub(super) const OLD_KEY: &str = "old key";
/// Label of the key after the rotation.
pub(super) const NEW_KEY: &str = "new key";

/// First delay of the demo's retry policy; it doubles. Short, so that the demo is.
pub(super) const FIRST_DELAY: std::time::Duration = std::time::Duration::from_millis(300);
/// Longest delay of the demo's retry policy.
pub(super) const MAX_DELAY: std::time::Duration = std::time::Duration::from_secs(2);

const RETRY_POLICY: &str = "quick";
/// More than the four attempts the flaky receiver needs, so that a broken retry shows as such.
const MAX_ATTEMPTS: i32 = 8;
/// Reports that may wait for the printer; the whole demo makes about thirty.
const REPORTS_MAX: usize = 256;

/// An endpoint and the receiver behind it.
#[derive(Debug)]
pub(super) struct Actor {
    /// `tenants/demo/endpoints/…`.
    pub(super) name: String,
    pub(super) receiver: Receiver,
}

/// Everything the story needs.
pub(super) struct Stage {
    pub(super) client: Client,
    pub(super) healthy: Actor,
    pub(super) flaky: Actor,
    pub(super) reports: mpsc::Receiver<Seen>,
}

/// Starts the receivers and registers tenant, event types, retry policy, endpoints and
/// subscriptions.
pub(super) async fn prepare(api_url: &str, token: &str) -> anyhow::Result<Stage> {
    let client = Client::connect(ClientOptions {
        token: Some(TokenSource::Text(token.to_owned())),
        ..ClientOptions::new(api_url)
    })
    .await?;
    create_catalogue(&client).await?;
    let (sender, reports) = mpsc::channel(REPORTS_MAX);
    let healthy = create_actor(&client, HEALTHY, Script::Healthy, sender.clone()).await?;
    let flaky = create_actor(&client, FLAKY, Script::Flaky, sender).await?;
    subscribe(&client, "everything", &healthy.name, "*").await?;
    subscribe(&client, "orders", &flaky.name, "order.*").await?;
    Ok(Stage { client, healthy, flaky, reports })
}

async fn create_catalogue(client: &Client) -> anyhow::Result<()> {
    let tenant = v1::Tenant { display_name: "Demo".to_owned(), ..Default::default() };
    let request = v1::CreateTenantRequest {
        tenant_id: TENANT.to_owned(),
        tenant: Some(tenant),
        ..Default::default()
    };
    client.tenants().create_tenant(request).await.context("create the tenant")?;
    for event_type in payloads::TYPES {
        let request = v1::CreateEventTypeRequest {
            parent: PARENT.to_owned(),
            event_type_id: event_type.to_owned(),
            event_type: None,
            ..Default::default()
        };
        client.event_types().create_event_type(request).await.context("create an event type")?;
    }
    let backoff = v1::ExponentialBackoff {
        first_delay: Some(millis(FIRST_DELAY)),
        factor: 2.0,
        max_delay: Some(millis(MAX_DELAY)),
    };
    let policy = v1::RetryPolicy {
        backoff: Some(v1::retry_policy::Backoff::Exponential(backoff)),
        jitter: v1::Jitter::Equal.into(),
        max_attempts: MAX_ATTEMPTS,
        ..Default::default()
    };
    let request = v1::CreateRetryPolicyRequest {
        parent: PARENT.to_owned(),
        retry_policy_id: RETRY_POLICY.to_owned(),
        retry_policy: Some(policy),
        ..Default::default()
    };
    client.retry_policies().create_retry_policy(request).await.context("create the policy")?;
    Ok(())
}

async fn create_actor(
    client: &Client,
    id: &'static str,
    script: Script,
    reports: mpsc::Sender<Seen>,
) -> anyhow::Result<Actor> {
    let receiver = Receiver::start(id, script, reports).await.context("start a receiver")?;
    let http = v1::HttpTarget { url: receiver.url(), ..Default::default() };
    let endpoint = v1::Endpoint {
        target: Some(v1::endpoint::Target::Http(http)),
        retry_policy: format!("{PARENT}/retryPolicies/{RETRY_POLICY}"),
        ..Default::default()
    };
    let request = v1::CreateEndpointRequest {
        parent: PARENT.to_owned(),
        endpoint_id: id.to_owned(),
        endpoint: Some(endpoint),
        secret: String::new(),
        ..Default::default()
    };
    let created = client.endpoints().create_endpoint(request).await;
    let created = created.context("create an endpoint")?.into_inner();
    receiver.learn(OLD_KEY, &created.signing_secret).context("the endpoint's secret")?;
    Ok(Actor { name: created.name, receiver })
}

async fn subscribe(client: &Client, id: &str, endpoint: &str, pattern: &str) -> anyhow::Result<()> {
    let subscription = v1::Subscription {
        endpoint: endpoint.to_owned(),
        event_types: vec![pattern.to_owned()],
        ..Default::default()
    };
    let request = v1::CreateSubscriptionRequest {
        parent: PARENT.to_owned(),
        subscription_id: id.to_owned(),
        subscription: Some(subscription),
        ..Default::default()
    };
    client.subscriptions().create_subscription(request).await.context("subscribe")?;
    Ok(())
}

/// Both delays are far inside the range of the wire form.
fn millis(duration: std::time::Duration) -> Duration {
    Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
    }
}
