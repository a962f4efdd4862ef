//! Endpoints that are disabled, deleted or moved while events are on their way.

use std::{sync::Arc, time::Duration};
use turnbuckle_proto::v1::{
    DeleteEndpointRequest, DeliveryState, Endpoint, ListDeliveriesRequest, UpdateEndpointRequest,
};
use turnbuckle_testkit::{
    ledger::Ledger,
    receiver::{Answer, Receiver, Script},
};
use turnbuckle_tests::{Load, PATIENCE, Scene, Server, StoreKind, http_endpoint};

on_both_stores!(
    nothing_leaves_for_an_endpoint_once_disable_has_returned,
    nothing_leaves_for_an_endpoint_once_delete_has_returned,
    deliveries_that_wait_go_to_the_new_url,
    waiting_retries_of_a_disabled_endpoint_are_cancelled,
);

const SLOTS: i32 = 4;

struct Flow {
    server: Server,
    receiver: Receiver,
    scene: Scene,
    endpoint: Endpoint,
    ledger: Arc<Ledger>,
    load: Load,
}

impl Flow {
    /// An endpoint with a backlog, in the middle of it.
    async fn start(kind: StoreKind) -> anyhow::Result<Option<Self>> {
        let Some(server) = Server::start(kind, &[]).await? else { return Ok(None) };
        let slow = Answer::status(200).after(Duration::from_millis(20));
        let receiver = Receiver::start(Script::always(slow)).await?;
        let scene = Scene::set(&server).await?;
        let endpoint = Endpoint { max_in_flight: SLOTS, ..http_endpoint(&receiver.url("/")) };
        let endpoint = scene.raw("shop", endpoint).await?;
        let ledger = Arc::new(Ledger::default());
        let mut load = Load::start(&scene, &ledger, "e", 8, 300);
        load.acknowledged(150).await?;
        receiver.wait_for(20, PATIENCE).await?;
        Ok(Some(Self { server, receiver, scene, endpoint, ledger, load }))
    }

    /// Waits for the end of everything that was published and checks it against what left.
    async fn settles(&mut self, left_at_return: u64, reason: &str) -> anyhow::Result<()> {
        self.load.finish().await;
        self.scene.drained().await?;
        let received = self.receiver.count();
        let after = received - left_at_return;
        assert!(after <= SLOTS.unsigned_abs().into(), "{after} requests came after the answer");
        let deliveries = self.scene.deliveries(ListDeliveriesRequest::default()).await?;
        let of = |state| deliveries.iter().filter(move |delivery| delivery.state() == state);
        let delivered = u64::try_from(of(DeliveryState::Delivered).count())?;
        assert_eq!(delivered, received, "what left was delivered, and nothing else");
        assert!(of(DeliveryState::Cancelled).all(|delivery| delivery.reason == reason));
        assert!(of(DeliveryState::Cancelled).count() > 0, "the change came after the work");
        assert_eq!(of(DeliveryState::Dead).count(), 0);
        assert_eq!(self.ledger.audit(&self.receiver.received()).repeated(), 0);
        Ok(())
    }
}

async fn nothing_leaves_for_an_endpoint_once_disable_has_returned(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let mut flow = or_skip!(Flow::start(kind).await?);
    flow.scene.disable(&flow.endpoint).await?;
    let left = flow.receiver.count();
    flow.settles(left, "ENDPOINT_DISABLED").await?;
    assert_eq!(flow.scene.publish("while-disabled", "{}").await?.deliveries, 0);

    flow.scene.enable(&flow.endpoint).await?;
    let before = flow.receiver.count();
    let event = flow.scene.publish("after", "{}").await?;
    flow.scene.ended(&event.name, DeliveryState::Delivered).await?;
    assert_eq!(flow.receiver.count(), before + 1);
    flow.server.stop().await
}

async fn nothing_leaves_for_an_endpoint_once_delete_has_returned(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let mut flow = or_skip!(Flow::start(kind).await?);
    let request = DeleteEndpointRequest { name: flow.endpoint.name.clone(), etag: String::new() };
    flow.scene.client.endpoints().delete_endpoint(request).await?;
    let left = flow.receiver.count();
    flow.settles(left, "ENDPOINT_DELETED").await?;
    assert_eq!(flow.scene.publish("after", "{}").await?.deliveries, 0);
    flow.server.stop().await
}

async fn deliveries_that_wait_go_to_the_new_url(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let old = Receiver::start(Script::always(Answer::status(503))).await?;
    let new = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let retry_policy = scene.delays("steady", &[Duration::from_millis(200)], 100).await?;
    let endpoint = Endpoint { retry_policy, ..http_endpoint(&old.url("/")) };
    let endpoint = scene.raw("moves", endpoint).await?;
    let mut events = Vec::new();
    for number in 0..10 {
        events.push(scene.publish(&format!("e{number}"), "{}").await?.name);
    }
    old.wait_for(10, PATIENCE).await?;
    let moved = http_endpoint(&new.url("/"));
    let request = UpdateEndpointRequest {
        endpoint: Some(Endpoint { name: endpoint.name.clone(), ..moved }),
        update_mask: Some(prost_types::FieldMask { paths: vec!["http.url".into()] }),
        ..Default::default()
    };
    scene.client.endpoints().update_endpoint(request).await?;
    let at_return = old.count();
    for event in &events {
        scene.ended(event, DeliveryState::Delivered).await?;
    }
    // The ten had been tried: nothing can have been in flight for long, but something may have.
    assert!(old.count() <= at_return + 10, "the old URL is still used");
    assert_eq!(new.count(), 10);
    Ok(())
}

async fn waiting_retries_of_a_disabled_endpoint_are_cancelled(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::always(Answer::status(500))).await?;
    let scene = Scene::set(&server).await?;
    let retry_policy = scene.delays("hour", &[Duration::from_secs(3600)], 5).await?;
    let endpoint = Endpoint { retry_policy, ..http_endpoint(&receiver.url("/")) };
    let endpoint = scene.raw("fails", endpoint).await?;
    let event = scene.publish("e", "{}").await?.name;
    scene.tried(&event, 1).await?;
    scene.disable(&endpoint).await?;
    let delivery = scene.ended(&event, DeliveryState::Cancelled).await?;
    assert_eq!((delivery.attempts, delivery.reason.as_str()), (1, "ENDPOINT_DISABLED"));
    assert_eq!(receiver.count(), 1);
    Ok(())
}
