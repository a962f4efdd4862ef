//! The door of the ingress: strangers learn nothing at it, and cannot close it for others.

use anyhow::Context as _;
use std::time::Duration;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpSocket, TcpStream},
    task::JoinSet,
};
use turnbuckle_proto::v1::{
    CreateTenantRequest, EventMapping, IntakeLimits, ListReceiptsRequest, Source, UnprocessableMode,
};
use turnbuckle_testkit::proxy::Proxy;
use turnbuckle_tests::{
    Home, PATIENCE, Scene, Server, StoreKind, eventually,
    http::Answer,
    scene::proto,
    sender::{self, Header, SECRET, Sender},
};

const MIB: usize = 1024 * 1024;
/// A path that nobody has.
const NOWHERE: &str = "/in/00000000000000000000000000";

/// What a stranger sees of an answer: all but its date.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    status: u16,
    head: Vec<String>,
    body: String,
}

impl Seen {
    fn of(answer: Answer) -> Self {
        let lines = answer.head.lines().filter(|line| !line.starts_with("date:"));
        Self { status: answer.status, head: lines.map(str::to_owned).collect(), body: answer.body }
    }
}

/// Sources with default, wider and narrower limits.
async fn paths(scene: &Scene, server: &Server) -> anyhow::Result<Vec<(&'static str, String)>> {
    let wide = IntakeLimits {
        max_body_bytes: 4 * 1024 * 1024,
        max_header_bytes: 64 * 1024,
        max_headers: 256,
        requests_per_second: 10_000,
        requests_per_second_per_address: 10_000,
        connections_per_address: 1_000,
        ..IntakeLimits::default()
    };
    let narrow = IntakeLimits {
        max_body_bytes: 1_024,
        max_header_bytes: 1_024,
        max_headers: 5,
        read_timeout: Some(proto(Duration::from_secs(1))),
        ..IntakeLimits::default()
    };
    let of = async |preset: &str, limits| {
        let settings = Source { limits, ..Source::default() };
        let sender = Sender::with(scene, server, preset, SECRET, settings).await?;
        anyhow::Ok(sender.source.ingest_path)
    };
    Ok(vec![
        ("unknown", NOWHERE.to_owned()),
        ("default", of("github", None).await?),
        ("wide", of("linear", Some(wide)).await?),
        ("narrow", of("shopify", Some(narrow)).await?),
        // One that gives up on every 4xx, two that take gzip, one that is answered without a body.
        ("zoom", of("zoom", None).await?),
        ("gzip, decoded", of("stream-chat", None).await?),
        ("gzip, wire", of("nylas", None).await?),
        ("no body", of("xero", None).await?),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn no_probe_tells_a_known_path_from_an_unknown_one() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let paths = paths(&scene, &server).await?;
    let pad = |count: usize, bytes: usize| -> Vec<Header> {
        (0..count).map(|_| ("x-pad", "x".repeat(bytes))).collect()
    };
    let probes: [(&str, Vec<Header>, usize, u16); 11] = [
        ("nothing", vec![], 2, 401),
        ("content encoding", vec![("content-encoding", "br".into())], 2, 415),
        ("gzip", vec![("content-encoding", "gzip".into())], 2, 415),
        ("too large a body of gzip", vec![("content-encoding", "gzip".into())], MIB + 1, 413),
        ("media type", vec![("content-type", "image/png".into())], 2, 401),
        ("some headers", pad(20, 10), 2, 401),
        ("many headers", pad(120, 1), 2, 431),
        ("large head", pad(2, 10_000), 2, 431),
        (
            "large head, encoded",
            [pad(2, 10_000), vec![("content-encoding", "br".into())]].concat(),
            2,
            431,
        ),
        ("large body", vec![], MIB, 401),
        ("too large a body", vec![], MIB + 1, 413),
    ];
    for (name, headers, length, status) in probes {
        let body = vec![b'x'; length];
        let expected = Seen::of(sender::post(server.ingress, NOWHERE, &headers, &body).await?);
        assert_eq!(expected.status, status, "{name}");
        for (path_name, path) in &paths {
            let seen = Seen::of(sender::post(server.ingress, path, &headers, &body).await?);
            assert_eq!(seen, expected, "{name} at {path_name}");
        }
    }
    // What is announced and never sent: too large for anybody, and only too slow.
    for (length, status) in [(64 * MIB, 413), (2 * MIB, 408), (100, 408)] {
        let mut asked = JoinSet::new();
        for (name, path) in paths.clone() {
            let address = server.ingress;
            asked.spawn(async move { anyhow::Ok((name, stall(address, &path, length).await?.1)) });
        }
        while let Some(answer) = asked.join_next().await {
            let (name, answer) = answer??;
            assert_eq!(Seen::of(answer).status, status, "{length} at {name}");
        }
    }
    Ok(())
}

/// Announces a body, sends its first byte, and reads the answer.
async fn stall(
    address: std::net::SocketAddr,
    path: &str,
    length: usize,
) -> anyhow::Result<(TcpStream, Answer)> {
    let mut stream = begin(address, path, length).await?;
    let answer = tokio::time::timeout(PATIENCE, sender::answer(&mut stream)).await??;
    Ok((stream, answer))
}

async fn begin(
    address: std::net::SocketAddr,
    path: &str,
    length: usize,
) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\nx");
    stream.write_all(head.as_bytes()).await?;
    Ok(stream)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_is_answered_alike_at_every_path() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let mut seen = Vec::new();
    for (name, path) in paths(&scene, &server).await? {
        // As many as may be under way, a few for those that a question here takes the place of, and then
        // one more.
        let mut held = Vec::new();
        for _ in 0..64 + 8 {
            held.push(begin(server.ingress, &path, 100).await?);
        }
        let what = format!("there is one too many at {name}");
        let answer = eventually(&what, async || {
            let answer = sender::post(server.ingress, &path, &[], b"{}").await?;
            Ok((answer.status != 401).then_some(answer))
        });
        seen.push((name, Seen::of(answer.await?)));
        drop(held);
    }
    assert_eq!(seen[0].1.status, 503);
    assert!(seen[0].1.head.iter().any(|line| line == "retry-after: 1"), "{:?}", seen[0].1);
    for (name, one) in &seen {
        assert_eq!(one, &seen[0].1, "{name}");
    }
    Ok(())
}

/// A second tenant of the same server.
async fn other_tenant(scene: &Scene) -> anyhow::Result<Scene> {
    let tenant =
        CreateTenantRequest { tenant_id: "other".into(), tenant: None, ..Default::default() };
    scene.client.tenants().create_tenant(tenant).await?;
    Ok(Scene { tenant: "tenants/other".into(), ..scene.clone() })
}

/// Limits that no test meets.
fn unlimited() -> IntakeLimits {
    IntakeLimits {
        max_body_bytes: 4 * 1024 * 1024,
        requests_per_second: 100_000,
        requests_per_second_per_address: 100_000,
        connections_per_address: 4_096,
        ..IntakeLimits::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_bodies_of_one_source_cost_no_other_tenant_a_request() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let settings = Source { limits: Some(unlimited()), ..Source::default() };
    let flooded = Sender::with(&scene, &server, "github", SECRET, settings).await?;
    let other = other_tenant(&scene).await?;
    let honest = Sender::of(&other, &server, "github", SECRET).await?;
    let mut held = JoinSet::new();
    for _ in 0..70 {
        let (address, path) = (flooded.address(), flooded.source.ingest_path.clone());
        held.spawn(async move {
            let mut stream = begin(address, &path, 4 * MIB).await?;
            // Its end never comes; one that was told to come again is closed.
            drop(stream.write_all(&vec![b'x'; 4 * MIB - 2]).await);
            anyhow::Ok(stream)
        });
    }
    let mut streams = Vec::new();
    while let Some(stream) = held.join_next().await {
        streams.push(stream??);
    }
    for number in 0..20 {
        // Equal bodies under other ids are repeats.
        let body = format!(r#"{{"number":{number}}}"#);
        let headers = sender::github(SECRET, &format!("{number}"), "push", &body)?;
        assert_eq!(honest.post(&headers, &body).await?.status, 202);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_store_does_not_fill_the_memory() -> anyhow::Result<()> {
    const POSTS: usize = 300;
    let home = or_skip!(Home::new(StoreKind::Postgres).await?);
    let proxy = Proxy::start(home.database_address()?).await?;
    home.reach_database_by(proxy.address())?;
    let server = Server::start_in(&home, &[]).await?;
    let scene = Scene::set(&server).await?;
    let event = EventMapping { items: "events[*]".into(), ..EventMapping::default() };
    let settings = Source { limits: Some(unlimited()), event: Some(event), ..Source::default() };
    let sender = Sender::with(&scene, &server, "github", SECRET, settings).await?;
    let before = or_skip!(server.peak_memory());
    proxy.freeze();
    let mut posts = JoinSet::new();
    let mut unavailable = 0;
    for number in 0..POSTS {
        if posts.len() >= 20
            && let Some(status) = posts.join_next().await
        {
            unavailable += usize::from(matches!(status??, 503));
        }
        let sender = sender.clone();
        posts.spawn(async move {
            let pad = "x".repeat(200 * 1024);
            let items = (0..5)
                .map(|item| format!(r#"{{"id":"{number}-{item}","type":"a","pad":"{pad}"}}"#));
            let body = format!(r#"{{"events":[{}]}}"#, items.collect::<Vec<_>>().join(","));
            let headers = sender::github(SECRET, "m", "push", &body)?;
            anyhow::Ok(sender.post(&headers, &body).await?.status)
        });
    }
    while let Some(status) = posts.join_next().await {
        unavailable += usize::from(matches!(status??, 503));
    }
    assert_eq!(unavailable, POSTS);
    let grown = server.peak_memory().context("it was told before")? - before;
    assert!(grown < 200 * MIB as u64, "{} MiB", grown / MIB as u64);
    proxy.heal();
    eventually("it takes events again", async || {
        let body = r#"{"events":[{"id":"last","type":"a"}]}"#;
        let headers = sender::github(SECRET, "last", "push", body)?;
        Ok(matches!(sender.post(&headers, body).await?.status, 200 | 202).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_never_reads_its_answers_is_left() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let settings = Source { limits: Some(unlimited()), ..Source::default() };
    // Its question is answered with what it asked: the longest answer there is.
    let graph = Sender::with(&scene, &server, "microsoft-graph", SECRET, settings).await?;
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(1_024)?;
    let mut stream = socket.connect(graph.address()).await?;
    let question = format!("{}?validationToken={}", graph.source.ingest_path, "x".repeat(4_000));
    let request = format!("POST {question} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n");
    // Until nothing of it is taken any more: its answers have filled every buffer.
    let writing = async { while stream.write_all(request.as_bytes()).await.is_ok() {} };
    let stuck = tokio::time::timeout(PATIENCE, writing).await;
    assert!(stuck.is_ok(), "it was neither answered nor left");
    let connections = "turnbuckle_ingress_connections";
    eventually("it is left", async || Ok((server.metric(connections).await? == 0.0).then_some(())))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_trusted_proxy_each_sender_has_limits_of_its_own() -> anyhow::Result<()> {
    let limits = IntakeLimits { requests_per_second_per_address: 1, ..IntakeLimits::default() };
    let settings = Source { limits: Some(limits), ..Source::default() };
    for (trusted, second) in [(&["--trusted-proxy", "127.0.0.0/8"][..], 202), (&[], 503)] {
        let server = or_skip!(Server::start(StoreKind::Embedded, trusted).await?);
        let scene = Scene::set(&server).await?;
        let github = Sender::with(&scene, &server, "github", SECRET, settings.clone()).await?;
        let from = async |address: &str, id: &str| {
            // Equal bodies under other ids are repeats.
            let body = format!(r#"{{"id":{id}}}"#);
            let mut headers = sender::github(SECRET, id, "push", &body)?;
            headers.push(("x-forwarded-for", format!("198.51.100.1, {address}")));
            anyhow::Ok(github.post(&headers, &body).await?.status)
        };
        assert_eq!(from("203.0.113.1", "1").await?, 202);
        assert_eq!(from("203.0.113.1", "2").await?, 503);
        assert_eq!(from("203.0.113.2", "3").await?, second);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_strangers_leaves_few_receipts_and_no_dead_letter_waits_for_it()
-> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let settings = Source {
        limits: Some(unlimited()),
        unprocessable_mode: UnprocessableMode::DeadLetter.into(),
        ..Source::default()
    };
    let github = Sender::with(&scene, &server, "github", SECRET, settings).await?;
    let flood = tokio::spawn({
        let github = github.clone();
        async move {
            for _ in 0..150 {
                assert_eq!(github.post(&[], "{}").await?.status, 401);
            }
            anyhow::Ok(())
        }
    });
    for number in 0..10 {
        let headers = sender::github(SECRET, &format!("{number}"), "push", "no json")?;
        assert_eq!(github.post(&headers, "no json").await?.status, 202, "{number}");
    }
    flood.await??;
    let skipped = server.metric("turnbuckle_ingress_receipts_skipped_total").await?;
    assert!(skipped >= 30.0, "{skipped}");
    let receipts = eventually("receipts are written", async || {
        let request = ListReceiptsRequest {
            parent: scene.tenant.clone(),
            page_size: 1_000,
            ..Default::default()
        };
        let found = scene.client.receipts().list_receipts(request).await?.into_inner().receipts;
        Ok((found.len() >= 110).then_some(found))
    })
    .await?;
    assert!(receipts.len() < 130, "{}", receipts.len());
    Ok(())
}
