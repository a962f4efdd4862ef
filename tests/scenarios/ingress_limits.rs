//! Strangers at the door: slow, many, and too much. Nothing of it is parsed, and nobody else notices.

use anyhow::Context as _;
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use turnbuckle_proto::v1::{IntakeLimits, Source};
use turnbuckle_tests::{
    Scene, Server, StoreKind, eventually,
    sender::{self, Header, SECRET, Sender},
};

/// Slow connections at once.
const SLOW: usize = 1_000;
/// Addresses that they come from.
const ADDRESSES: usize = 4;
/// Longest time for a head, with what a busy machine adds.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// Memory that so many of them may take: some 20 KiB each, and as much again for everything else.
const GROWTH_MAX: u64 = 64 * 1024 * 1024;

/// A connection from an address of its own, so that limits by address do not meet the others'.
async fn from(address: [u8; 4], to: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((address, 0)))?;
    Ok(socket.connect(to).await?)
}

const STRANGER: [u8; 4] = [127, 0, 0, 2];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_slow_heads_and_bodies_take_bounded_memory_and_harm_nobody() -> anyhow::Result<()>
{
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let limits = IntakeLimits {
        connections_per_address: 4_096,
        requests_per_second: 100_000,
        requests_per_second_per_address: 100_000,
        ..Default::default()
    };
    let settings = Source { limits: Some(limits), ..Source::default() };
    let github = Sender::with(&scene, &server, "github", SECRET, settings).await?;
    let send = async |id: &str| {
        let body = format!(r#"{{"id":"{id}"}}"#);
        let headers = sender::github(SECRET, id, "push", &body)?;
        anyhow::Ok(github.post(&headers, &body).await?.status)
    };
    assert_eq!(send("before").await?, 202);
    let before = server.peak_memory().unwrap_or(0);
    let path = &github.source.ingest_path;
    let mut slow = Vec::with_capacity(SLOW);
    for number in 0..SLOW {
        // One address may not have so many.
        let address = [127, 0, 4, u8::try_from(number % ADDRESSES)? + 1];
        let mut stream = from(address, github.address()).await?;
        // Half of them never finish their head, half never their body.
        let start = match number / ADDRESSES % 2 {
            0 => format!("POST {path} HTTP/1.1\r\nhost: x\r\nx-slow: "),
            _ => format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n{{"),
        };
        stream.write_all(start.as_bytes()).await?;
        slow.push(stream);
    }
    eventually("all of them are open at once", async || {
        let open = server.metric("turnbuckle_ingress_connections").await?;
        Ok((open >= SLOW as f64).then_some(()))
    })
    .await?;
    assert_eq!(send("meanwhile").await?, 202);
    let grown = server.peak_memory().unwrap_or(0).saturating_sub(before);
    assert!(grown < GROWTH_MAX, "{grown} bytes for {SLOW} slow connections");
    // All of them are given up, with or without a word.
    for mut stream in slow {
        let mut rest = Vec::new();
        let read = timeout(HEAD_PATIENCE, stream.read_to_end(&mut rest)).await;
        drop(read.context("a slow connection is still open")?);
        let text = String::from_utf8_lossy(&rest);
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 408"), "{text}");
    }
    assert_eq!(send("after").await?, 202);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rates_and_heads_are_judged_before_anything_is_verified() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let limits = IntakeLimits {
        requests_per_second: 30,
        requests_per_second_per_address: 5,
        max_headers: 20,
        max_header_bytes: 2_048,
        ..Default::default()
    };
    let settings = Source { limits: Some(limits), ..Source::default() };
    let github = Sender::with(&scene, &server, "github", SECRET, settings).await?;
    let head = |extra: &str| {
        let path = &github.source.ingest_path;
        format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{extra}content-length: 2\r\n\r\n{{}}"
        )
    };
    // Limits narrower than the defaults hold for who is proven to be the sender.
    let signed: String = sender::github(SECRET, "long", "push", "{}")?
        .into_iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let ask = async |address: [u8; 4], text: String| {
        let mut stream = from(address, github.address()).await?;
        stream.write_all(text.as_bytes()).await?;
        sender::answer(&mut stream).await
    };
    let many: String = (0..30).map(|number| format!("x-{number}: 1\r\n")).collect();
    let long = format!("x-long: {}\r\n", "y".repeat(3_000));
    for (index, extra) in [many, long].into_iter().enumerate() {
        let last = u8::try_from(index + 1)?;
        let stranger = ask([127, 0, 1, last], head(&extra)).await?;
        assert_eq!(stranger.status, 401, "{}", stranger.body);
        let answer = ask([127, 0, 3, last], head(&format!("{signed}{extra}"))).await?;
        assert_eq!(answer.status, 431, "{}", answer.body);
    }
    // A burst from one address: five are looked at and not believed, the others not looked at.
    let mut statuses = Vec::new();
    for _ in 0..10 {
        let answer = ask(STRANGER, head("")).await?;
        if answer.status == 503 {
            assert!(answer.head.contains("retry-after: 1"), "{}", answer.head);
        }
        statuses.push(answer.status);
    }
    let limited = statuses.iter().filter(|status| **status == 503).count();
    assert!(limited >= 3 && statuses[..5] == [401; 5], "{statuses:?}");
    // The sender has another address, and its part of the rate.
    let headers: Vec<Header> = sender::github(SECRET, "mine", "push", "{}")?;
    assert_eq!(github.post(&headers, "{}").await?.status, 202);
    // Many addresses together: the rate of the source holds.
    let mut limited = 0;
    for number in 0..60 {
        let answer = ask([127, 0, 2, number + 1], head("")).await?;
        limited += usize::from(answer.status == 503);
    }
    assert!(limited > 0, "sixty requests at once passed a rate of thirty");
    Ok(())
}
