//! Roles apart, and something between them dies, hangs or lies.

use std::{collections::HashMap, time::Duration};
use tonic::Code;
use turnbuckle_proto::v1::{Endpoint, HttpTarget, ListEndpointsRequest, endpoint::Target};
use turnbuckle_testkit::{
    proxy::Proxy,
    receiver::{Received, Receiver, Script},
};
use turnbuckle_tests::{
    Apart, Home, PATIENCE, Scene, Server, StoreKind, eventually, home::run_ok, http, http_endpoint,
};

/// Endpoints of the scenarios about a snapshot that is held back: with their rings and subscriptions
/// far more than may go unasked.
const MANY: usize = 6;

async fn delivered(receiver: &Receiver, event_id: &str) -> anyhow::Result<()> {
    let is_it = |request: &Received| request.header("webhook-id") == Some(event_id);
    receiver.wait_until(PATIENCE, |all| all.iter().any(is_it)).await?;
    Ok(())
}

/// Publishes at a node and waits until it has arrived.
async fn goes_through(node: &Server, receiver: &Receiver, id: &str) -> anyhow::Result<()> {
    let published = Scene::of(node).await?.publish(id, "{}").await?;
    anyhow::ensure!(
        published.deliveries >= 1,
        "nothing matched: the node has lost its configuration"
    );
    delivered(receiver, &published.event_id).await
}

async fn stale(node: &Server, at_least: f64) -> anyhow::Result<()> {
    eventually("the node tells how old its configuration is", async || {
        let age = node.metric("turnbuckle_config_staleness_seconds").await?;
        Ok((age >= at_least).then_some(()))
    })
    .await
}

async fn fresh(node: &Server) -> anyhow::Result<()> {
    eventually("the configuration is fresh again", async || {
        let age = node.metric("turnbuckle_config_staleness_seconds").await?;
        Ok((age < 4.0).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_control_plane_a_node_works_on_and_even_starts() -> anyhow::Result<()> {
    let mut apart = or_skip!(Apart::start().await?);
    let mut node = apart.node("delivery", "web-1").await?;
    let receiver = Receiver::start(Script::default()).await?;
    let endpoint = apart.scene().await?.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    apart.applied(1).await?;
    apart.control.kill().await?;
    goes_through(&node, &receiver, "dead-control").await?;
    stale(&node, 2.0).await?;
    let readiness = http::get(node.admin, "/readyz").await?;
    assert_eq!(readiness.status, 200);
    assert!(readiness.body.contains(r#""connected":false"#), "{}", readiness.body);
    // Stopped, it has left its file; started, it begins with it.
    node.stop().await?;
    node = apart.node("delivery", "web-1").await?;
    assert_eq!(http::get(node.admin, "/readyz").await?.status, 200);
    goes_through(&node, &receiver, "from-the-file").await?;
    assert!(node.metric("turnbuckle_config_staleness_seconds").await? >= 2.0);
    // Even a power failure leaves the file of the last change.
    node.kill().await?;
    node = apart.node("delivery", "web-1").await?;
    goes_through(&node, &receiver, "after-a-kill").await?;
    apart.restart_control().await?;
    fresh(&node).await?;
    Scene::of(&apart.control).await?.disable(&endpoint).await?;
    apart.applied(1).await?;
    assert_eq!(Scene::of(&node).await?.publish("disabled", "{}").await?.deliveries, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn with_neither_file_nor_control_plane_a_node_is_not_ready_and_waits() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let receiver = Receiver::start(Script::default()).await?;
    apart.scene().await?.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    apart.link.cut();
    let node = apart.spawn_node("delivery", "web-1")?;
    let readiness = node.wait_for_line(PATIENCE, |line| {
        let rest = line.split("http://").nth(1)?;
        rest.split('/').next()?.parse().ok()
    });
    let admin = readiness.await?;
    let answer = http::get(admin, "/readyz").await?;
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("configuration"), "{}", answer.body);
    assert_eq!(http::get(admin, "/healthz").await?.status, 200);
    apart.link.heal();
    eventually("the node is ready", async || {
        Ok((http::get(admin, "/readyz").await?.status == 200).then_some(()))
    })
    .await?;
    apart.applied(1).await
}

/// A node that waits for its first configuration ends when it is told to.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_waits_can_be_stopped() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    apart.link.cut();
    let node = apart.spawn_node("ingress", "door-1")?;
    node.wait_for_line(PATIENCE, |line| line.contains("not ready").then_some(())).await?;
    node.signal(turnbuckle_testkit::process::Signal::Terminate)?;
    node.exit(PATIENCE).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_is_cut_or_hangs_heals_by_itself() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let node = apart.node("delivery", "web-1").await?;
    let receiver = Receiver::start(Script::default()).await?;
    let config = apart.scene().await?;
    let endpoint = config.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    apart.applied(1).await?;
    for (number, breaks) in [Proxy::cut as fn(&Proxy), Proxy::freeze].into_iter().enumerate() {
        breaks(&apart.link);
        config.disable(&endpoint).await?;
        // What the node does not know does not stop it, and what it does not hear deletes nothing.
        goes_through(&node, &receiver, &format!("cut-off-{number}")).await?;
        stale(&node, 2.0).await?;
        apart.link.heal();
        apart.applied(1).await?;
        let refused = Scene::of(&node).await?.publish(&format!("healed-{number}"), "{}").await?;
        assert_eq!(refused.deliveries, 0, "the change did not arrive");
        config.enable(&endpoint).await?;
        apart.applied(1).await?;
        goes_through(&node, &receiver, &format!("again-{number}")).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_control_planes_database_hangs_staleness_rises_and_nothing_is_lost()
-> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Postgres).await?);
    let proxy = Proxy::start(home.database_address()?).await?;
    // The node goes straight to the database, the control plane through the proxy.
    let beside = Home::database_url(&home);
    home.reach_database_by(proxy.address())?;
    let apart = Apart::start_in(&home).await?;
    let options = apart.node_options("delivery", "web-1")?;
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    let direct = beside.unwrap_or_default();
    options.extend(["--database-url", &direct]);
    let node = Server::start_in(&home, &options).await?;
    let receiver = Receiver::start(Script::default()).await?;
    let config = apart.scene().await?;
    config.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    apart.applied(1).await?;
    proxy.freeze();
    // No checkpoint without a read of the store.
    stale(&node, 7.0).await?;
    goes_through(&node, &receiver, "meanwhile").await?;
    proxy.heal();
    fresh(&node).await?;
    apart.applied(1).await?;
    config.raw("later", http_endpoint(&receiver.url("/later"))).await?;
    apart.applied(1).await?;
    assert_eq!(Scene::of(&node).await?.publish("both", "{}").await?.deliveries, 2);
    Ok(())
}

/// Somebody restores an empty database: nodes keep what they have until an operator says otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_would_wipe_a_node_waits_for_an_operator() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let node = apart.node("delivery", "web-1").await?;
    let receiver = Receiver::start(Script::default()).await?;
    let config = apart.scene().await?;
    for number in 0..MANY {
        config.raw(&format!("e{number}"), http_endpoint(&receiver.url("/"))).await?;
    }
    apart.applied(1).await?;
    apart
        .home
        .execute(
            "with gone as (update endpoint set deleted_at_us = 1 where slug <> 'e0' returning id),
                  along as (update subscription set deleted_at_us = 1
                            where endpoint_id in (select id from gone))
             update config_revision set epoch = gen_random_uuid()",
        )
        .await?;
    let held = eventually("the node holds the snapshot back", async || {
        Ok(apart.node_of("delivery.web-1").await?.and_then(|node| node.held))
    })
    .await?;
    assert!(held.removed * 2 > held.present, "{held:?}");
    let published = Scene::of(&node).await?.publish("held", "{}").await?;
    assert_eq!(published.deliveries, i32::try_from(MANY)?);
    delivered(&receiver, &published.event_id).await?;
    assert_eq!(node.metric("turnbuckle_config_held").await?, 1.0);
    let server = format!("http://{}", apart.control.api);
    let token = apart.home.token("operator", None)?;
    run_ok(&["--server", &server, "--token", &token, "node", "accept", "delivery.web-1"])?;
    apart.applied(1).await?;
    assert_eq!(Scene::of(&node).await?.publish("accepted", "{}").await?.deliveries, 1);
    assert_eq!(node.metric("turnbuckle_config_held").await?, 0.0);
    // Nothing is left to accept.
    let again =
        run_ok(&["--server", &server, "--token", &token, "node", "accept", "delivery.web-1"]);
    assert!(again.is_err());
    Ok(())
}

/// A backup is restored under running processes: revisions that nodes know come back with other
/// content, and are not taken for the ones they know.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_was_set_back_begins_another_epoch() -> anyhow::Result<()> {
    let mut apart = or_skip!(Apart::start().await?);
    let node = apart.node("delivery", "web-1").await?;
    let receiver = Receiver::start(Script::default()).await?;
    let config = apart.scene().await?;
    config.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    apart.applied(1).await?;
    let before = apart.nodes().await?;
    apart.home.execute("update config_revision set revision = revision - 1").await?;
    eventually("another epoch has begun and the node has it", async || {
        let list = apart.nodes().await?;
        let node = list.nodes.iter().find(|node| node.name == "nodes/delivery.web-1");
        let has = node.is_some_and(|node| node.epoch == list.epoch && node.lag == 0);
        Ok((list.epoch != before.epoch && has).then_some(()))
    })
    .await?;
    config.raw("later", http_endpoint(&receiver.url("/later"))).await?;
    apart.applied(1).await?;
    assert_eq!(Scene::of(&node).await?.publish("both", "{}").await?.deliveries, 2);
    // Now while no control plane looks: only the node knows of the revision that is gone.
    let before = apart.nodes().await?;
    apart.control.kill().await?;
    apart.home.execute("update config_revision set revision = revision - 1").await?;
    apart.restart_control().await?;
    eventually("the node's word begins another epoch", async || {
        let list = apart.nodes().await?;
        Ok((list.epoch != before.epoch).then_some(()))
    })
    .await?;
    apart.applied(1).await?;
    assert_eq!(Scene::of(&node).await?.publish("still", "{}").await?.deliveries, 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_set_aside_and_the_control_plane_asked() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let receiver = Receiver::start(Script::default()).await?;
    apart.scene().await?.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let node = apart.node("delivery", "web-1").await?;
    apart.applied(1).await?;
    node.stop().await?;
    let file = apart.home.directory("web-1").join("configuration.delivery");
    let mut bytes = std::fs::read(&file)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes)?;
    let node = apart.node("delivery", "web-1").await?;
    node.logged("the last-known-good configuration is refused").await?;
    goes_through(&node, &receiver, "anew").await?;
    assert!(file.with_file_name("configuration.delivery.refused").exists());
    Ok(())
}

/// A stopped control plane lets go of its streams at once, and refuses nothing that a node does not
/// need it for.
#[tokio::test(flavor = "multi_thread")]
async fn a_control_plane_with_nodes_stops_quickly() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let node = apart.node("delivery", "web-1").await?;
    apart.scene().await?;
    apart.applied(1).await?;
    let stopping = apart.control.stop();
    tokio::time::timeout(Duration::from_secs(10), stopping).await??;
    let scene = Scene::of(&node).await?;
    let request = ListEndpointsRequest { parent: scene.tenant.clone(), ..Default::default() };
    let refused = scene.client.endpoints().list_endpoints(request).await;
    assert_eq!(refused.err().map(|status| status.code()), Some(Code::Unimplemented));
    Ok(())
}

/// Whatever a node is told, writes down or logs: nobody who reads it learns a secret (I7).
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_the_logs_or_files_of_roles_apart() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let options = apart.node_options("delivery", "web-1")?;
    let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
    options.extend(["--log", "debug"]);
    let node = Server::start_in(&apart.home, &options).await?;
    let receiver = Receiver::start(Script::default()).await?;
    let http = HttpTarget {
        url: receiver.url("/hooks/marker-path?key=marker-query"),
        headers: HashMap::from([("x-api-key".to_owned(), "marker-header".to_owned())]),
        ..HttpTarget::default()
    };
    let endpoint = Endpoint { target: Some(Target::Http(http)), ..Endpoint::default() };
    let endpoint = apart.scene().await?.raw("shop", endpoint).await?;
    apart.applied(1).await?;
    goes_through(&node, &receiver, "e").await?;
    assert_eq!(receiver.received()[0].header("x-api-key"), Some("marker-header"));
    let metrics = node.metrics().await?;
    node.stop().await?;
    apart.control.stop().await?;
    let directory = apart.home.directory("web-1");
    let token = std::fs::read_to_string(directory.join("node.token"))?;
    let secrets = [endpoint.signing_secret.trim_start_matches("whsec_"), token.trim(), "marker-"];
    let file = std::fs::read(directory.join("configuration.delivery"))?;
    let file = String::from_utf8_lossy(&file);
    let texts = [node.log(), apart.control.log(), metrics, file.into_owned()];
    for (index, secret) in secrets.into_iter().enumerate() {
        for (place, text) in texts.iter().enumerate() {
            assert!(!text.contains(secret), "secret {index} is in text {place}");
        }
    }
    Ok(())
}
