//! Rotations as operators see them: tests, dry runs, use and standing of keys, and the pause that a
//! rotation takes by itself.

use crate::unix_now;
use anyhow::Context as _;
use std::time::Duration;
use tonic::{Code, Status};
use turnbuckle_proto::v1::{
    ActivateKeyRequest, DeliveryState, Endpoint, GetKeyRingStatusRequest, KeyRingStatus, KeyState,
    ListAuditEventsRequest, PauseRotationRequest, ResumeRotationRequest, RevealKeyRequest,
    RevokeKeyRequest, RollbackKeyRequest, RotateKeyRequest, RotationStage, StageKeyRequest,
    TestKeyRequest,
};
use turnbuckle_signing::{Profile, VerifyOptions, VerifyingKey, verify};
use turnbuckle_testkit::receiver::{Answer, Received, Receiver, Script};
use turnbuckle_tests::{
    PATIENCE, Scene, Server, StoreKind, eventually, home::run_ok, http_endpoint, scene::proto,
};

on_both_stores!(
    a_rotation_step_by_step_says_when_the_old_key_may_go,
    denials_after_a_step_pause_the_rotation_until_somebody_decides,
    a_secret_is_shown_again_only_where_that_is_allowed_and_recorded,
);

/// Counts are written and rotations judged as often as is allowed.
const SOON: [&str; 2] = ["--key-usage-interval", "1s"];
const HOUR: Duration = Duration::from_secs(3600);

fn signed_by(request: &Received, secret: &str) -> anyhow::Result<bool> {
    let key = VerifyingKey::parse(secret)?;
    let options = VerifyOptions::at(unix_now());
    let verified =
        verify(Profile::StandardWebhooks, &[key], &request.headers, &request.body, &options);
    Ok(verified.is_ok())
}

fn refusal<T>(answer: Result<T, Status>) -> anyhow::Result<Status> {
    answer.err().context("it was not refused")
}

async fn status(scene: &Scene, endpoint: &Endpoint) -> anyhow::Result<KeyRingStatus> {
    let request = GetKeyRingStatusRequest { name: format!("{}/keyRing", endpoint.name) };
    Ok(scene.client.key_rings().get_key_ring_status(request).await?.into_inner())
}

async fn publish(scene: &Scene, prefix: &str, count: usize) -> anyhow::Result<()> {
    for number in 0..count {
        scene.publish(&format!("{prefix}-{number}"), "{}").await?;
    }
    scene.drained().await
}

async fn rotate(scene: &Scene, endpoint: &Endpoint) -> anyhow::Result<String> {
    let request = RotateKeyRequest {
        parent: endpoint.name.clone(),
        etag: scene.ring(endpoint).await?.etag,
        overlap: Some(proto(HOUR)),
        ..RotateKeyRequest::default()
    };
    Ok(scene.client.keys().rotate_key(request).await?.into_inner().secret)
}

async fn a_rotation_step_by_step_says_when_the_old_key_may_go(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &SOON).await?);
    let receiver = Receiver::start(Script::sequence([401, 204].map(Answer::status))).await?;
    let scene = Scene::set(&server).await?;
    let endpoint = scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    stage_and_test(&scene, &endpoint, &receiver).await?;
    activate(&scene, &endpoint).await?;

    publish(&scene, "e", 10).await?;
    let told = eventually("the use of both keys is known", async || {
        let told = status(&scene, &endpoint).await?;
        Ok((told.keys[0].signatures == 10 && told.keys[1].signatures == 10).then_some(told))
    })
    .await?;
    assert_eq!((told.stage(), told.safe_to_retire), (RotationStage::Overlap, true), "{told:?}");
    assert!((told.keys[0].share_percent - 100.0).abs() < f64::EPSILON);
    let is_applied = told.nodes[0].applied_revision >= told.revision;
    assert!(told.keys[0].last_use_time.is_some() && is_applied);
    assert_eq!(told.step.unwrap_or_default().after.unwrap_or_default().accepted, 10);
    let shown = on_the_command_line(&server, "status")?;
    for part in ["signs too until", "Safe to retire the old key: yes.", "10 accepted", "active"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    revoke_old(&scene, &endpoint).await?;
    // The last counts are written at the end.
    publish(&scene, "late", 3).await?;
    server.stop().await?;
    let again = Server::start_in(server.home(), &SOON).await?;
    let told = status(&Scene::of(&again).await?, &endpoint).await?;
    assert_eq!(told.keys[0].signatures, 13);
    Ok(())
}

fn on_the_command_line(server: &Server, verb: &str) -> anyhow::Result<String> {
    let url = format!("http://{}", server.api);
    let token = server.home().token("admin", None)?;
    run_ok(&["--server", &url, "--token", &token, "--tenant", "acme", "key", verb, "shop"])
}

/// Stages a key, and tests it until the receiver knows it.
async fn stage_and_test(
    scene: &Scene,
    endpoint: &Endpoint,
    receiver: &Receiver,
) -> anyhow::Result<()> {
    let parent = endpoint.name.clone();
    let mut tests = scene.client.key_tests();
    let test = TestKeyRequest { parent: parent.clone(), key: String::new() };
    let nothing_staged = refusal(tests.test_key(test.clone()).await)?;
    assert_eq!(nothing_staged.code(), Code::FailedPrecondition, "{nothing_staged}");
    let etag = scene.ring(endpoint).await?.etag;
    let stage = StageKeyRequest { parent, etag, ..StageKeyRequest::default() };
    let dry = StageKeyRequest { validate_only: true, ..stage.clone() };
    let dry = scene.client.keys().stage_key(dry).await?.into_inner();
    assert!(dry.ring_summary.contains("Then: ") && dry.ring_summary.contains("is staged"));
    let staged = scene.client.keys().stage_key(stage).await?.into_inner();

    // The receiver does not know it yet, and then does. Whoever tests too often waits.
    let first = tests.test_key(test.clone()).await?.into_inner();
    assert!(!first.accepted && first.http_status == 401, "{first:?}");
    assert!(first.summary.contains("does not know the key yet"), "{first:?}");
    let often = refusal(tests.test_key(test.clone()).await)?;
    assert_eq!(often.code(), Code::ResourceExhausted);
    let told = status(scene, endpoint).await?;
    assert_eq!(told.stage(), RotationStage::Staged);
    assert!(told.next_steps[0].starts_with("Give the staged key"), "{:?}", told.next_steps);
    let second = eventually("a second test is let through", async || {
        match tests.test_key(test.clone()).await {
            Ok(answer) => Ok(Some(answer.into_inner())),
            Err(status) if status.code() == Code::ResourceExhausted => Ok(None),
            Err(status) => Err(status.into()),
        }
    })
    .await?;
    assert!(second.accepted && second.key == staged.name, "{second:?}");
    for ping in receiver.received() {
        assert_eq!(ping.header("turnbuckle-event-type"), Some("turnbuckle.ping"));
        assert!(signed_by(&ping, &staged.secret)? && !signed_by(&ping, &endpoint.signing_secret)?);
    }
    assert_eq!(receiver.count(), 2, "a test is never tried again");
    assert_eq!(scene.deliveries(Default::default()).await?, [], "and is no delivery");
    Ok(())
}

/// Activates the staged key, after a look at what that would do.
async fn activate(scene: &Scene, endpoint: &Endpoint) -> anyhow::Result<()> {
    let told = status(scene, endpoint).await?;
    assert!(told.next_steps[0].starts_with("Activate the staged key"), "{:?}", told.next_steps);
    let activate = ActivateKeyRequest {
        parent: endpoint.name.clone(),
        etag: told.etag,
        overlap: Some(proto(HOUR)),
        validate_only: true,
        ..Default::default()
    };
    let would_be = scene.client.keys().activate_key(activate.clone()).await?.into_inner();
    assert!(would_be.summary.contains("signs too until"), "{}", would_be.summary);
    assert_eq!(would_be.etag, scene.ring(endpoint).await?.etag, "nothing was changed");
    assert_eq!(scene.ring(endpoint).await?.keys[0].state(), KeyState::Staged);
    let activate = ActivateKeyRequest { validate_only: false, ..activate };
    scene.client.keys().activate_key(activate).await?;
    Ok(())
}

/// Ends the overlap, after a look at what that would do.
async fn revoke_old(scene: &Scene, endpoint: &Endpoint) -> anyhow::Result<()> {
    let ring = scene.ring(endpoint).await?;
    let revoke = RevokeKeyRequest {
        name: ring.keys[1].name.clone(),
        etag: ring.etag,
        reason: "rotated".into(),
        validate_only: true,
        ..Default::default()
    };
    let would_be = scene.client.keys().revoke_key(revoke.clone()).await?.into_inner();
    assert!(would_be.summary.ends_with("signs alone."), "{}", would_be.summary);
    let meant = RevokeKeyRequest { validate_only: false, ..revoke };
    scene.client.keys().revoke_key(meant).await?;
    let test = TestKeyRequest { parent: endpoint.name.clone(), key: ring.keys[1].name.clone() };
    let refused = refusal(scene.client.key_tests().test_key(test).await)?;
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    Ok(())
}

async fn denials_after_a_step_pause_the_rotation_until_somebody_decides(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &SOON).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let endpoint = scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    publish(&scene, "before", 30).await?;
    let counted = async |count| {
        eventually("traffic is counted", async || {
            let told = status(&scene, &endpoint).await?;
            let known = told.keys.iter().any(|key| key.signatures >= count);
            Ok(known.then_some(told))
        })
        .await
    };
    counted(30).await?;
    rotate(&scene, &endpoint).await?;
    receiver.change_script(Script::always(Answer::status(401)));
    publish(&scene, "after", 10).await?;
    let paused = eventually("the rotation pauses by itself", async || {
        let told = status(&scene, &endpoint).await?;
        Ok((told.stage() == RotationStage::Paused).then_some(told))
    })
    .await?;
    let reason = paused.pause.clone().unwrap_or_default().reason;
    assert!(reason.starts_with("10 of 10 answers were 401 or 403"), "{reason}");
    assert!(reason.ends_with("0 % before") && !paused.safe_to_retire, "{paused:?}");
    assert!(paused.summary.contains("for as long as the rotation is paused"));
    let list = ListAuditEventsRequest {
        parent: scene.tenant.clone(),
        subject: "turnbuckle".into(),
        ..ListAuditEventsRequest::default()
    };
    let entries = scene.client.audit().list_audit_events(list).await?.into_inner().audit_events;
    assert_eq!(entries.len(), 1, "it is paused once");
    assert_eq!(entries[0].reason, reason);

    // Somebody lets it go on, and is not contradicted by the same answers and more of them.
    let etag = paused.etag;
    let resume = ResumeRotationRequest {
        parent: endpoint.name.clone(),
        etag,
        overlap: Some(proto(HOUR)),
        ..ResumeRotationRequest::default()
    };
    scene.client.key_rings().resume_rotation(resume).await?;
    publish(&scene, "more", 10).await?;
    let told = counted(40).await?;
    assert_eq!(told.stage(), RotationStage::Overlap, "{told:?}");
    let pause = PauseRotationRequest {
        parent: endpoint.name.clone(),
        etag: told.etag,
        reason: "the receiver asked for time".into(),
        ..PauseRotationRequest::default()
    };
    let ring = scene.client.key_rings().pause_rotation(pause).await?.into_inner();
    assert_eq!(ring.pause.unwrap_or_default().reason, "the receiver asked for time");
    let rollback = RollbackKeyRequest {
        parent: endpoint.name.clone(),
        etag: ring.etag,
        ..RollbackKeyRequest::default()
    };
    let ring = scene.client.keys().rollback_key(rollback).await?.into_inner();
    assert_eq!(ring.pause, None);
    receiver.change_script(Script::default());
    publish(&scene, "back", 1).await?;
    let last = receiver.received().pop().context("nothing came")?;
    assert!(signed_by(&last, &endpoint.signing_secret)?);
    assert_eq!(scene.count(DeliveryState::Dead).await?, 20, "denials are final");
    Ok(())
}

async fn a_secret_is_shown_again_only_where_that_is_allowed_and_recorded(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let endpoint = scene.raw("shop", http_endpoint("http://127.0.0.1:9/")).await?;
    let name = scene.ring(&endpoint).await?.keys[0].name.clone();
    let reveal = RevealKeyRequest { name, reason: "the receiver lost it".into() };
    let off = refusal(scene.client.key_rings().reveal_key(reveal.clone()).await)?;
    assert_eq!(off.code(), Code::FailedPrecondition);
    assert!(off.message().contains("--allow-key-reveal"), "{off}");
    server.stop().await?;

    let server = Server::start_in(server.home(), &["--allow-key-reveal"]).await?;
    let scene = Scene::of(&server).await?;
    let operator = server.client_with(Some(server.home().token("operator", None)?)).await?;
    let denied = refusal(operator.key_rings().reveal_key(reveal.clone()).await)?;
    assert_eq!(denied.code(), Code::PermissionDenied);
    let silent = RevealKeyRequest { reason: String::new(), ..reveal.clone() };
    let refused = refusal(scene.client.key_rings().reveal_key(silent).await)?;
    assert_eq!(refused.code(), Code::InvalidArgument);
    let shown = scene.client.key_rings().reveal_key(reveal.clone()).await?.into_inner();
    assert_eq!(shown.secret, endpoint.signing_secret);
    let list = ListAuditEventsRequest { parent: scene.tenant.clone(), ..Default::default() };
    let entries = scene.client.audit().list_audit_events(list).await?.into_inner().audit_events;
    assert_eq!(entries[0].resource, reveal.name);
    assert_eq!(entries[0].reason, "the receiver lost it");
    let elsewhere = server.client_with(Some(server.home().token("admin", Some("other"))?)).await?;
    let denied = refusal(elsewhere.key_rings().reveal_key(reveal).await)?;
    assert_eq!(denied.code(), Code::PermissionDenied);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_goes_through_the_egress_guard_and_not_to_a_disabled_endpoint() -> anyhow::Result<()>
{
    let home = or_skip!(turnbuckle_tests::Home::new(StoreKind::Embedded).await?);
    let server = Server::start_in(&home, &[]).await?;
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let endpoint = scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let key = scene.ring(&endpoint).await?.keys[0].name.clone();
    let test = TestKeyRequest { parent: endpoint.name.clone(), key };
    scene.disable(&endpoint).await?;
    let refused = refusal(scene.client.key_tests().test_key(test.clone()).await)?;
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    scene.enable(&endpoint).await?;
    let viewer = server.client_with(Some(home.token("viewer", None)?)).await?;
    let denied = refusal(viewer.key_tests().test_key(test.clone()).await)?;
    assert_eq!(denied.code(), Code::PermissionDenied);
    server.stop().await?;
    // Now loopback is no place for deliveries any more.
    let strict = Server::start_strict(&home, &[]).await?;
    let scene = Scene::of(&strict).await?;
    let answer = scene.client.key_tests().test_key(test).await?.into_inner();
    assert_eq!((answer.outcome.as_str(), answer.accepted), ("blocked", false), "{answer:?}");
    assert_eq!(receiver.count(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn with_roles_apart_the_delivery_process_tests_and_counts() -> anyhow::Result<()> {
    let home = or_skip!(turnbuckle_tests::Home::new(StoreKind::Postgres).await?);
    let options = |role| [&SOON[..], &["--roles", role]].concat();
    let control = Server::start_in(&home, &options("control-plane")).await?;
    let delivery = Server::start_in(&home, &options("delivery")).await?;
    let receiver = Receiver::start(Script::default()).await?;
    let config = Scene::set(&control).await?;
    let endpoint = config.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let etag = config.ring(&endpoint).await?.etag;
    let parent = endpoint.name.clone();
    let stage = StageKeyRequest { parent: parent.clone(), etag, ..StageKeyRequest::default() };
    let staged = config.client.keys().stage_key(stage).await?.into_inner();
    // Sent to the other process at once: it reads what was configured before it tests.
    let traffic = Scene::of(&delivery).await?;
    let test = TestKeyRequest { parent, key: String::new() };
    let nobody = refusal(config.client.key_tests().test_key(test.clone()).await)?;
    assert_eq!(nobody.code(), Code::Unimplemented);
    let answer = traffic.client.key_tests().test_key(test).await?.into_inner();
    assert!(answer.accepted && answer.key == staged.name, "{answer:?}");
    let told = status(&config, &endpoint).await?;
    assert_eq!(told.keys[0].last_test_http_status, 200);
    publish(&traffic, "e", 3).await?;
    receiver.wait_for(4, PATIENCE).await?;
    eventually("the control plane knows of it", async || {
        let told = status(&config, &endpoint).await?;
        Ok(told.keys.iter().any(|key| key.signatures == 3).then_some(()))
    })
    .await?;
    delivery.stop().await?;
    control.stop().await
}
