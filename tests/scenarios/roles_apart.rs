//! Roles in processes of their own, joined by the configuration stream: the work of each, restarts,
//! and rolling from one of each to three.

use std::{sync::Arc, time::Duration};
use tonic::Code;
use turnbuckle_proto::v1::{
    DeliveryState, Endpoint, ListNodesRequest, Node, RotateKeyRequest, WatchRequest,
    watch_response::Message,
};
use turnbuckle_signing::{Profile, VerifyOptions, VerifyingKey, verify};
use turnbuckle_testkit::{
    ledger::Ledger,
    receiver::{Received, Receiver, Script},
};
use turnbuckle_tests::{
    Apart, Load, PATIENCE, Scene, Server, eventually, home::run_ok, http, http_endpoint,
    scene::proto,
};

use crate::unix_now;

fn signed_by(request: &Received, secret: &str) -> anyhow::Result<bool> {
    let key = VerifyingKey::parse(secret)?;
    let options = VerifyOptions::at(unix_now());
    let verified =
        verify(Profile::StandardWebhooks, &[key], &request.headers, &request.body, &options);
    Ok(verified.is_ok())
}

/// Runs the command line against the control plane as an administrator.
fn says(apart: &Apart, line: &[&str]) -> anyhow::Result<String> {
    let server = format!("http://{}", apart.control.api);
    let token = apart.home.token("admin", None)?;
    run_ok(&[&["--server", &server, "--token", &token], line].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_work_by_what_the_control_plane_is_told() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let delivery = apart.node("delivery", "web-1").await?;
    let ingress = apart.node("ingress", "door-1").await?;
    let receiver = Receiver::start(Script::default()).await?;
    let config = apart.scene().await?;
    let endpoint = config.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    apart.applied(2).await?;
    let traffic = Scene::of(&delivery).await?;
    let published = traffic.publish("e1", r#"{"paid": true}"#).await?;
    let request = &receiver.wait_for(1, PATIENCE).await?[0];
    assert_eq!(request.header("webhook-id"), Some(published.event_id.as_str()));
    assert!(signed_by(request, &endpoint.signing_secret)?);
    for server in [&apart.control, &delivery, &ingress] {
        assert_eq!(http::get(server.admin, "/readyz").await?.status, 200);
    }
    let listed = says(&apart, &["node", "list", "-o", "name"])?;
    assert_eq!(listed, "nodes/delivery.web-1\nnodes/ingress.door-1");
    let node = apart.node_of("delivery.web-1").await?.expect("it was listed");
    assert!(node.live && node.lag == 0 && node.refused.is_empty() && node.held.is_none());
    says(&apart, &["config", "wait", "--within", "20s"])?;
    assert!(says(&apart, &["node", "get", "delivery.web-1"])?.contains("delivery.web-1"));
    // Every process is stopped by one signal, streams included.
    delivery.stop().await?;
    ingress.stop().await?;
    apart.control.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_is_used_by_the_next_delivery_under_traffic() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let delivery = apart.node("delivery", "web-1").await?;
    let receiver = Receiver::start(Script::default()).await?;
    let config = apart.scene().await?;
    let endpoint = config.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    apart.applied(1).await?;
    let traffic = Scene::of(&delivery).await?;
    let ledger = Arc::new(Ledger::default());
    let mut load = Load::start(&traffic, &ledger, "load", 2, usize::MAX);
    load.acknowledged(10).await?;
    let rotate = RotateKeyRequest {
        parent: endpoint.name.clone(),
        etag: config.ring(&endpoint).await?.etag,
        overlap: Some(proto(Duration::from_secs(3600))),
        ..RotateKeyRequest::default()
    };
    let new = config.client.keys().rotate_key(rotate).await?.into_inner().secret;
    apart.applied(1).await?;
    let next = traffic.publish("next", "{}").await?;
    let is_next = |request: &&Received| request.header("webhook-id") == Some(&next.event_id);
    let found = receiver.wait_until(PATIENCE, |all| all.iter().any(|one| is_next(&one))).await?;
    let request = found.iter().find(is_next).expect("waited for");
    assert!(signed_by(request, &new)?, "the next delivery is not signed by the new key");
    load.stop().await;
    let complete = |received: &[Received]| ledger.audit(received).lost.is_empty();
    for request in &receiver.wait_until(PATIENCE, complete).await? {
        let known = signed_by(request, &new)? || signed_by(request, &endpoint.signing_secret)?;
        assert!(known, "a request was signed by neither key");
    }
    Ok(())
}

/// A node gets its own part, and only with a token of its own.
#[tokio::test(flavor = "multi_thread")]
async fn the_token_decides_what_a_node_gets() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let config = apart.scene().await?;
    config.raw("shop", http_endpoint("http://127.0.0.1:9/")).await?;
    let watch = async |token: String, node: &str, role: i32| {
        let client = apart.control.client_with(Some(token)).await?;
        let request = WatchRequest { node: node.into(), role, ..WatchRequest::default() };
        anyhow::Ok(client.configuration().watch(request).await)
    };
    let (delivery, ingress) = (1, 2);
    let token = |subject: &str, tenant| apart.home.token_of(subject, "node", tenant);
    for (token, node, role) in [
        (token("ingress", None)?, "web-1", delivery),
        (token("delivery", None)?, "door-1", ingress),
        (token("delivery/web-1", None)?, "web-2", delivery),
        (token("delivery", Some("acme"))?, "web-1", delivery),
        (token("tester", None)?, "web-1", delivery),
        (apart.home.token("admin", None)?, "web-1", delivery),
        (apart.home.token("operator", None)?, "web-1", delivery),
    ] {
        let refused = watch(token, node, role).await?;
        assert_eq!(refused.err().map(|status| status.code()), Some(Code::PermissionDenied));
    }
    let mut stream = watch(token("ingress/door-1", None)?, "door-1", ingress).await??.into_inner();
    let mut resources = 0;
    loop {
        match stream.message().await?.and_then(|message| message.message) {
            Some(Message::SnapshotChunk(chunk)) => resources += chunk.resources.len(),
            Some(Message::SnapshotEnd(end)) => break assert_eq!(end.count, 1),
            Some(_) => {}
            None => anyhow::bail!("the stream ended early"),
        }
    }
    assert_eq!(resources, 1, "an ingress gets the tenant, and no endpoint and no key");
    // Tenants do not see nodes, which serve all of them.
    let bound = apart.control.client_with(Some(apart.home.token("viewer", Some("acme"))?)).await?;
    let refused = bound.nodes().list_nodes(ListNodesRequest::default()).await;
    assert_eq!(refused.err().map(|status| status.code()), Some(Code::PermissionDenied));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_is_restarted_and_the_work_goes_on() -> anyhow::Result<()> {
    let mut apart = or_skip!(Apart::start().await?);
    let mut delivery = apart.node("delivery", "web-1").await?;
    let ingress = apart.node("ingress", "door-1").await?;
    let receiver = Receiver::start(Script::default()).await?;
    let endpoint = apart.scene().await?.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    apart.applied(2).await?;
    Scene::of(&delivery).await?.publish("e1", "{}").await?;
    receiver.wait_for(1, PATIENCE).await?;
    // The control plane: nodes find the new one.
    apart.control.stop().await?;
    Scene::of(&delivery).await?.publish("e2", "{}").await?;
    apart.restart_control().await?;
    let config = Scene::of(&apart.control).await?;
    config.disable(&endpoint).await?;
    apart.applied(2).await?;
    assert_eq!(Scene::of(&delivery).await?.publish("e3", "{}").await?.deliveries, 0);
    config.enable(&endpoint).await?;
    // The node: it comes back with its file and is told what it missed.
    delivery.stop().await?;
    delivery = apart.node("delivery", "web-1").await?;
    delivery.logged("begins with the last-known-good configuration").await?;
    apart.applied(2).await?;
    Scene::of(&delivery).await?.publish("e4", "{}").await?;
    ingress.stop().await?;
    let ingress = apart.node("ingress", "door-1").await?;
    apart.applied(2).await?;
    assert_eq!(http::get(ingress.admin, "/readyz").await?.status, 200);
    let received = receiver.wait_until(PATIENCE, |all| distinct(all) == 3).await?;
    assert_eq!(distinct(&received), 3);
    Ok(())
}

fn distinct(received: &[Received]) -> usize {
    let ids: std::collections::HashSet<_> =
        received.iter().filter_map(|request| request.header("webhook-id")).collect();
    ids.len()
}

/// From one control plane and one delivery node to three of each, one at a time, and the first ones
/// away, while events are published: everything acknowledged arrives.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_each_becomes_three_of_each_under_load() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let first = apart.node("delivery", "web-1").await?;
    let receiver = Receiver::start(Script::default()).await?;
    let config = apart.scene().await?;
    for number in 0..6 {
        let endpoint =
            Endpoint { max_in_flight: 4, ..http_endpoint(&receiver.url(&format!("/{number}"))) };
        config.raw(&format!("e{number}"), endpoint).await?;
    }
    apart.applied(1).await?;
    let ledger = Arc::new(Ledger::default());
    let mut before = Load::start(&Scene::of(&first).await?, &ledger, "first", 2, usize::MAX);
    before.acknowledged(10).await?;
    let second = apart.node("delivery", "web-2").await?;
    let third = apart.node("delivery", "web-3").await?;
    let spare = [apart.another_control().await?, apart.another_control().await?];
    apart.applied(3).await?;
    let mut after = Load::start(&Scene::of(&third).await?, &ledger, "third", 2, usize::MAX);
    after.acknowledged(10).await?;
    before.stop().await;
    first.stop().await?;
    // A change made at one control plane reaches nodes that follow another one.
    let elsewhere = Scene::of(&spare[0]).await?;
    let seventh = elsewhere.raw("e6", http_endpoint(&receiver.url("/6"))).await?;
    apart.applied(2).await?;
    apart.control.stop().await?;
    apart.link.lead_to(spare[1].api);
    let disabled = Scene::of(&spare[0]).await?;
    disabled.disable(&seventh).await?;
    let traffic = Scene::of(&second).await?;
    let mut number = 0;
    eventually("nodes follow the control plane that is left", async || {
        number += 1;
        let published = traffic.publish(&format!("probe-{number}"), "{}").await?;
        Ok((published.deliveries == 6).then_some(()))
    })
    .await?;
    after.stop().await;
    let complete = |received: &[Received]| {
        (0..6).all(|number| {
            let path = format!("/{number}");
            ledger.audit(received.iter().filter(|one| one.path == path)).lost.is_empty()
        })
    };
    receiver.wait_until(PATIENCE, complete).await?;
    traffic.drained().await?;
    assert_eq!(traffic.count(DeliveryState::Dead).await?, 0);
    third.stop().await
}

/// In one process the same port stays inside, and the process is a node like any other.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_of_all_roles_is_a_node_too() -> anyhow::Result<()> {
    let server = or_skip!(
        Server::start(turnbuckle_tests::StoreKind::Embedded, &["--node-name", "solo"]).await?
    );
    let scene = Scene::set(&server).await?;
    scene.raw("shop", http_endpoint("http://127.0.0.1:9/")).await?;
    let request = ListNodesRequest { live: true };
    eventually("the process reports its revision", async || {
        let list = scene.client.nodes().list_nodes(request).await?.into_inner();
        let names: Vec<&str> = list.nodes.iter().map(|node| node.name.as_str()).collect();
        let has_all = names == ["nodes/delivery.solo", "nodes/ingress.solo"];
        let is_current = |node: &Node| node.lag == 0 && node.applied_revision == list.revision;
        Ok((has_all && list.nodes.iter().all(is_current)).then_some(()))
    })
    .await
}
