//! Bodies that come compressed, and answers that say nothing.

use anyhow::Context as _;
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use flate2::{Compression, write::GzEncoder};
use std::io::Write as _;
use turnbuckle_testkit::receiver::{Receiver, Script};
use turnbuckle_tests::{
    PATIENCE, Scene, Server, StoreKind,
    http::Answer,
    http_endpoint,
    sender::{self, SECRET, Sender, WRONG_SECRET},
};

const MIB: usize = 1024 * 1024;
/// Memory that bombs may take: what a few bodies of the largest allowed size take, and no more.
const GROWTH_MAX: u64 = 48 * MIB as u64;

on_both_stores!(a_compressed_body_is_verified_over_the_bytes_that_are_signed);

fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

/// The hexadecimal digits of a signature over these bytes.
fn signature(secret: &str, bytes: &[u8]) -> anyhow::Result<String> {
    let signature = sender::hub(secret, bytes)?;
    Ok(signature.strip_prefix("sha256=").context("a hub signature")?.to_owned())
}

/// Posts a compressed body with a signature over these bytes.
async fn post(to: &Sender, header: &'static str, body: &[u8], over: &[u8]) -> anyhow::Result<u16> {
    let headers = [("content-encoding", "gzip".to_owned()), (header, signature(SECRET, over)?)];
    let path = &to.source.ingest_path;
    Ok(sender::post(to.address(), path, &headers, body).await?.status)
}

async fn a_compressed_body_is_verified_over_the_bytes_that_are_signed(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let receiver = Receiver::start(Script::default()).await?;
    scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    for (preset, header, signs_wire) in
        [("nylas", "x-nylas-signature", true), ("stream-chat", "x-signature", false)]
    {
        let to = Sender::of(&scene, &server, preset, SECRET).await?;
        let body = format!(r#"{{"id":"{preset}-1","type":"message.new","text":"{preset}"}}"#);
        let sent = gzip(body.as_bytes())?;
        let (signed, other) = match signs_wire {
            true => (sent.as_slice(), body.as_bytes()),
            false => (body.as_bytes(), sent.as_slice()),
        };
        assert_eq!(post(&to, header, &sent, other).await?, 415, "{preset}");
        assert_eq!(post(&to, header, &sent, signed).await?, 202, "{preset}");
        assert_eq!(post(&to, header, &sent, signed).await?, 200, "{preset}");
        // What came is what the encoding makes of it, not what is inside of it, if that is broken.
        let cut = &sent[..sent.len() - 1];
        let over = if signs_wire { cut } else { signed };
        let expected = if signs_wire { 202 } else { 415 };
        assert_eq!(post(&to, header, cut, over).await?, expected, "{preset}, cut off");
        // The same sender without compression.
        let plain = body.replace("-1", "-2");
        let headers = [(header, signature(SECRET, plain.as_bytes())?)];
        assert_eq!(to.post(&headers, &plain).await?.status, 202, "{preset}");
    }
    let received = receiver.wait_for(4, PATIENCE).await?;
    for preset in ["nylas", "stream-chat"] {
        let expected = format!(r#"{{"id":"{preset}-1","type":"message.new","text":"{preset}"}}"#);
        let same = |one: &&turnbuckle_testkit::receiver::Received| one.body == expected.as_bytes();
        assert_eq!(received.iter().filter(same).count(), 1, "{preset}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decompression_bomb_is_left_at_the_size_of_its_source() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let wire = Sender::of(&scene, &server, "nylas", SECRET).await?;
    let decoded = Sender::of(&scene, &server, "stream-chat", SECRET).await?;
    // 512 MiB of zeros in half a megabyte.
    let bomb = gzip(&vec![0; 64 * MIB])?.repeat(8);
    assert!(bomb.len() < MIB);
    // What bodies of this size take anyway.
    for _ in 0..10 {
        let path = &wire.source.ingest_path;
        assert_eq!(sender::post(wire.address(), path, &[], &vec![b'x'; MIB]).await?.status, 401);
    }
    let before = or_skip!(server.peak_memory());
    for _ in 0..10 {
        // A stranger has no signature, and a sender gone wrong has one.
        assert_eq!(post(&decoded, "x-signature", &bomb, b"nothing").await?, 415);
        assert_eq!(post(&wire, "x-nylas-signature", &bomb, b"nothing").await?, 415);
        assert_eq!(post(&wire, "x-nylas-signature", &bomb, &bomb).await?, 413);
    }
    let grown = server.peak_memory().context("it was told before")?.saturating_sub(before);
    assert!(grown < GROWTH_MAX, "{} MiB", grown / MIB as u64);
    let body = br#"{"id":"1","type":"a"}"#;
    assert_eq!(post(&decoded, "x-signature", &gzip(body)?, body).await?, 202);
    Ok(())
}

fn is_silent(answer: &Answer, status: u16) -> bool {
    let has_type = answer.head.contains("\ncontent-type:");
    (answer.status, answer.body.as_str(), has_type) == (status, "", false)
}

#[tokio::test(flavor = "multi_thread")]
async fn xero_is_answered_without_a_word() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let xero = Sender::of(&scene, &server, "xero", SECRET).await?;
    let send = async |secret: &str, body: &str| {
        let mac = HEXLOWER_PERMISSIVE.decode(signature(secret, body.as_bytes())?.as_bytes())?;
        xero.post(&[("x-xero-signature", BASE64.encode(&mac))], body).await
    };
    // Its intent to receive: right and wrong signatures over a body without events.
    let question = r#"{"events":[],"firstEventSequence":0,"lastEventSequence":0}"#;
    let events = r#"{"events":[{"resourceId":"r","eventDateUtc":"2026-01-01T00:00:00","eventType":"UPDATE"}]}"#;
    for body in [question, events] {
        let refused = send(WRONG_SECRET, body).await?;
        assert!(is_silent(&refused, 401), "{refused:?}");
    }
    // Asked, accepted, and a repeat.
    for body in [question, events, events] {
        let answer = send(SECRET, body).await?;
        assert!(is_silent(&answer, 200), "{answer:?}");
    }
    Ok(())
}
