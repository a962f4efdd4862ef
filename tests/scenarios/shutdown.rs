//! The process is asked to stop.

use anyhow::Context as _;
use std::{
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use turnbuckle_proto::v1::{DeliveryState, Endpoint};
use turnbuckle_testkit::{
    ledger::Ledger,
    process::Signal,
    receiver::{Answer, Receiver, Script},
};
use turnbuckle_tests::{
    Home, Load, PATIENCE, Scene, Server, StoreKind, eventually, http, http_endpoint,
    server::announced,
};

on_both_stores!(
    a_stop_under_load_loses_and_repeats_nothing,
    an_attempt_in_flight_is_finished_and_not_made_again,
);

async fn a_stop_under_load_loses_and_repeats_nothing(kind: StoreKind) -> anyhow::Result<()> {
    let lease = ["--lease", "2s"];
    let server = or_skip!(Server::start(kind, &lease).await?);
    let slow = Answer::status(200).after(Duration::from_millis(15));
    let receiver = Receiver::start(Script::always(slow)).await?;
    let scene = Scene::set(&server).await?;
    let endpoint = Endpoint { max_in_flight: 4, ..http_endpoint(&receiver.url("/")) };
    scene.raw("shop", endpoint).await?;
    let ledger = Arc::new(Ledger::default());
    let mut load = Load::start(&scene, &ledger, "e", 16, usize::MAX);
    load.acknowledged(200).await?;
    server.stop().await?;
    load.finish().await;
    let at_stop = receiver.count();

    let server = Server::start_in(server.home(), &lease).await?;
    let scene = Scene::of(&server).await?;
    receiver.wait_until(PATIENCE, |received| ledger.audit(received).lost.is_empty()).await?;
    scene.drained().await?;
    let audit = ledger.audit(&receiver.received());
    assert!(audit.is_complete(), "{audit:?}");
    assert_eq!(audit.repeated(), 0, "{audit:?}");
    assert!(at_stop < receiver.count(), "the stop came after the work: nothing was proven");
    Ok(())
}

async fn an_attempt_in_flight_is_finished_and_not_made_again(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &["--lease", "2s"]).await?);
    let slow = Answer::status(200).after(Duration::from_millis(700));
    let receiver = Receiver::start(Script::always(slow)).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("slow", http_endpoint(&receiver.url("/"))).await?;
    let event = scene.publish("e", "{}").await?.name;
    receiver.wait_for(1, PATIENCE).await?;
    server.stop().await?;
    let server = Server::start_in(server.home(), &["--lease", "2s"]).await?;
    let scene = Scene::of(&server).await?;
    let delivery = scene.delivery_of(&event).await?;
    assert_eq!((delivery.state(), delivery.attempts), (DeliveryState::Delivered, 1));
    assert_eq!(receiver.count(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_ends_with_the_first_signal_and_the_second_ends_the_process() -> anyhow::Result<()>
{
    let server = or_skip!(Server::start(StoreKind::Embedded, &["--grace", "60s"]).await?);
    let receiver = Receiver::start(Script::always(Answer::hang())).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("hangs", http_endpoint(&receiver.url("/"))).await?;
    scene.publish("e", "{}").await?;
    receiver.wait_for(1, PATIENCE).await?;
    assert_eq!(http::get(server.admin, "/readyz").await?.status, 200);
    server.signal(Signal::Terminate)?;
    server.logged("a second signal ends the process at once").await?;
    // The attempt that hangs keeps the process for its grace time: whoever asks is told meanwhile.
    let ready = http::get(server.admin, "/readyz").await?;
    assert_eq!(ready.status, 503);
    assert!(ready.body.contains("running"), "{}", ready.body);
    server.signal(Signal::Terminate)?;
    assert_eq!(server.exit().await?.code(), Some(130));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_longer_than_the_grace_time_is_made_again_by_the_next_process()
-> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &["--grace", "0s"]).await?);
    let script = Script::sequence([Answer::hang(), Answer::status(200)]);
    let receiver = Receiver::start(script).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("hangs", http_endpoint(&receiver.url("/"))).await?;
    let event = scene.publish("e", "{}").await?.name;
    receiver.wait_for(1, PATIENCE).await?;
    server.signal(Signal::Terminate)?;
    server.exit().await?;
    let server = Server::start_in(server.home(), &[]).await?;
    let scene = Scene::of(&server).await?;
    scene.ended(&event, DeliveryState::Delivered).await?;
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].header("idempotency-key"), received[1].header("idempotency-key"));
    eventually("the record has one attempt", async || {
        let delivery = scene.delivery_of(&event).await?;
        Ok((delivery.attempts == 1).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_any_more_does_not_keep_the_process() -> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Embedded).await?);
    let mut command = tokio::process::Command::from(Server::command(&home, &[])?);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let mut log = BufReader::new(child.stderr.take().context("it is piped")?).lines();
    let up = async {
        while let Some(line) = log.next_line().await? {
            if let Some(admin) = announced(&line, "Admin") {
                return Ok(admin);
            }
        }
        anyhow::bail!("the log ended")
    };
    let admin = tokio::time::timeout(PATIENCE, up).await??;
    drop(log);
    // Up and well: only the log's reader is gone.
    assert_eq!(http::get(admin, "/readyz").await?.status, 200);
    let id = child.id().context("it runs")?;
    assert!(Command::new("kill").args(["-s", "TERM", &id.to_string()]).status()?.success());
    let status = tokio::time::timeout(PATIENCE, child.wait())
        .await
        .context("the process went on after the signal")??;
    assert_eq!(status.code(), Some(0), "{status}");
    Ok(())
}
