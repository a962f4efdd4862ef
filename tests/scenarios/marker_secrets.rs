//! Secrets with a mark, through everything that can be done with them: none may turn up in a log, a
//! metric, an error, a file or a column that is not made for it (I7).

use data_encoding::{BASE64, HEXLOWER};
use std::{collections::HashMap, path::Path, time::Duration};
use tonic::Status;
use turnbuckle_proto::v1::{
    ActivateKeyRequest, DeliveryState, Endpoint, GetKeyRingStatusRequest, HttpTarget,
    ListAuditEventsRequest, PauseRotationRequest, ResumeRotationRequest, RevealKeyRequest,
    RevokeKeyRequest, RewrapSecretsRequest, RollbackKeyRequest, RotateKeyRequest, StageKeyRequest,
    TestKeyRequest, endpoint::Target,
};
use turnbuckle_testkit::receiver::{Answer, Receiver, Script};
use turnbuckle_tests::{Scene, Server, StoreKind, http, http_endpoint};

on_both_stores!(marked_secrets_stay_where_they_belong);

/// Shown to those who may read the endpoint, and in no log.
const PATH: &str = "/mark-url-path";

/// Long enough for a signing key, and found in any text.
fn material(number: usize) -> String {
    format!("mark-signing-{number:02}-abcdefghijklmnop")
}

fn secret(number: usize) -> String {
    format!("whsec_{}", BASE64.encode(material(number).as_bytes()))
}

/// Every error seen, as a client gets it.
#[derive(Default)]
struct Seen(Vec<String>);

impl Seen {
    fn refused<T>(&mut self, answer: Result<T, Status>) {
        if let Some(status) = answer.err() {
            let details = String::from_utf8_lossy(status.details()).into_owned();
            self.0.push(format!("{} {details} {:?}", status.message(), status.metadata()));
        }
    }
}

struct Marked {
    scene: Scene,
    endpoint: Endpoint,
    seen: Seen,
}

impl Marked {
    async fn etag(&self) -> anyhow::Result<String> {
        Ok(self.scene.ring(&self.endpoint).await?.etag)
    }

    fn parent(&self) -> String {
        self.endpoint.name.clone()
    }

    async fn stage(&mut self, number: usize) -> anyhow::Result<()> {
        let (parent, etag) = (self.parent(), self.etag().await?);
        let request =
            StageKeyRequest { parent, etag, secret: secret(number), ..StageKeyRequest::default() };
        let made = self.scene.client.keys().stage_key(request.clone()).await?.into_inner();
        assert_eq!(made.secret, secret(number), "shown once, to whom it was given");
        // The same again: a stale etag, and a key that is on the ring.
        self.seen.refused(self.scene.client.keys().stage_key(request.clone()).await);
        let again = StageKeyRequest { etag: self.etag().await?, ..request };
        self.seen.refused(self.scene.client.keys().stage_key(again).await);
        Ok(())
    }

    async fn activate(&self) -> anyhow::Result<()> {
        let (parent, etag) = (self.parent(), self.etag().await?);
        let request = ActivateKeyRequest { parent, etag, ..ActivateKeyRequest::default() };
        self.scene.client.keys().activate_key(request).await?;
        Ok(())
    }

    /// Every verb, and every way in which a secret may be malformed.
    async fn every_verb(&mut self) -> anyhow::Result<()> {
        let scene = self.scene.clone();
        self.stage(1).await?;
        let test = TestKeyRequest { parent: self.parent(), key: String::new() };
        scene.client.key_tests().test_key(test.clone()).await?;
        self.seen.refused(scene.client.key_tests().test_key(test).await);
        self.activate().await?;
        let (parent, etag) = (self.parent(), self.etag().await?);
        let reason = "marked".to_owned();
        let pause = PauseRotationRequest { parent, etag, reason, ..Default::default() };
        scene.client.key_rings().pause_rotation(pause).await?;
        let (parent, etag) = (self.parent(), self.etag().await?);
        let resume = ResumeRotationRequest { parent, etag, ..Default::default() };
        scene.client.key_rings().resume_rotation(resume).await?;
        let (parent, etag) = (self.parent(), self.etag().await?);
        let rollback = RollbackKeyRequest { parent, etag, ..Default::default() };
        scene.client.keys().rollback_key(rollback).await?;
        let (parent, etag) = (self.parent(), self.etag().await?);
        let force = true;
        let rotate =
            RotateKeyRequest { parent, etag, secret: secret(2), force, ..Default::default() };
        scene.client.keys().rotate_key(rotate).await?;
        for bad in ["whsec_mark-signing-99", "whsk_mark-signing-99", "mark-signing-99 \u{1b}"] {
            let (parent, etag) = (self.parent(), self.etag().await?);
            let secret = bad.to_owned();
            let request = StageKeyRequest { parent, etag, secret, ..Default::default() };
            self.seen.refused(scene.client.keys().stage_key(request).await);
        }
        let ring = scene.ring(&self.endpoint).await?;
        let revealed =
            RevealKeyRequest { name: ring.keys[0].name.clone(), reason: "marked".into() };
        let shown = scene.client.key_rings().reveal_key(revealed).await?.into_inner();
        assert_eq!(shown.secret, secret(2));
        let revoke = RevokeKeyRequest {
            name: ring.keys[1].name.clone(),
            etag: ring.etag,
            reason: "marked".into(),
            ..RevokeKeyRequest::default()
        };
        scene.client.keys().revoke_key(revoke).await?;
        let name = format!("{}/keyRing", self.parent());
        let status = GetKeyRingStatusRequest { name };
        let status = scene.client.key_rings().get_key_ring_status(status).await?;
        self.seen.0.push(format!("{status:?}"));
        scene.client.keyring().rewrap_secrets(RewrapSecretsRequest::default()).await?;
        let list = ListAuditEventsRequest { parent: scene.tenant.clone(), ..Default::default() };
        let record = scene.client.audit().list_audit_events(list).await?;
        // The record shows where an endpoint is, without what may be a credential: the path stays.
        self.seen.0.push(format!("{record:?}").replace(PATH, ""));
        Ok(())
    }

    /// URLs and headers that are refused, and calls that are malformed.
    async fn every_mistake(&mut self, server: &Server) -> anyhow::Result<()> {
        let scene = self.scene.clone();
        for url in
            ["https://user:mark-url-password@example.com/", "mark-url-scheme://x", "http://["]
        {
            self.seen.refused(scene.create_endpoint("bad", http_endpoint(url)).await);
        }
        let mut bad = http_endpoint("https://example.com/");
        if let Some(Target::Http(http)) = &mut bad.target {
            http.headers.insert("x-key".into(), "mark-header-bad\n".into());
            http.headers.insert("bad name".into(), "mark-header-bad".into());
        }
        self.seen.refused(scene.create_endpoint("bad", bad).await);
        let token = server.home().token("admin", None)?;
        let broken = server.client_with(Some(format!("{token}mark-token"))).await?;
        let ring = turnbuckle_proto::v1::GetKeyRingRequest { name: "x".into() };
        self.seen.refused(broken.keys().get_key_ring(ring).await);
        for body in [
            format!("{{\"secret\": \"{}\", \"nonsense\": \"mark-json\"}}", secret(3)),
            format!("{{\"secret\": \"{}\"", secret(3)),
        ] {
            let path = "/turnbuckle.v1.Keys/StageKey";
            self.seen.0.push(http::post(server.api, path, &body).await?.body);
        }
        self.seen.refused(scene.publish("e", r#"{"card": "mark-payload-two"}"#).await);
        self.seen.refused(scene.publish("f", r#"{"card": "mark-payload-bad""#).await);
        Ok(())
    }
}

async fn marked_secrets_stay_where_they_belong(kind: StoreKind) -> anyhow::Result<()> {
    let options = ["--log", "trace,h2=info,hyper=info", "--allow-key-reveal"];
    let options = [&options[..], &["--key-usage-interval", "1s"]].concat();
    let server = or_skip!(Server::start(kind, &options).await?);
    let script = Script::sequence([Answer::status(500), Answer::reset(), Answer::status(200)]);
    let receiver = Receiver::start(script).await?;
    let scene = Scene::set(&server).await?;
    let retry_policy = scene.delays("quick", &[Duration::from_millis(10)], 9).await?;
    let http = HttpTarget {
        url: receiver.url(&format!("{PATH}?key=mark-url-query")),
        headers: HashMap::from([("x-api-key".to_owned(), "mark-header".to_owned())]),
        ..HttpTarget::default()
    };
    let target = Some(Target::Http(http));
    let endpoint = Endpoint { target, retry_policy, ..Endpoint::default() };
    let endpoint = scene.raw("shop", endpoint).await?;
    let mut marked = Marked { scene, endpoint, seen: Seen::default() };
    let event = marked.scene.publish("e", r#"{"card": "mark-payload"}"#).await?.name;
    marked.scene.ended(&event, DeliveryState::Delivered).await?;
    marked.every_verb().await?;
    marked.every_mistake(&server).await?;
    marked.scene.publish("g", r#"{"card": "mark-payload-three"}"#).await?;
    marked.scene.drained().await?;
    let metrics = server.metrics().await?;
    server.stop().await?;

    let errors = marked.seen.0.join("\n");
    assert!(marked.seen.0.len() > 12, "too little was refused:\n{errors}");
    let mut looked_for = vec!["mark-".to_owned()];
    for number in [1, 2, 3] {
        let bytes = material(number);
        looked_for.push(secret(number).trim_start_matches("whsec_").to_owned());
        looked_for.push(HEXLOWER.encode(bytes.as_bytes()));
    }
    looked_for.push(marked.endpoint.signing_secret.trim_start_matches("whsec_").to_owned());
    for (place, text) in [("log", &server.log()), ("metrics", &metrics), ("errors", &errors)] {
        for mark in &looked_for {
            let line = text.lines().find(|line| line.contains(mark.as_str()));
            assert!(line.is_none(), "{mark} is in the {place}: {line:?}");
        }
    }
    in_no_file(&server.home().data_dir(), &looked_for[1..])?;
    in_no_file(&server.home().data_dir(), &[1, 2, 3].map(material))?;
    if kind == StoreKind::Postgres {
        only_in_their_columns(&server, &looked_for[1..]).await?;
    }
    Ok(())
}

/// Signing keys are in no file of the data directory: not as text, and not as bytes.
fn in_no_file(directory: &Path, marks: &[String]) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let content = std::fs::read(&path)?;
        for mark in marks {
            let found = content.windows(mark.len()).any(|part| part == mark.as_bytes());
            assert!(!found, "{mark} is in {}", path.display());
        }
    }
    Ok(())
}

/// What a receiver is told is stored as it is, where it belongs and nowhere else. Signing keys are
/// stored nowhere.
async fn only_in_their_columns(server: &Server, signing: &[String]) -> anyhow::Result<()> {
    for mark in signing.iter().cloned().chain([1, 2, 3].map(material)) {
        assert_eq!(server.home().columns_with(&mark).await?, [""; 0], "{mark}");
    }
    for (mark, column) in [
        ("mark-header", "endpoint.headers"),
        ("mark-url-query", "endpoint.url"),
        ("mark-payload", "event.data"),
    ] {
        let columns = server.home().columns_with(mark).await?;
        assert!(
            columns.iter().any(|found| found == column),
            "{mark} is not looked for: {columns:?}"
        );
        for found in columns {
            // Tables of days are parts of the table that they are named after.
            let of_day = found.starts_with("event_") && found.ends_with(".data");
            assert!(found == column || (column == "event.data" && of_day), "{mark} is in {found}");
        }
    }
    Ok(())
}
