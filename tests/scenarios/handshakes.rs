//! Questions that senders ask before they send: each answered as its sender documents it, on a port.

use crate::unix_now;
use turnbuckle_proto::v1::{
    GetKeyRingRequest, HandshakeMode, KeyState, ListAuditEventsRequest, Source, TestSourceRequest,
};
use turnbuckle_signing::scheme::{Context, SampleOrder, Verifier, Wish, preset};
use turnbuckle_tests::{
    Apart, Scene, Server, StoreKind, eventually,
    http::Answer,
    sender::{self, SECRET, Sender, WRONG_SECRET},
};

on_both_stores!(
    a_secret_that_the_sender_chooses_is_learned_once_and_used_at_once,
    the_token_of_notion_becomes_its_key,
);

/// A request that the sender of a preset would sign, with these values.
fn signed(name: &str, secret: &str, wishes: &[(&str, &str)]) -> anyhow::Result<Signed> {
    let preset = preset(name).ok_or_else(|| anyhow::anyhow!("no preset {name}"))?;
    let verifier = Verifier::new(preset.scheme.clone())?;
    let wishes: Vec<Wish> = wishes
        .iter()
        .map(|(at, text)| Ok(Wish { at: at.parse()?, items: None, text: (*text).to_owned() }))
        .collect::<anyhow::Result<_>>()?;
    let context = Context { now_unix_ms: unix_now() * 1000, settings: &[] };
    let order =
        SampleOrder { url: "https://h.example/x", message_id: "m_1", wishes: &wishes, context };
    let sample = verifier.sample(&verifier.key(secret)?, &order)?;
    let headers = sample.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    Ok(Signed { headers: headers.collect(), body: String::from_utf8(sample.body)? })
}

struct Signed {
    headers: String,
    body: String,
}

struct Asker {
    server: Server,
    scene: Scene,
}

impl Asker {
    async fn new() -> anyhow::Result<Option<Self>> {
        let Some(server) = Server::start(StoreKind::Embedded, &[]).await? else { return Ok(None) };
        let scene = Scene::set(&server).await?;
        Ok(Some(Self { server, scene }))
    }

    async fn source(&self, preset: &str, texts: &[(&str, &str)]) -> anyhow::Result<Sender> {
        let texts = texts.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let settings = Source { scheme_settings: texts.collect(), ..Source::default() };
        Sender::with(&self.scene, &self.server, preset, SECRET, settings).await
    }
}

/// Sends any request to the path of a source.
async fn ask(
    sender: &Sender,
    method: &str,
    query: &str,
    headers: &str,
    body: &str,
) -> anyhow::Result<Answer> {
    use tokio::io::AsyncWriteExt as _;
    let mut stream = tokio::net::TcpStream::connect(sender.address()).await?;
    let path = &sender.source.ingest_path;
    let head = format!(
        "{method} {path}{query} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{headers}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    sender::answer(&mut stream).await
}

fn json(answer: &Answer) -> anyhow::Result<serde_json::Value> {
    Ok(serde_json::from_str(&answer.body)?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn challenges_in_signed_requests_are_echoed_and_others_refused() -> anyhow::Result<()> {
    let asker = or_skip!(Asker::new().await?);
    let slack = asker.source("slack", &[]).await?;
    let wishes = [("json:type", "url_verification"), ("json:challenge", "3eZbrw1a")];
    let good = signed("slack", SECRET, &wishes)?;
    let answer = ask(&slack, "POST", "", &good.headers, &good.body).await?;
    assert_eq!((answer.status, answer.body.as_str()), (200, "3eZbrw1a"));
    let forged = signed("slack", WRONG_SECRET, &wishes)?;
    assert_eq!(ask(&slack, "POST", "", &forged.headers, &forged.body).await?.status, 401);

    let twitch = asker.source("twitch", &[]).await?;
    let kind = "header:twitch-eventsub-message-type";
    let wishes = [(kind, "webhook_callback_verification"), ("json:challenge", "pogchamp-kappa")];
    let good = signed("twitch", SECRET, &wishes)?;
    let answer = ask(&twitch, "POST", "", &good.headers, &good.body).await?;
    assert_eq!((answer.status, answer.body.as_str()), (200, "pogchamp-kappa"));
    assert!(answer.head.contains("content-type: text/plain"), "{}", answer.head);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zoom_is_answered_with_the_key_that_it_signs_with() -> anyhow::Result<()> {
    const NEXT: &str = "the secret that follows the first";
    let asker = or_skip!(Asker::new().await?);
    let zoom = asker.source("zoom", &[]).await?;
    let keys = asker.scene.client.keys();
    let ring = GetKeyRingRequest { name: format!("{}/keyRing", zoom.source.name) };
    let etag = keys.clone().get_key_ring(ring).await?.into_inner().etag;
    let stage = turnbuckle_proto::v1::StageKeyRequest {
        parent: zoom.source.name.clone(),
        etag,
        secret: NEXT.to_owned(),
        ..Default::default()
    };
    keys.clone().stage_key(stage).await?;
    let token = "qgg8vlvZRS6UYooatFL8Aw";
    let wishes = [("json:event", "endpoint.url_validation"), ("json:payload.plainToken", token)];
    for secret in [SECRET, NEXT] {
        let question = signed("zoom", secret, &wishes)?;
        let answer = ask(&zoom, "POST", "", &question.headers, &question.body).await?;
        let told = json(&answer)?;
        assert_eq!((answer.status, &told["plainToken"]), (200, &token.into()));
        // GitHub's preset makes the same MAC of a body that is the token alone.
        assert_eq!(told["encryptedToken"], mac(secret, token)?, "{secret}");
    }
    Ok(())
}

/// HMAC-SHA256 in hex, made by the other half of the crate.
fn mac(secret: &str, text: &str) -> anyhow::Result<String> {
    let key = turnbuckle_signing::SigningKey::hmac(secret.as_bytes())?;
    let message = turnbuckle_signing::Message { id: "unused", timestamp: 0, body: text.as_bytes() };
    let options = turnbuckle_signing::SignerOptions::default();
    let headers = turnbuckle_signing::sign(
        turnbuckle_signing::Profile::HubSha256,
        &[key],
        &message,
        &options,
    )?;
    let value = headers.into_iter().map(|(_, value)| value).next().unwrap_or_default();
    Ok(value.trim_start_matches("sha256=").to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_in_the_query_are_answered_only_as_asked() -> anyhow::Result<()> {
    let asker = or_skip!(Asker::new().await?);
    let token = [("verify_token", "a token of ours")];
    for preset in ["meta", "messenger"] {
        let meta = asker.source(preset, &token).await?;
        let query = |token: &str| {
            format!("?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token={token}")
        };
        let answer = ask(&meta, "GET", &query("a+token+of+ours"), "", "").await?;
        assert_eq!((answer.status, answer.body.as_str()), (200, "1158201444"));
        assert_eq!(ask(&meta, "GET", &query("a+guess"), "", "").await?.status, 401);
    }
    for preset in ["dropbox", "nylas"] {
        let source = asker.source(preset, &[]).await?;
        let answer = ask(&source, "GET", "?challenge=abc%2D123", "", "").await?;
        assert_eq!((answer.status, answer.body.as_str()), (200, "abc-123"), "{preset}");
        assert!(answer.head.contains("x-content-type-options: nosniff"), "{}", answer.head);
        // No page is made of it.
        let page = ask(&source, "GET", "?challenge=%3Cscript%3E", "", "").await?;
        assert_eq!(page.status, 401, "{preset}");
    }
    let graph = asker.source("microsoft-graph", &[]).await?;
    let question = "?validationToken=Validation%3A+Testing+client";
    let answer = ask(&graph, "POST", question, "content-type: text/plain\r\n", "").await?;
    assert_eq!((answer.status, answer.body.as_str()), (200, "Validation: Testing client"));
    assert!(answer.head.contains("content-type: text/plain"), "{}", answer.head);
    let x = asker.source("x", &[]).await?;
    let answer = ask(&x, "GET", "?crc_token=challenge_string", "", "").await?;
    assert_eq!(answer.status, 200);
    assert!(json(&answer)?["response_token"].as_str().is_some_and(|t| t.starts_with("sha256=")));
    // A body in the shape of a challenge is not signed for anybody.
    let form = ask(&x, "GET", "?crc_token=type%3Devent", "", "").await?;
    assert_eq!(form.status, 401);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn braintree_is_answered_and_signs_no_payload_for_strangers() -> anyhow::Result<()> {
    let asker = or_skip!(Asker::new().await?);
    let source = asker.source("braintree", &[("public_key", "our-public-key")]).await?;
    let answer =
        ask(&source, "GET", "?bt_challenge=20f9f8ed05f77439fe955c977e4c8a53", "", "").await?;
    assert_eq!(answer.status, 200);
    assert!(answer.body.starts_with("our-public-key|"), "{}", answer.body);
    // A payload: base64 of XML.
    let payload = "PG5vdGlmaWNhdGlvbj48L25vdGlmaWNhdGlvbj4%3D";
    let stolen = ask(&source, "GET", &format!("?bt_challenge={payload}"), "", "").await?;
    assert_eq!(stolen.status, 401);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_headers_and_heartbeats_are_answered() -> anyhow::Result<()> {
    let asker = or_skip!(Asker::new().await?);
    let trello = asker.source("trello", &[]).await?;
    assert_eq!(ask(&trello, "HEAD", "", "", "").await?.status, 200);
    let okta = asker.source("okta", &[]).await?;
    let header = "x-okta-verification-challenge: abc123\r\n";
    let answer = ask(&okta, "GET", "", header, "").await?;
    assert_eq!((answer.status, &json(&answer)?["verification"]), (200, &"abc123".into()));

    let xero = asker.source("xero", &[]).await?;
    let heartbeat = |secret: &str| -> anyhow::Result<Signed> {
        // The sample maker has no empty array, so the header of an equal body is made by hand.
        let body = r#"{"events":[],"entropy":"S0m3r4N3t3xt"}"#.to_owned();
        let hex = mac(secret, &body)?;
        let bytes = data_encoding::HEXLOWER.decode(hex.as_bytes())?;
        let value = data_encoding::BASE64.encode(&bytes);
        Ok(Signed { headers: format!("x-xero-signature: {value}\r\n"), body })
    };
    let good = heartbeat(SECRET)?;
    let answer = ask(&xero, "POST", "", &good.headers, &good.body).await?;
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    let wrong = heartbeat(WRONG_SECRET)?;
    assert_eq!(ask(&xero, "POST", "", &wrong.headers, &wrong.body).await?.status, 401);
    Ok(())
}

const OFFERED: &str = "ba3a3ea8ee20b2bfa4fc7d02bd80ac14";

async fn a_secret_that_the_sender_chooses_is_learned_once_and_used_at_once(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let asana = Sender::of(&scene, &server, "asana", "").await?;
    let offer = |secret: &str| format!("x-hook-secret: {secret}\r\n");
    let body = r#"{"events":[{"action":"added"}]}"#;
    let signed = |secret: &str| anyhow::Ok(format!("x-hook-signature: {}\r\n", mac(secret, body)?));
    // Without a key nothing can be judged, and a sender takes a refusal as the last word.
    assert_eq!(ask(&asana, "POST", "", &signed(OFFERED)?, body).await?.status, 503);
    let answer = ask(&asana, "POST", "", &offer(OFFERED), "{}").await?;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(answer.head.contains(&format!("x-hook-secret: {OFFERED}")), "{}", answer.head);
    // In use with the answer.
    let taken = ask(&asana, "POST", "", &signed(OFFERED)?, body).await?;
    assert_eq!(taken.status, 202, "{}", taken.body);
    // Another one never replaces it.
    assert_eq!(
        ask(&asana, "POST", "", &offer("another secret, which comes too late"), "{}").await?.status,
        401
    );
    assert_eq!(
        ask(&asana, "POST", "", &signed("another secret, which comes too late")?, body)
            .await?
            .status,
        401
    );
    let name = format!("{}/keyRing", asana.source.name);
    let ring = scene.client.keys().get_key_ring(GetKeyRingRequest { name }).await?.into_inner();
    assert_eq!((ring.keys.len(), ring.keys[0].state()), (1, KeyState::Active));
    let list = ListAuditEventsRequest {
        parent: scene.tenant.clone(),
        ..ListAuditEventsRequest::default()
    };
    let entries = scene.client.audit().list_audit_events(list).await?.into_inner().audit_events;
    let learned = entries.iter().find(|entry| entry.reason.contains("learned from the sender"));
    let learned = learned.ok_or_else(|| anyhow::anyhow!("not in the record: {entries:?}"))?;
    assert!(!format!("{learned:?}").contains(OFFERED));
    assert!(!server.log().contains(OFFERED));
    Ok(())
}

async fn the_token_of_notion_becomes_its_key(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let notion = Sender::of(&scene, &server, "notion", "").await?;
    let body = r#"{"verification_token":"secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl"}"#;
    let answer = ask(&notion, "POST", "", "content-type: application/json\r\n", body).await?;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let event = signed(
        "notion",
        "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl",
        &[("json:type", "page.created")],
    )?;
    let taken = ask(&notion, "POST", "", &event.headers, &event.body).await?;
    assert_eq!(taken.status, 202, "{}", taken.body);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_answers_no_handshakes_learns_nothing() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let settings = Source { handshake_mode: HandshakeMode::Off.into(), ..Source::default() };
    let asana = Sender::with(&scene, &server, "asana", "", settings).await?;
    let offer = format!("x-hook-secret: {OFFERED}\r\n");
    assert_eq!(ask(&asana, "POST", "", &offer, "{}").await?.status, 503);
    let name = format!("{}/keyRing", asana.source.name);
    let ring = scene.client.keys().get_key_ring(GetKeyRingRequest { name }).await?.into_inner();
    assert!(ring.keys.is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_secrets_offered_at_once_one_is_taken() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let asana = Sender::of(&scene, &server, "asana", "").await?;
    let mut offers = tokio::task::JoinSet::new();
    for number in 0..10 {
        let asana = asana.clone();
        offers.spawn(async move {
            let offer = format!("x-hook-secret: secret-number-{number}\r\n");
            ask(&asana, "POST", "", &offer, "{}").await.map(|answer| answer.status)
        });
    }
    let mut taken = 0;
    while let Some(status) = offers.join_next().await {
        taken += usize::from(status?? == 200);
    }
    assert_eq!(taken, 1);
    Ok(())
}

/// The door writes the key through the store; the control plane, which listens to no sender, tries
/// samples with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ingress_of_its_own_learns_and_the_control_plane_tests_what_it_learned()
-> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let door = apart.node("ingress", "door-1").await?;
    let scene = apart.scene().await?;
    let asana = Sender::of(&scene, &door, "asana", "").await?;
    let offer = format!("x-hook-secret: {OFFERED}\r\n");
    eventually("the door knows the source and learns", async || {
        let answer = ask(&asana, "POST", "", &offer, "{}").await?;
        Ok((answer.status == 200).then_some(()))
    })
    .await?;
    let body = r#"{"events":[{"action":"added"}]}"#;
    let headers = format!("x-hook-signature: {}\r\n", mac(OFFERED, body)?);
    eventually("the key is in use at the door", async || {
        let answer = ask(&asana, "POST", "", &headers, body).await?;
        Ok((answer.status == 202).then_some(()))
    })
    .await?;
    eventually("the control plane tries a sample with it", async || {
        let request =
            TestSourceRequest { name: asana.source.name.clone(), ..TestSourceRequest::default() };
        let answer = scene.client.source_tests().test_source(request).await?.into_inner();
        Ok((answer.accepted && !answer.key.is_empty()).then_some(()))
    })
    .await?;
    Ok(())
}
