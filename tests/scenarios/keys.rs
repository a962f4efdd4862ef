//! Rotation of signing keys under traffic.

use std::{sync::Arc, time::Duration};
use turnbuckle_proto::v1::{
    ActivateKeyRequest, DeliveryState, Endpoint, KeyAlgorithm, RevokeKeyRequest,
    RollbackKeyRequest, RotateKeyRequest, StageKeyRequest,
};
use turnbuckle_signing::{Profile, VerifyOptions, VerifyingKey, verify};
use turnbuckle_testkit::{
    ledger::Ledger,
    receiver::{Received, Receiver, Script},
};
use turnbuckle_tests::{
    Load, PATIENCE, Scene, Server, StoreKind, eventually, http_endpoint, scene::proto,
};

use crate::unix_now;

on_both_stores!(
    a_rotation_under_traffic_never_sends_what_cannot_be_verified,
    an_endpoint_without_keys_waits_and_sends_nothing,
);

fn signed_by(request: &Received, secret: &str) -> anyhow::Result<bool> {
    let key = VerifyingKey::parse(secret)?;
    let options = VerifyOptions::at(unix_now());
    let verified =
        verify(Profile::StandardWebhooks, &[key], &request.headers, &request.body, &options);
    Ok(verified.is_ok())
}

fn signatures(request: &Received) -> usize {
    request.header("webhook-signature").unwrap_or_default().split(' ').count()
}

/// The first `count` events published from now on, with their requests.
async fn fresh(
    scene: &Scene,
    receiver: &Receiver,
    prefix: &str,
    count: usize,
) -> anyhow::Result<Vec<Received>> {
    for number in 0..count {
        scene.publish(&format!("{prefix}-{number}"), "{}").await?;
    }
    let own = |request: &&Received| {
        request.header("webhook-id").is_some_and(|id| id.starts_with(&format!("{prefix}-")))
    };
    let all = receiver
        .wait_until(PATIENCE, |received| received.iter().filter(own).count() == count)
        .await?;
    Ok(all.iter().filter(own).cloned().collect())
}

async fn a_rotation_under_traffic_never_sends_what_cannot_be_verified(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let endpoint = scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let old = endpoint.signing_secret.clone();
    let ledger = Arc::new(Ledger::default());
    let mut traffic = Load::start(&scene, &ledger, "traffic", 4, usize::MAX);
    traffic.acknowledged(50).await?;

    let overlap = Duration::from_secs(3);
    let request = RotateKeyRequest {
        parent: endpoint.name.clone(),
        etag: scene.ring(&endpoint).await?.etag,
        algorithm: KeyAlgorithm::HmacSha256.into(),
        overlap: Some(proto(overlap)),
        ..RotateKeyRequest::default()
    };
    let rotated_at = unix_now();
    let new = scene.client.keys().rotate_key(request).await?.into_inner().secret;
    for request in fresh(&scene, &receiver, "during", 10).await? {
        let now_old = signed_by(&request, &old)?;
        assert!(signed_by(&request, &new)?, "the new key does not verify");
        // On a very slow machine the overlap may be over already.
        assert!(now_old || unix_now() >= rotated_at + 3, "the old key does not verify");
        assert_eq!(signatures(&request), if now_old { 2 } else { 1 });
    }
    eventually("only the new key signs", async || {
        let id = format!("after{}", receiver.count());
        let request = &fresh(&scene, &receiver, &id, 1).await?[0];
        anyhow::ensure!(signed_by(request, &new)?, "the new key does not verify");
        Ok((!signed_by(request, &old)? && signatures(request) == 1).then_some(()))
    })
    .await?;
    assert!(unix_now() + 1 >= rotated_at + 3, "the overlap ended early");
    traffic.stop().await;
    scene.drained().await?;
    let received = receiver.received();
    for request in &received {
        assert!(signed_by(request, &old)? || signed_by(request, &new)?);
    }
    assert!(ledger.audit(&received).lost.is_empty());
    Ok(())
}

async fn an_endpoint_without_keys_waits_and_sends_nothing(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let witness = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let endpoint = scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    scene.raw("witness", http_endpoint(&witness.url("/"))).await?;
    revoke_all(&scene, &endpoint).await?;
    for number in 0..5 {
        assert_eq!(scene.publish(&format!("e{number}"), "{}").await?.deliveries, 2);
    }
    witness.wait_for(5, PATIENCE).await?;
    eventually("five deliveries wait", async || {
        let delivered = scene.count(DeliveryState::Delivered).await?;
        Ok((delivered == 5).then_some(()))
    })
    .await?;
    assert_eq!(scene.count(DeliveryState::Pending).await?, 5);
    assert_eq!(receiver.count(), 0);

    let parent = endpoint.name.clone();
    let etag = scene.ring(&endpoint).await?.etag;
    let staged = StageKeyRequest { parent: parent.clone(), etag, ..StageKeyRequest::default() };
    let secret = scene.client.keys().stage_key(staged).await?.into_inner().secret;
    let etag = scene.ring(&endpoint).await?.etag;
    let activate = ActivateKeyRequest { parent, etag, ..ActivateKeyRequest::default() };
    scene.client.keys().activate_key(activate).await?;
    for request in receiver.wait_for(5, PATIENCE).await? {
        assert!(signed_by(&request, &secret)?);
        assert!(!signed_by(&request, &endpoint.signing_secret)?);
    }
    scene.drained().await?;
    assert_eq!(scene.count(DeliveryState::Delivered).await?, 10);
    Ok(())
}

async fn revoke_all(scene: &Scene, endpoint: &Endpoint) -> anyhow::Result<()> {
    for key in scene.ring(endpoint).await?.keys {
        let request = RevokeKeyRequest {
            name: key.name,
            etag: scene.ring(endpoint).await?.etag,
            reason: "it leaked".into(),
            ..RevokeKeyRequest::default()
        };
        scene.client.keys().revoke_key(request).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_makes_the_old_key_sign_first_again() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let endpoint = scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let rotate = RotateKeyRequest {
        parent: endpoint.name.clone(),
        etag: scene.ring(&endpoint).await?.etag,
        overlap: Some(proto(Duration::from_secs(3600))),
        ..RotateKeyRequest::default()
    };
    let new = scene.client.keys().rotate_key(rotate).await?.into_inner().secret;
    let rollback = RollbackKeyRequest {
        parent: endpoint.name.clone(),
        etag: scene.ring(&endpoint).await?.etag,
        overlap: Some(proto(Duration::ZERO)),
        ..RollbackKeyRequest::default()
    };
    scene.client.keys().rollback_key(rollback).await?;
    let request = &fresh(&scene, &receiver, "e", 1).await?[0];
    assert!(signed_by(request, &endpoint.signing_secret)?);
    assert!(!signed_by(request, &new)?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_rotations_with_one_etag_cannot_both_happen() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let endpoint = scene.raw("shop", http_endpoint("http://127.0.0.1:9/")).await?;
    let request = RotateKeyRequest {
        parent: endpoint.name.clone(),
        etag: scene.ring(&endpoint).await?.etag,
        force: true,
        ..RotateKeyRequest::default()
    };
    let (mut one, mut two) = (scene.client.keys(), scene.client.keys());
    let both = tokio::join!(one.rotate_key(request.clone()), two.rotate_key(request));
    let refused: Vec<_> = [both.0.err(), both.1.err()].into_iter().flatten().collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].code(), tonic::Code::Aborted);
    assert_eq!(scene.ring(&endpoint).await?.keys.len(), 2);
    Ok(())
}
