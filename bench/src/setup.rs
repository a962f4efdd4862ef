//! Registers tenant, types, endpoints and subscriptions of a run.

use crate::targets::Targets;
use anyhow::Context as _;
use turnbuckle_client::{Client, ClientOptions};
use turnbuckle_proto::v1;

/// Creates everything under a tenant of this name and gives `tenants/{tenant}`.
pub(crate) async fn register(
    url: &str,
    tenant: &str,
    targets: Targets,
    ports: &[u16],
    endpoint_in_flight: u16,
) -> anyhow::Result<String> {
    let client = Client::connect(ClientOptions::new(url)).await?;
    let request = v1::CreateTenantRequest {
        tenant_id: tenant.to_owned(),
        tenant: None,
        ..Default::default()
    };
    let created = client.tenants().create_tenant(request).await.context("create a tenant")?;
    let parent = created.into_inner().name;
    let types = targets.event_types();
    for event_type in &types {
        let request = v1::CreateEventTypeRequest {
            parent: parent.clone(),
            event_type_id: event_type.clone(),
            event_type: None,
            ..Default::default()
        };
        let created = client.event_types().create_event_type(request).await;
        created.context("create an event type")?;
    }
    for (index, port) in ports.iter().enumerate() {
        let endpoint = create_endpoint(&client, &parent, index, *port, endpoint_in_flight).await?;
        let event_type = if targets.fan_out { &types[0] } else { &types[index] };
        subscribe(&client, &parent, index, endpoint, event_type.clone()).await?;
    }
    Ok(parent)
}

async fn create_endpoint(
    client: &Client,
    parent: &str,
    index: usize,
    port: u16,
    in_flight: u16,
) -> anyhow::Result<String> {
    let target = v1::HttpTarget { url: format!("http://127.0.0.1:{port}/"), ..Default::default() };
    let endpoint = v1::Endpoint {
        target: Some(v1::endpoint::Target::Http(target)),
        max_in_flight: i32::from(in_flight),
        ..Default::default()
    };
    let request = v1::CreateEndpointRequest {
        parent: parent.to_owned(),
        endpoint_id: format!("e{index}"),
        endpoint: Some(endpoint),
        secret: String::new(),
        ..Default::default()
    };
    let created = client.endpoints().create_endpoint(request).await;
    Ok(created.context("create an endpoint")?.into_inner().name)
}

async fn subscribe(
    client: &Client,
    parent: &str,
    index: usize,
    endpoint: String,
    event_type: String,
) -> anyhow::Result<()> {
    let subscription =
        v1::Subscription { endpoint, event_types: vec![event_type], ..Default::default() };
    let request = v1::CreateSubscriptionRequest {
        parent: parent.to_owned(),
        subscription_id: format!("s{index}"),
        subscription: Some(subscription),
        ..Default::default()
    };
    client.subscriptions().create_subscription(request).await.context("subscribe")?;
    Ok(())
}
