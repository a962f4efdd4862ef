//! The ingress when something fails: never a false 2xx, and a repeat makes it whole.

use anyhow::Context as _;
use std::time::{Duration, Instant};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use turnbuckle_proto::v1::{IntakeLimits, Source};
use turnbuckle_testkit::{
    proxy::Proxy,
    receiver::{Receiver, Script},
};
use turnbuckle_tests::{
    Apart, Home, PATIENCE, Scene, Server, StoreKind, eventually, http_endpoint,
    scene::proto,
    sender::{self, SECRET, Sender},
};

on_both_stores!(
    a_kill_after_the_commit_makes_the_repeat_a_duplicate,
    a_slow_body_is_given_up_and_harms_nobody,
);

async fn a_kill_after_the_commit_makes_the_repeat_a_duplicate(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &["--lease", "2s"]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let github = Sender::of(&scene, &server, "github", SECRET).await?;
    let body = r#"{"n":1}"#;
    let headers = sender::github(SECRET, "killed", "push", body)?;
    // The answer is never read: to the sender it is lost, whenever the process dies.
    let posted = tokio::spawn({
        let (github, headers) = (github.clone(), headers.clone());
        async move { github.post(&headers, body).await }
    });
    // Delivered means committed.
    receiver.wait_for(1, PATIENCE).await?;
    server.kill().await?;
    drop(posted.await);

    let server = Server::start_in(server.home(), &["--lease", "2s"]).await?;
    let again = github.at(&server).post(&headers, body).await?;
    assert_eq!(again.status, 200, "{}", again.body);
    assert!(again.body.contains("first_processed_at"), "{}", again.body);
    server.stop().await
}

async fn a_slow_body_is_given_up_and_harms_nobody(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let limits =
        IntakeLimits { read_timeout: Some(proto(Duration::from_secs(1))), ..Default::default() };
    let settings = Source { limits: Some(limits), ..Source::default() };
    let github = Sender::with(&scene, &server, "github", SECRET, settings).await?;
    let mut slow = TcpStream::connect(github.address()).await?;
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{{",
        github.source.ingest_path
    );
    slow.write_all(head.as_bytes()).await?;
    let body = "{}";
    let answer = github.post(&sender::github(SECRET, "quick", "push", body)?, body).await?;
    assert_eq!(answer.status, 202);
    let answer = tokio::time::timeout(PATIENCE, sender::answer(&mut slow)).await??;
    assert_eq!(answer.status, 408);
    assert!(answer.head.contains("connection: close"), "{}", answer.head);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_hangs_is_a_quick_503_and_never_an_acceptance() -> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Postgres).await?);
    let proxy = Proxy::start(home.database_address()?).await?;
    home.reach_database_by(proxy.address())?;
    let server = Server::start_in(&home, &[]).await?;
    let scene = Scene::set(&server).await?;
    let github = Sender::of(&scene, &server, "github", SECRET).await?;
    let body = "{}";
    let headers = sender::github(SECRET, "frozen", "push", body)?;
    proxy.freeze();
    let asked = Instant::now();
    let answer = github.post(&headers, body).await?;
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    proxy.heal();
    // Stored by now or only by the repeat: either way it is there once.
    eventually("the repeat is taken", async || {
        let answer = github.post(&headers, body).await?;
        Ok(matches!(answer.status, 200 | 202).then_some(()))
    })
    .await?;
    assert_eq!(github.post(&headers, body).await?.status, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingress_of_its_own_hands_over_to_workers_of_other_processes() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let scene = apart.scene().await?;
    let receiver = Receiver::start(Script::default()).await?;
    scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let delivery = apart.node("delivery", "web-1").await?;
    let ingress = apart.node("ingress", "door-1").await?;
    let github = Sender::of(&scene, &ingress, "github", SECRET).await?;
    apart.applied(2).await?;
    let body = r#"{"from":"far"}"#;
    let answer = github.post(&sender::github(SECRET, "apart", "push", body)?, body).await?;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let received = receiver.wait_for(1, PATIENCE).await?;
    let first = received.first().context("it was waited for")?;
    assert_eq!(first.body, body.as_bytes());
    ingress.stop().await?;
    delivery.stop().await
}
