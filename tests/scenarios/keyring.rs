//! Key-encryption keys: moving secrets to another one under traffic and crashes, and starts with the
//! wrong keyring.

use crate::unix_now;
use anyhow::Context as _;
use data_encoding::BASE64;
use serde_json::{Value, json};
use tonic::Code;
use turnbuckle_client::Client;
use turnbuckle_proto::v1::{
    Endpoint, GetKeyringStatusRequest, KeyEncryptionKey, KeyringStatus, RewrapSecretsRequest,
    RotateKeyRequest,
};
use turnbuckle_signing::{Profile, VerifyOptions, VerifyingKey, verify};
use turnbuckle_testkit::receiver::{Receiver, Script};
use turnbuckle_tests::{
    Home, PATIENCE, Scene, Server, StoreKind, eventually, home::run_ok, http_endpoint,
};

on_both_stores!(
    secrets_move_to_another_key_through_crashes_and_the_old_key_may_go,
    a_keyring_that_is_not_the_stores_is_refused_by_every_role,
);

/// Endpoints beside the one that is delivered to; more than a page.
const OTHERS: usize = 60;

/// Changes the keyring file as an operator would.
fn edit(home: &Home, change: impl FnOnce(&mut Value)) -> anyhow::Result<()> {
    let path = home.data_dir().join("keyring.json");
    let mut keyring: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    change(&mut keyring);
    Ok(std::fs::write(&path, keyring.to_string())?)
}

fn key(id: &str, byte: u8) -> Value {
    json!({ "id": id, "key": BASE64.encode(&[byte; 32]) })
}

fn add_primary(keyring: &mut Value, id: &str, byte: u8) {
    if let Some(keys) = keyring["keys"].as_array_mut() {
        keys.push(key(id, byte));
    }
    keyring["primary"] = json!(id);
}

async fn status(client: &Client) -> anyhow::Result<KeyringStatus> {
    Ok(client.keyring().get_keyring_status(GetKeyringStatusRequest {}).await?.into_inner())
}

fn records(status: &KeyringStatus, id: &str) -> i64 {
    let of = |key: &&KeyEncryptionKey| key.id == id;
    status.keys.iter().find(of).map_or(-1, |key| key.records)
}

/// What the log of a server says that does not start.
async fn refusal(home: &Home, extra: &[&str]) -> anyhow::Result<String> {
    let process = Server::spawn(home, extra)?;
    let status = process.exit(PATIENCE).await?;
    anyhow::ensure!(!status.success(), "it started");
    let missing = process.wait_for_line(PATIENCE, |_| None::<()>).await;
    Ok(missing.err().map(|error| error.to_string()).unwrap_or_default())
}

async fn secrets_move_to_another_key_through_crashes_and_the_old_key_may_go(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let home = std::sync::Arc::clone(server.home());
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    let shop = scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    for number in 0..OTHERS {
        let unused = http_endpoint("http://127.0.0.1:9/");
        scene.create_endpoint(&format!("other-{number}"), unused).await?;
    }
    let all = i64::try_from(OTHERS + 1)?;
    let before = status(&scene.client).await?;
    assert_eq!((records(&before, "k1"), before.rewrap.is_none()), (all, true));
    server.stop().await?;

    edit(&home, |keyring| add_primary(keyring, "k2", 2))?;
    let server = Server::start_in(&home, &[]).await?;
    let scene = Scene::of(&server).await?;
    let bound = server.client_with(Some(home.token("admin", Some("acme"))?)).await?;
    let ask = GetKeyringStatusRequest {};
    let denied = bound.keyring().get_keyring_status(ask).await.err().context("not refused")?;
    assert_eq!(denied.code(), Code::PermissionDenied, "it is about all tenants");
    let some = RewrapSecretsRequest { max_records: 20 };
    let answer = scene.client.keyring().rewrap_secrets(some).await?.into_inner();
    assert!(!answer.done && answer.progress.unwrap_or_default().moved == 20);
    server.kill().await?;

    // Killed in the middle of a run, and once more wherever that meets it.
    let server = Server::start_in(&home, &[]).await?;
    let client = server.client().await?;
    let half = status(&client).await?;
    assert_eq!((records(&half, "k1"), records(&half, "k2")), (all - 20, 20));
    let running = tokio::spawn(async move {
        client.keyring().rewrap_secrets(RewrapSecretsRequest { max_records: 25 }).await
    });
    server.kill().await?;
    // The answer may have come before the end.
    drop(running.await?);

    // Taken out too early: refused, with what is under it and the remedy.
    let full = std::fs::read(home.data_dir().join("keyring.json"))?;
    edit(&home, |keyring| keyring["keys"] = json!([key("k2", 2)]))?;
    let log = refusal(&home, &[]).await?;
    assert!(log.contains("key k1 is not in the keyring, but"), "{log}");
    assert!(log.contains("turnbuckle keyring rewrap"), "{log}");
    std::fs::write(home.data_dir().join("keyring.json"), full)?;

    // It goes on where it was, beside traffic and rotations.
    let server = Server::start_in(&home, &[]).await?;
    let scene = Scene::of(&server).await?;
    let new = everything_at_once(&scene, &shop).await?;
    let done = status(&scene.client).await?;
    assert_eq!((records(&done, "k1"), records(&done, "k2")), (0, all + 1), "{done:?}");
    assert!(done.keys[0].droppable && done.summary.contains("it may be taken out"), "{done:?}");
    the_shell_shows_it_and_the_record_too(&server, &home)?;
    server.stop().await?;

    edit(&home, |keyring| keyring["keys"] = json!([key("k2", 2)]))?;
    let server = Server::start_in(&home, &[]).await?;
    let scene = Scene::of(&server).await?;
    scene.publish("after", "{}").await?;
    scene.drained().await?;
    let last = receiver.received().pop().context("nothing came")?;
    for secret in [&shop.signing_secret, &new] {
        let (key, options) = (VerifyingKey::parse(secret)?, VerifyOptions::at(unix_now()));
        verify(Profile::StandardWebhooks, &[key], &last.headers, &last.body, &options)?;
    }
    server.stop().await
}

/// Everything was moved: another run moves nothing, and whoever asked is on record.
fn the_shell_shows_it_and_the_record_too(server: &Server, home: &Home) -> anyhow::Result<()> {
    let url = format!("http://{}", server.api);
    let token = home.token("admin", None)?;
    let run = |line: &[&str]| run_ok(&[&["--server", &url, "--token", &token][..], line].concat());
    let shown = run(&["keyring", "rewrap"])?;
    assert!(shown.contains("Nothing is under k1: it may be taken out."), "{shown}");
    let record = run(&["audit", "list", "--platform", "-o", "json"])?;
    assert!(record.contains("RewrapSecrets") && record.contains("rewrap.to"), "{record}");
    Ok(())
}

/// Two runners to the end, a rotation and an event, all at the same time. Gives the new key.
async fn everything_at_once(scene: &Scene, shop: &Endpoint) -> anyhow::Result<String> {
    let (one, two) = (scene.client.clone(), scene.client.clone());
    let rotate = RotateKeyRequest {
        parent: shop.name.clone(),
        etag: scene.ring(shop).await?.etag,
        ..RotateKeyRequest::default()
    };
    let whole = RewrapSecretsRequest::default();
    let (mut first, mut second, mut keys) = (one.keyring(), two.keyring(), scene.client.keys());
    let (first, second, rotated, published) = tokio::join!(
        first.rewrap_secrets(whole),
        second.rewrap_secrets(whole),
        keys.rotate_key(rotate),
        scene.publish("during", "{}"),
    );
    assert!(first?.into_inner().done && second?.into_inner().done);
    published?;
    Ok(rotated?.into_inner().secret)
}

async fn a_keyring_that_is_not_the_stores_is_refused_by_every_role(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let home = std::sync::Arc::clone(server.home());
    Scene::set(&server)
        .await?
        .create_endpoint("shop", http_endpoint("http://127.0.0.1:9/"))
        .await?;
    server.stop().await?;
    let right = std::fs::read(home.data_dir().join("keyring.json"))?;
    for role in ["all", "control-plane", "delivery", "ingress"] {
        edit(&home, |keyring| keyring["keys"] = json!([key("k1", 9)]))?;
        let log = refusal(&home, &["--roles", role]).await?;
        assert!(log.contains("key k1 of the keyring is not the key of that id"), "{role}: {log}");
        edit(&home, |keyring| {
            keyring["keys"] = json!([key("k7", 7)]);
            keyring["primary"] = json!("k7");
        })?;
        let log = refusal(&home, &["--roles", role]).await?;
        assert!(log.contains("none of the keys that sealed the secrets"), "{role}: {log}");
        assert!(!log.contains(&BASE64.encode(&[7; 32])));
        std::fs::write(home.data_dir().join("keyring.json"), &right)?;
    }
    if kind == StoreKind::Postgres {
        // A store that was used before there were such records: its secrets tell.
        home.execute("delete from keyring_canary").await?;
        edit(&home, |keyring| keyring["keys"] = json!([key("k1", 9)]))?;
        let log = refusal(&home, &[]).await?;
        assert!(log.contains("key k1 of the keyring is not the key of that id"), "{log}");
        std::fs::write(home.data_dir().join("keyring.json"), &right)?;
    }
    let server = Server::start_in(&home, &[]).await?;
    eventually("it serves again", async || Ok(Scene::of(&server).await.ok())).await?;
    server.stop().await
}
