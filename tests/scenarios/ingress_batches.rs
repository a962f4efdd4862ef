//! Batches: each item is an event, a repeat, an anomaly, or kept as a dead letter. None is lost behind
//! an answer with which the sender forgets it.

use std::time::Duration;
use tokio::task::JoinSet;
use turnbuckle_proto::v1::{
    CreateTenantRequest, EventMapping, GetReceiptRequest, IntakeLimits, ListReceiptsRequest,
    Receipt, ReceiptDecision, Source, UnknownVersionMode, UnprocessableMode,
};
use turnbuckle_testkit::proxy::Proxy;
use turnbuckle_tests::{
    Home, Scene, Server, StoreKind, eventually,
    sender::{self, SECRET, Sender},
};

on_both_stores!(
    no_item_of_a_batch_is_lost_behind_an_answer,
    a_body_without_the_array_is_no_empty_batch,
    large_batches_of_one_tenant_leave_the_others_their_time,
);

/// A source of batches: items at `events[*]`, of version 1.
async fn batches(scene: &Scene, server: &Server) -> anyhow::Result<Sender> {
    let event = EventMapping {
        items: "events[*]".into(),
        known_versions: vec!["1".into()],
        unknown_version_mode: UnknownVersionMode::Refuse.into(),
        ..EventMapping::default()
    };
    let limits = IntakeLimits {
        max_body_bytes: 4 * 1024 * 1024,
        requests_per_second: 10_000,
        requests_per_second_per_address: 10_000,
        connections_per_address: 1_000,
        ..IntakeLimits::default()
    };
    let settings = Source {
        event: Some(event),
        limits: Some(limits),
        unprocessable_mode: UnprocessableMode::Refuse.into(),
        ..Source::default()
    };
    Sender::with(scene, server, "github", SECRET, settings).await
}

async fn post(sender: &Sender, body: &str) -> anyhow::Result<u16> {
    let headers = sender::github(SECRET, "message", "push", body)?;
    Ok(sender.post(&headers, body).await?.status)
}

/// The dead letters there are now, with their bodies: nothing is waited for.
async fn letters(scene: &Scene) -> anyhow::Result<Vec<Receipt>> {
    let request = ListReceiptsRequest {
        parent: scene.tenant.clone(),
        decision: ReceiptDecision::DeadLetter.into(),
        ..Default::default()
    };
    let found = scene.client.receipts().list_receipts(request).await?.into_inner().receipts;
    let mut whole = Vec::new();
    for receipt in found {
        let request = GetReceiptRequest { name: receipt.name };
        whole.push(scene.client.receipts().get_receipt(request).await?.into_inner());
    }
    Ok(whole)
}

/// One that is good, one without a type, one of a version that nobody knows, one that is no object.
const MIXED: &str =
    r#"{"events":[{"id":"1","type":"a"},{"id":"2"},{"id":"3","type":"a","event_version":"9"},7]}"#;

async fn no_item_of_a_batch_is_lost_behind_an_answer(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let sender = batches(&scene, &server).await?;
    assert_eq!(post(&sender, MIXED).await?, 202);
    // Whatever is durable only later is lost now.
    server.kill().await?;

    let server = Server::start_in(server.home(), &[]).await?;
    let (scene, sender) = (Scene::of(&server).await?, sender.at(&server));
    let kept = letters(&scene).await?;
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].payload, MIXED.as_bytes());
    assert!(kept[0].reason.contains("3 of 4 items"), "{}", kept[0].reason);
    // The repeat knows the good one, and keeps the others again before it says so.
    assert_eq!(post(&sender, MIXED).await?, 200);
    assert_eq!(letters(&scene).await?.len(), 2);
    // All good, or nothing at all: nothing is kept.
    assert_eq!(post(&sender, r#"{"events":[{"id":"4","type":"a"}]}"#).await?, 202);
    assert_eq!(post(&sender, r#"{"events":[]}"#).await?, 202);
    assert_eq!(letters(&scene).await?.len(), 2);
    // None good: as the source says, which here is that the sender hears of it.
    assert_eq!(post(&sender, r#"{"events":[{"id":"5"}]}"#).await?, 400);
    let unknown = r#"{"events":[{"id":"6","type":"a","event_version":"9"}]}"#;
    assert_eq!(post(&sender, unknown).await?, 422);
    Ok(())
}

async fn a_body_without_the_array_is_no_empty_batch(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let sender = batches(&scene, &server).await?;
    for body in [
        r#"{"data":{"id":"1","type":"a"}}"#,
        r#"{"events":{"id":"1","type":"a"}}"#,
        r#"{"events":null}"#,
        r#"[{"id":"1","type":"a"}]"#,
        "7",
    ] {
        assert_eq!(post(&sender, body).await?, 400, "{body}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_after_a_503_keeps_what_the_first_could_not() -> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Postgres).await?);
    let proxy = Proxy::start(home.database_address()?).await?;
    home.reach_database_by(proxy.address())?;
    let server = Server::start_in(&home, &[]).await?;
    let scene = Scene::set(&server).await?;
    let sender = batches(&scene, &server).await?;
    proxy.freeze();
    assert_eq!(post(&sender, MIXED).await?, 503);
    proxy.heal();
    eventually("the repeat is taken", async || {
        let status = post(&sender, MIXED).await?;
        Ok(matches!(status, 200 | 202).then_some(()))
    })
    .await?;
    assert!(!letters(&scene).await?.is_empty());
    Ok(())
}

async fn large_batches_of_one_tenant_leave_the_others_their_time(
    kind: StoreKind,
) -> anyhow::Result<()> {
    const ITEMS: usize = 4_000;
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let large = batches(&scene, &server).await?;
    let tenant =
        CreateTenantRequest { tenant_id: "other".into(), tenant: None, ..Default::default() };
    scene.client.tenants().create_tenant(tenant).await?;
    let other = Scene { tenant: "tenants/other".into(), ..scene.clone() };
    let small = Sender::of(&other, &server, "github", SECRET).await?;
    let mut posts = JoinSet::new();
    for batch in 0..4 {
        let items = (0..ITEMS).map(|item| format!(r#"{{"id":"{batch}-{item}","type":"a"}}"#));
        let body = format!(r#"{{"events":[{}]}}"#, items.collect::<Vec<_>>().join(","));
        let large = large.clone();
        posts.spawn(async move {
            // The sender repeats, as senders do, until it hears that all of it is there.
            for _ in 0..40 {
                if matches!(post(&large, &body).await?, 200 | 202) {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            anyhow::bail!("a batch was never taken")
        });
    }
    for number in 0..20 {
        let body = format!(r#"{{"n":{number}}}"#);
        let headers = sender::github(SECRET, &format!("small-{number}"), "push", &body)?;
        assert_eq!(small.post(&headers, &body).await?.status, 202, "{number}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    while let Some(posted) = posts.join_next().await {
        posted??;
    }
    Ok(())
}
