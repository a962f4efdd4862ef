//! A sender's key changes while it sends: nothing valid is refused, and what is over is over.

use turnbuckle_proto::v1::{
    ActivateKeyRequest, GetKeyRingRequest, KeyState, RevokeKeyRequest, StageKeyRequest,
};
use turnbuckle_tests::{
    Scene, Server, StoreKind,
    sender::{self, SECRET, Sender},
};

on_both_stores!(a_sender_may_change_its_key_at_any_moment_of_the_overlap);

const NEXT_SECRET: &str = "the secret that follows the first";

struct Ring {
    scene: Scene,
    parent: String,
}

impl Ring {
    async fn etag(&self) -> anyhow::Result<String> {
        let name = format!("{}/keyRing", self.parent);
        let request = GetKeyRingRequest { name };
        Ok(self.scene.client.keys().get_key_ring(request).await?.into_inner().etag)
    }

    async fn stage(&self, secret: &str) -> anyhow::Result<()> {
        let request = StageKeyRequest {
            parent: self.parent.clone(),
            etag: self.etag().await?,
            secret: secret.to_owned(),
            ..StageKeyRequest::default()
        };
        self.scene.client.keys().stage_key(request).await?;
        Ok(())
    }

    async fn activate(&self) -> anyhow::Result<()> {
        let request = ActivateKeyRequest {
            parent: self.parent.clone(),
            etag: self.etag().await?,
            ..ActivateKeyRequest::default()
        };
        self.scene.client.keys().activate_key(request).await?;
        Ok(())
    }

    async fn revoke(&self, state: KeyState) -> anyhow::Result<()> {
        let name = format!("{}/keyRing", self.parent);
        let keys = self.scene.client.keys();
        let ring = keys.clone().get_key_ring(GetKeyRingRequest { name }).await?.into_inner();
        for key in ring.keys.iter().filter(|key| key.state() == state) {
            let request = RevokeKeyRequest {
                name: key.name.clone(),
                etag: ring.etag.clone(),
                reason: "it leaked".into(),
                ..RevokeKeyRequest::default()
            };
            self.scene.client.keys().revoke_key(request).await?;
        }
        Ok(())
    }
}

async fn a_sender_may_change_its_key_at_any_moment_of_the_overlap(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let github = Sender::of(&scene, &server, "github", SECRET).await?;
    let ring = Ring { scene, parent: github.source.name.clone() };
    let send = async |secret: &str, id: &str| {
        let body = format!(r#"{{"id":"{id}"}}"#);
        let answer = github.post(&sender::github(secret, id, "push", &body)?, &body).await?;
        anyhow::Ok(answer.status)
    };
    assert_eq!((send(SECRET, "a1").await?, send(NEXT_SECRET, "a2").await?), (202, 401));
    ring.stage(NEXT_SECRET).await?;
    assert_eq!((send(SECRET, "b1").await?, send(NEXT_SECRET, "b2").await?), (202, 202));
    ring.activate().await?;
    assert_eq!((send(SECRET, "c1").await?, send(NEXT_SECRET, "c2").await?), (202, 202));
    ring.revoke(KeyState::Retiring).await?;
    assert_eq!((send(SECRET, "d1").await?, send(NEXT_SECRET, "d2").await?), (401, 202));
    // The stolen key raises the alarm.
    assert_eq!(server.metric("turnbuckle_ingress_revoked_key_uses_total").await?, 1.0);
    Ok(())
}
