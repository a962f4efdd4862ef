//! Endpoints that the service disables, and what the tenant is told of it.

use crate::unix_now;
use std::time::Duration;
use turnbuckle_proto::v1::{
    CreateSubscriptionRequest, DeliveryState, Endpoint, GetEndpointRequest, ListEventsRequest,
    Subscription,
};
use turnbuckle_signing::{Profile, VerifyOptions, VerifyingKey, verify};
use turnbuckle_testkit::receiver::{Answer, Receiver, Script};
use turnbuckle_tests::{PATIENCE, Scene, Server, StoreKind, eventually, http_endpoint};

on_both_stores!(
    an_answer_410_disables_the_endpoint_and_the_tenant_is_told_once,
    a_failing_operations_endpoint_makes_no_further_events,
);

/// An endpoint for operational events only.
async fn operations(scene: &Scene, url: &str, policy: String) -> anyhow::Result<Endpoint> {
    let endpoint = Endpoint { retry_policy: policy, ..http_endpoint(url) };
    let endpoint = scene.create_endpoint("ops", endpoint).await?;
    let request = CreateSubscriptionRequest {
        parent: scene.tenant.clone(),
        subscription_id: "ops".into(),
        subscription: Some(Subscription {
            endpoint: endpoint.name.clone(),
            event_types: vec!["turnbuckle.*".into()],
            ..Subscription::default()
        }),
        ..Default::default()
    };
    scene.client.subscriptions().create_subscription(request).await?;
    Ok(endpoint)
}

/// Waits until the endpoint is disabled; answers why.
async fn disabled(scene: &Scene, endpoint: &Endpoint) -> anyhow::Result<String> {
    eventually("the endpoint is disabled", async || {
        let request = GetEndpointRequest { name: endpoint.name.clone(), ..Default::default() };
        let found = scene.client.endpoints().get_endpoint(request).await?.into_inner();
        Ok(Some(found.disable_reason).filter(|reason| !reason.is_empty()))
    })
    .await
}

async fn an_answer_410_disables_the_endpoint_and_the_tenant_is_told_once(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let told = Receiver::start(Script::default()).await?;
    let ops = operations(&scene, &told.url("/"), String::new()).await?;
    let script = Script::sequence([Answer::status(410), Answer::status(200)]);
    let receiver = Receiver::start(script).await?;
    let endpoint = scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let event = scene.publish("e1", "{}").await?.name;
    let delivery = scene.ended(&event, DeliveryState::Dead).await?;
    assert_eq!(delivery.reason, "ENDPOINT_GONE");
    assert_eq!(disabled(&scene, &endpoint).await?, "the receiver answered 410 Gone");

    let request = told.wait_for(1, PATIENCE).await?.remove(0);
    let notice: serde_json::Value = serde_json::from_slice(&request.body)?;
    assert_eq!(notice["event_type"], "turnbuckle.endpoint.disabled");
    assert_eq!(notice["source"], "operations");
    assert_eq!(notice["data"]["endpoint"], "shop");
    assert_eq!(notice["data"]["cause"], "gone");
    let key = VerifyingKey::parse(&ops.signing_secret)?;
    let options = VerifyOptions::at(unix_now());
    verify(Profile::StandardWebhooks, &[key], &request.headers, &request.body, &options)?;

    // The old answer does not disable it again, after a restart neither.
    scene.enable(&endpoint).await?;
    server.kill().await?;
    let server = Server::start_in(server.home(), &[]).await?;
    let scene = Scene::of(&server).await?;
    let event = scene.publish("e2", "{}").await?.name;
    scene.ended(&event, DeliveryState::Delivered).await?;
    assert_eq!(told.count(), 1);
    server.stop().await
}

async fn a_failing_operations_endpoint_makes_no_further_events(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let policy = scene.delays("short", &[Duration::from_millis(20)], 3).await?;
    let failing = Receiver::start(Script::always(Answer::status(500))).await?;
    operations(&scene, &failing.url("/"), policy).await?;
    let receiver = Receiver::start(Script::always(Answer::status(410))).await?;
    let endpoint = scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    scene.publish("e1", "{}").await?;
    disabled(&scene, &endpoint).await?;
    failing.wait_for(3, PATIENCE).await?;
    scene.drained().await?;
    let request = ListEventsRequest { parent: scene.tenant.clone(), ..Default::default() };
    let events = scene.client.events().list_events(request).await?.into_inner().events;
    let own = events.iter().filter(|event| event.source == "operations").count();
    assert_eq!((own, failing.count()), (1, 3), "one event, tried as its policy says");
    server.stop().await
}
