//! How a large configuration, and many nodes, are served. Measurements: run them by name, alone.

use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use turnbuckle_client::Client;
use turnbuckle_proto::v1::{
    HttpTarget, UpdateEndpointRequest, WatchRequest, endpoint::Target, watch_response::Message,
};
use turnbuckle_tests::{Apart, Home, PATIENCE, StoreKind, http_endpoint};

/// What the measures of the project ask for.
const ENDPOINTS: usize = 10_000;
/// Nodes that follow one control plane.
const NODES: usize = 10;
/// Changes that are timed.
const CHANGES: i32 = 40;
/// The measure: nearly every change is everywhere within this.
const P99: Duration = Duration::from_secs(2);

/// Ten thousand endpoints with a key each, and two subscriptions of each, without the way through the
/// API.
const FILL: &str = "
with t as (
  insert into tenant (id, slug, display_name, labels, created_at_us, updated_at_us, revision)
  values (gen_random_uuid(), 'acme', 'Acme', '{}', 1, 1, 1) returning id
), y as (
  insert into event_type (id, tenant_id, type_name, description, labels, created_at_us,
                          updated_at_us, revision)
  select gen_random_uuid(), id, 'order.paid', '', '{}', 1, 1, 1 from t
), e as (
  insert into endpoint (id, tenant_id, slug, display_name, url, timeout_us, headers, header_prefix,
                        signature_profile, max_in_flight, state, labels, created_at_us,
                        updated_at_us, revision)
  select gen_random_uuid(), t.id, 'e-' || n, 'Orders of shop ' || n,
         'https://receiver-' || n || '.example.com/hooks/orders', 15000000, '{}', 'webhook',
         'standard-webhooks', 16, 'active', '{\"team\":\"payments\"}', 1, 1, 2
  from t, generate_series(1, 10000) n
  returning id, tenant_id, slug
), r as (
  insert into key_ring (endpoint_id, tenant_id, revision)
  select id, tenant_id, 2 from e returning endpoint_id, tenant_id
), k as (
  insert into signing_key (id, tenant_id, endpoint_id, position, state, algorithm, fingerprint,
                           secret, created_at_us, activated_at_us)
  select gen_random_uuid(), tenant_id, endpoint_id, 0, 'active', 'hmac-sha256', '0123456789abcdef',
         decode(repeat('ab', 150), 'hex'), 1, 1
  from r
), s as (
  insert into subscription (id, tenant_id, slug, endpoint_id, patterns, format, labels,
                            created_at_us, updated_at_us, revision)
  select gen_random_uuid(), tenant_id, slug || '-' || n, id, '[\"order.*\"]', 0, '{}', 1, 1, 2
  from e, generate_series(1, 2) n
)
update config_revision set revision = 2";

/// Loads the snapshot as a node does, and says how long that took from the call on.
async fn load(client: &Client, node: &str) -> anyhow::Result<(Duration, i64, usize)> {
    let begun = Instant::now();
    let request = WatchRequest { node: node.into(), role: 1, ..WatchRequest::default() };
    let mut stream = client.configuration().watch(request).await?.into_inner();
    let mut bytes = 0;
    while let Some(message) = stream.message().await? {
        match message.message {
            Some(Message::SnapshotChunk(chunk)) => {
                bytes += chunk.resources.iter().map(Vec::len).sum::<usize>();
            }
            Some(Message::SnapshotEnd(end)) => return Ok((begun.elapsed(), end.count, bytes)),
            _ => {}
        }
    }
    anyhow::bail!("the stream ended early")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: run it alone"]
async fn a_large_snapshot_is_loaded_quickly_and_in_little_memory() -> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Postgres).await?);
    let empty = Apart::start_in(&home).await?;
    let small = empty.node("delivery", "small").await?;
    let base = small.peak_memory().unwrap_or_default();
    small.stop().await?;
    home.execute(FILL).await?;
    let apart = Apart::start_in(&home).await?;
    let client =
        apart.control.client_with(Some(home.token_of("delivery/bare", "node", None)?)).await?;
    let (first, count, bytes) = load(&client, "bare").await?;
    let (second, ..) = load(&client, "bare").await?;
    assert_eq!(usize::try_from(count)?, ENDPOINTS * 4 + 2);
    let begun = Instant::now();
    let node = apart.node("delivery", "large").await?;
    let started = begun.elapsed();
    apart.applied(1).await?;
    let peak = node.peak_memory().unwrap_or_default();
    node.stop().await?;
    let begun = Instant::now();
    let again = apart.node("delivery", "large").await?;
    let from_file = begun.elapsed();
    let mib = |bytes: u64| bytes / 1024 / 1024;
    eprintln!(
        "snapshot: {count} resources, {bytes} bytes, received in {first:?}, again in {second:?}; \
         process up with it in {started:?}, from its file in {from_file:?}; peak memory {} MiB, \
         {} MiB with nothing; from the file {} MiB",
        mib(peak),
        mib(base),
        mib(again.peak_memory().unwrap_or_default()),
    );
    Ok(())
}

/// Follows and tells when each revision came.
async fn follow(client: Client, node: String, last: i64) -> anyhow::Result<Vec<(i64, Instant)>> {
    let request = WatchRequest { node, role: 1, ..WatchRequest::default() };
    let mut stream = client.configuration().watch(request).await?.into_inner();
    let mut seen = Vec::new();
    while let Some(message) = stream.message().await? {
        if let Some(Message::Changes(changes)) = message.message {
            seen.push((changes.to_revision, Instant::now()));
            if changes.to_revision >= last {
                return Ok(seen);
            }
        }
    }
    anyhow::bail!("the stream ended early")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: run it alone"]
async fn a_change_is_at_ten_nodes_within_the_measure() -> anyhow::Result<()> {
    let apart = or_skip!(Apart::start().await?);
    let scene = apart.scene().await?;
    let mut endpoint = scene.raw("shop", http_endpoint("http://127.0.0.1:9/")).await?;
    let first = apart.nodes().await?.revision;
    let last = first + i64::from(CHANGES);
    let client =
        apart.control.client_with(Some(apart.home.token_of("delivery", "node", None)?)).await?;
    let mut nodes = JoinSet::new();
    for number in 0..NODES {
        nodes.spawn(follow(client.clone(), format!("n{number}"), last));
    }
    // Every stream has begun when the control plane has counted it.
    turnbuckle_tests::eventually("all nodes follow", async || {
        let streams = apart.control.metric("turnbuckle_watch_streams").await?;
        Ok((streams >= NODES as f64).then_some(()))
    })
    .await?;
    let mut written = Vec::new();
    for number in 0..CHANGES {
        let url = format!("http://127.0.0.1:9/{number}");
        endpoint.target = Some(Target::Http(HttpTarget { url, ..HttpTarget::default() }));
        endpoint.etag.clear();
        let request =
            UpdateEndpointRequest { endpoint: Some(endpoint.clone()), ..Default::default() };
        let begun = Instant::now();
        endpoint = scene.client.endpoints().update_endpoint(request).await?.into_inner();
        written.push((endpoint.revision, begun));
    }
    let mut delays = Vec::new();
    while let Some(seen) = nodes.join_next().await {
        let seen = seen??;
        for (revision, begun) in &written {
            // A slow node finds one larger step.
            let arrived = seen.iter().find(|(to, _)| to >= revision);
            delays.push(arrived.map_or(PATIENCE, |(_, at)| at.saturating_duration_since(*begun)));
        }
    }
    delays.sort();
    let (median, p99) = (delays[delays.len() / 2], delays[delays.len() * 99 / 100]);
    eprintln!(
        "{CHANGES} changes at {NODES} nodes, from the call of the writer on: median {median:?}, \
         p99 {p99:?}, longest {:?}",
        delays.last()
    );
    assert!(p99 < P99, "{p99:?}");
    Ok(())
}
