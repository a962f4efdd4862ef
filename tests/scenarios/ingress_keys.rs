//! A sender's key changes while it sends: nothing valid is refused, and what is over is over.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use turnbuckle_proto::v1::{
    ActivateKeyRequest, GetKeyRingRequest, GetKeyRingStatusRequest, IntakeLimits, KeyRingStatus,
    KeyState, RevokeKeyRequest, Source, StageKeyRequest,
};
use turnbuckle_tests::{
    Scene, Server, StoreKind, eventually,
    sender::{self, SECRET, Sender},
};

on_both_stores!(
    a_sender_may_change_its_key_at_any_moment_of_the_overlap,
    a_switch_under_fire_refuses_nothing_and_the_status_shows_what_each_key_verified,
);

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

/// Senders that post without a pause, each with the secret that is set, and what they were answered.
struct Fire {
    switched: AtomicBool,
    is_over: AtomicBool,
    sent: [AtomicUsize; 2],
}

impl Fire {
    async fn run(self: Arc<Self>, github: Sender, name: usize) -> anyhow::Result<()> {
        let mut number = 0;
        while !self.is_over.load(SeqCst) {
            // The senders change at different moments, as servers of one provider do.
            let next = self.switched.load(SeqCst) && number % (name + 2) != 0;
            let secret = if next { NEXT_SECRET } else { SECRET };
            let id = format!("{name}-{number}");
            // The same body under another id would be a repeat.
            let body = format!(r#"{{"id":"{id}"}}"#);
            let headers = sender::github(secret, &id, "push", &body)?;
            let answer = github.post(&headers, &body).await?;
            anyhow::ensure!(answer.status == 202, "{name}-{number}: {}", answer.status);
            self.sent[usize::from(next)].fetch_add(1, SeqCst);
            number += 1;
        }
        Ok(())
    }

    async fn reaches(&self, which: usize, count: usize) -> anyhow::Result<()> {
        eventually("the senders go on", async || {
            Ok((self.sent[which].load(SeqCst) >= count).then_some(()))
        })
        .await
    }
}

impl Ring {
    async fn status(&self) -> anyhow::Result<KeyRingStatus> {
        let request = GetKeyRingStatusRequest { name: format!("{}/keyRing", self.parent) };
        Ok(self.scene.client.key_rings().get_key_ring_status(request).await?.into_inner())
    }
}

async fn a_switch_under_fire_refuses_nothing_and_the_status_shows_what_each_key_verified(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &["--key-usage-interval", "1s"]).await?);
    let scene = Scene::set(&server).await?;
    // As fast as they can: nobody is to be told that it is too much.
    let limits = IntakeLimits {
        requests_per_second: 100_000,
        requests_per_second_per_address: 100_000,
        ..IntakeLimits::default()
    };
    let settings = Source { limits: Some(limits), ..Source::default() };
    let github = Sender::with(&scene, &server, "github", SECRET, settings).await?;
    let ring = Ring { scene, parent: github.source.name.clone() };
    let fire = Arc::new(Fire {
        switched: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
        sent: Default::default(),
    });
    let senders: Vec<_> =
        (0..3).map(|name| tokio::spawn(Arc::clone(&fire).run(github.clone(), name))).collect();
    fire.reaches(0, 20).await?;
    ring.stage(NEXT_SECRET).await?;
    // From here on the sender may change: before the activation, around it, and after it.
    fire.switched.store(true, SeqCst);
    fire.reaches(1, 20).await?;
    ring.activate().await?;
    fire.reaches(1, 40).await?;
    fire.is_over.store(true, SeqCst);
    for sender in senders {
        sender.await??;
    }
    let wanted = [1, 0].map(|which| i64::try_from(fire.sent[which].load(SeqCst)).unwrap_or(0));
    let told = eventually("the status shows what each key verified", async || {
        let status = ring.status().await?;
        let counted: Vec<i64> = status.keys.iter().map(|key| key.signatures).collect();
        Ok((counted == wanted).then_some(status))
    })
    .await?;
    assert_eq!(told.keys[0].state(), KeyState::Active);
    assert_eq!(told.keys[1].state(), KeyState::Retiring);
    assert!(told.keys.iter().all(|key| key.last_use_time.is_some()));
    assert!(!told.safe_to_retire, "it signed with the old key a moment ago");
    let reason = &told.safe_to_retire_reasons[0];
    assert!(reason.starts_with("The sender signed with"), "{reason}");
    // The counts that were not written yet are not lost with the process.
    let headers = sender::github(NEXT_SECRET, "last", "push", "{}")?;
    assert_eq!(github.post(&headers, "{}").await?.status, 202);
    tokio::time::timeout(Duration::from_secs(30), async {
        eventually("the last one is counted", async || {
            Ok((ring.status().await?.keys[0].signatures == wanted[0] + 1).then_some(()))
        })
        .await
    })
    .await?
}
