//! Receivers that hang, drip and flood.

use std::time::Duration;
use turnbuckle_proto::v1::{AttemptOutcome, DeliveryState, Endpoint, HttpTarget, endpoint::Target};
use turnbuckle_testkit::{
    raw::{Piece, RawReceiver},
    receiver::{Answer, Receiver, Script},
};
use turnbuckle_tests::{
    PATIENCE, Scene, Server, StoreKind, eventually, http_endpoint, scene::proto,
};

on_both_stores!(a_hanging_endpoint_does_not_hold_the_healthy_ones);

/// The shortest timeout an endpoint can have.
const TIMEOUT: Duration = Duration::from_secs(1);

/// An endpoint that gives up after a second and is tried once.
async fn impatient(scene: &Scene, id: &str, url: &str) -> anyhow::Result<Endpoint> {
    let http =
        HttpTarget { url: url.into(), timeout: Some(proto(TIMEOUT)), ..HttpTarget::default() };
    let retry_policy = scene.delays(id, &[Duration::from_millis(10)], 1).await?;
    let endpoint =
        Endpoint { target: Some(Target::Http(http)), retry_policy, ..Endpoint::default() };
    scene.raw(id, endpoint).await
}

async fn a_hanging_endpoint_does_not_hold_the_healthy_ones(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &["--grace", "0s"]).await?);
    let script = Script::default().on("/hangs", [Answer::hang()]);
    let receiver = Receiver::start(script).await?;
    let scene = Scene::set(&server).await?;
    for id in ["hangs", "one", "two", "three"] {
        scene.raw(id, http_endpoint(&receiver.url(&format!("/{id}")))).await?;
    }
    // More than the slots of the hanging endpoint: some of its deliveries are in flight, more wait.
    let events = 60;
    for number in 0..events {
        scene.publish(&format!("e{number}"), "{}").await?;
    }
    let healthy = receiver.wait_until(PATIENCE, |received| {
        received.iter().filter(|request| request.path != "/hangs").count() == 3 * events
    });
    healthy.await?;
    // Nothing of the hanging endpoint has ended: its timeout is much longer than all of this.
    eventually("only the hanging endpoint's deliveries are pending", async || {
        Ok((scene.count(DeliveryState::Delivered).await? == 3 * events).then_some(()))
    })
    .await?;
    assert_eq!(scene.count(DeliveryState::Pending).await?, events);
    let hanging = receiver.received().iter().filter(|request| request.path == "/hangs").count();
    assert!(hanging > 0 && hanging <= 16, "{hanging} in flight");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_times_out_and_is_tried_again() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let receiver = Receiver::start(Script::sequence([Answer::hang(), Answer::status(204)])).await?;
    let scene = Scene::set(&server).await?;
    let http = HttpTarget {
        url: receiver.url("/"),
        timeout: Some(proto(TIMEOUT)),
        ..HttpTarget::default()
    };
    let retry_policy = scene.delays("quick", &[Duration::from_millis(10)], 3).await?;
    let endpoint =
        Endpoint { target: Some(Target::Http(http)), retry_policy, ..Endpoint::default() };
    scene.raw("shop", endpoint).await?;
    let event = scene.publish("e", "{}").await?.name;
    let delivery = scene.ended(&event, DeliveryState::Delivered).await?;
    let attempts = scene.attempts(&delivery).await?;
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0].outcome(), AttemptOutcome::TimedOut);
    assert_eq!(attempts[0].detail, "FIRST_BYTE");
    assert_eq!((attempts[1].outcome(), attempts[1].http_status), (AttemptOutcome::Delivered, 204));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_drips_longer_than_the_timeout_is_no_answer() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let receiver = RawReceiver::start(Piece::drip(head, Duration::from_millis(200))).await?;
    let scene = Scene::set(&server).await?;
    impatient(&scene, "drips", &receiver.url("/")).await?;
    let event = scene.publish("e", "{}").await?.name;
    let delivery = scene.ended(&event, DeliveryState::Dead).await?;
    let attempts = scene.attempts(&delivery).await?;
    assert_eq!(attempts[0].outcome(), AttemptOutcome::TimedOut);
    assert_eq!(receiver.count(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_drips_after_200_does_not_undo_the_delivery() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let drip = Answer::status(200).dripping(1_000, Duration::from_millis(100));
    let receiver = Receiver::start(Script::always(drip)).await?;
    let scene = Scene::set(&server).await?;
    impatient(&scene, "drips", &receiver.url("/")).await?;
    let event = scene.publish("e", "{}").await?.name;
    let delivery = scene.ended(&event, DeliveryState::Delivered).await?;
    assert_eq!((delivery.attempts, receiver.count()), (1, 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_100_mb_costs_no_memory() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let flood = Answer::status(200).with_body(100 * 1024 * 1024);
    let receiver = Receiver::start(Script::always(flood)).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("floods", http_endpoint(&receiver.url("/"))).await?;
    let warm = scene.publish("warm", "{}").await?.name;
    scene.ended(&warm, DeliveryState::Delivered).await?;
    let before = server.peak_memory();
    for number in 0..20 {
        scene.publish(&format!("e{number}"), "{}").await?;
    }
    scene.drained().await?;
    assert_eq!(scene.count(DeliveryState::Delivered).await?, 21);
    // Twenty answers of 100 MB: one that was read to its end would show.
    if let (Some(before), Some(after)) = (before, server.peak_memory()) {
        assert!(after - before < 48 * 1024 * 1024, "{before} grew to {after}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_text_in_an_answer_do_no_harm() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let cases: [(&str, &[u8], DeliveryState); 5] = [
        (
            "latin1-header",
            b"HTTP/1.1 200 OK\r\nx-name: J\xfcrgen\r\ncontent-length: 0\r\n\r\n",
            DeliveryState::Delivered,
        ),
        (
            "binary-body",
            b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n\x00\xff\xfe\x80",
            DeliveryState::Delivered,
        ),
        (
            "nul-in-header",
            b"HTTP/1.1 200 OK\r\nx-name: a\x00b\r\ncontent-length: 0\r\n\r\n",
            DeliveryState::Dead,
        ),
        ("no-http", b"SSH-2.0-OpenSSH_9.6\r\n", DeliveryState::Dead),
        ("nothing", b"", DeliveryState::Dead),
    ];
    let mut receivers = Vec::new();
    for (id, answer, _) in &cases {
        let receiver = RawReceiver::start(vec![Piece::now(*answer)]).await?;
        impatient(&scene, id, &receiver.url("/")).await?;
        receivers.push(receiver);
    }
    let event = scene.publish("e", "{}").await?.name;
    scene.drained().await?;
    for delivery in scene.deliveries_of(&event).await? {
        let case = cases.iter().find(|(id, ..)| delivery.endpoint.ends_with(&format!("/{id}")));
        let (id, _, expected) = case.ok_or_else(|| anyhow::anyhow!("{delivery:?} is not ours"))?;
        assert_eq!(delivery.state(), *expected, "{id}");
        for attempt in scene.attempts(&delivery).await? {
            assert!(attempt.detail.is_ascii(), "{id}: {}", attempt.detail);
        }
    }
    assert!(receivers.iter().all(|receiver| receiver.count() == 1));
    Ok(())
}
