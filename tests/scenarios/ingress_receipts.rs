//! "Why was this refused?": operators are told by receipts, senders never.

use turnbuckle_proto::v1::{
    EventMapping, GetReceiptRequest, ListReceiptsRequest, Receipt, ReceiptDecision,
    ReceiptSettings, Source, UnprocessableMode,
};
use turnbuckle_tests::{
    Scene, Server, StoreKind, eventually,
    scene::proto,
    sender::{self, SECRET, Sender, WRONG_SECRET},
};

on_both_stores!(every_decision_is_found_with_its_reason, a_dead_letter_keeps_the_body);

async fn receipts(
    scene: &Scene,
    filter: ListReceiptsRequest,
    count: usize,
) -> anyhow::Result<Vec<Receipt>> {
    eventually(&format!("there are {count} receipts"), async || {
        let request = ListReceiptsRequest { parent: scene.tenant.clone(), ..filter.clone() };
        let found = scene.client.receipts().list_receipts(request).await?.into_inner().receipts;
        Ok((found.len() >= count).then_some(found))
    })
    .await
}

async fn every_decision_is_found_with_its_reason(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let kept = ReceiptSettings {
        headers: vec!["x-github-event".into()],
        payload_retention: Some(proto(std::time::Duration::from_secs(3_600))),
    };
    let settings = Source { receipts: Some(kept), ..Source::default() };
    let github = Sender::with(&scene, &server, "github", SECRET, settings).await?;
    let send = async |secret: &str, id: &str, body: &str| {
        let headers = sender::github(secret, id, "push", body)?;
        anyhow::Ok((github.post(&headers, body).await?.status, headers[2].1.clone()))
    };
    let body = r#"{"n":1}"#;
    let (_, signature) = send(SECRET, "r1", body).await?;
    send(SECRET, "r1", body).await?;
    send(SECRET, "r1", r#"{"n":2}"#).await?;
    send(WRONG_SECRET, "r2", body).await?;
    send(SECRET, "r3", "{").await?;
    let all = receipts(&scene, ListReceiptsRequest::default(), 5).await?;
    let decisions: Vec<_> = all.iter().map(Receipt::decision).collect();
    use ReceiptDecision::{Accepted, Anomaly, DeadLetter, Duplicate, Refused};
    assert_eq!(decisions, [DeadLetter, Refused, Anomaly, Duplicate, Accepted]);
    let statuses: Vec<_> = all.iter().map(|receipt| receipt.status).collect();
    assert_eq!(statuses, [202, 401, 200, 200, 202]);
    assert_eq!(all[1].reason, "no signature fits any key");
    assert!(all[1].key.is_empty() && all[1].event_id.is_empty());
    let first = &all[4];
    assert_eq!((first.event_id.as_str(), first.key_state.as_str()), ("r1", "active"));
    assert!(first.event.starts_with("tenants/acme/events/") && first.event == all[3].event);
    assert_eq!((first.headers.len(), first.headers[0].value.as_str()), (1, "push"));
    assert!(all.iter().all(|receipt| receipt.payload.is_empty()));

    let one = async |name: &str| {
        let request = GetReceiptRequest { name: name.to_owned() };
        anyhow::Ok(scene.client.receipts().get_receipt(request).await?.into_inner())
    };
    let whole = one(&first.name).await?;
    assert_eq!(whole.payload, body.as_bytes());
    assert!(!format!("{whole:?}").contains(signature.trim_start_matches("sha256=")));
    // What nobody has proven to be theirs is not kept.
    assert!(one(&all[1].name).await?.payload.is_empty());
    assert!(one("tenants/acme/receipts/rcp_nothing").await.is_err());

    let refused =
        ListReceiptsRequest { decision: Refused.into(), page_size: 1, ..Default::default() };
    assert_eq!(receipts(&scene, refused, 1).await?[0].name, all[1].name);
    let of_event = ListReceiptsRequest {
        event_id: "r1".into(),
        source: github.source.name.clone(),
        ..Default::default()
    };
    assert_eq!(receipts(&scene, of_event, 3).await?.len(), 3);
    Ok(())
}

async fn a_dead_letter_keeps_the_body(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let settings = Source {
        unprocessable_mode: UnprocessableMode::DeadLetter.into(),
        event: Some(EventMapping::default()),
        ..Source::default()
    };
    let github = Sender::with(&scene, &server, "github", SECRET, settings).await?;
    let body = "no json, and no type";
    let answer = github.post(&sender::github(SECRET, "d1", "push", body)?, body).await?;
    assert_eq!(answer.status, 202);
    // Durable before the answer: nothing is waited for.
    let request = ListReceiptsRequest {
        parent: scene.tenant.clone(),
        decision: ReceiptDecision::DeadLetter.into(),
        ..Default::default()
    };
    let found = scene.client.receipts().list_receipts(request).await?.into_inner().receipts;
    assert_eq!(found.len(), 1);
    let request = GetReceiptRequest { name: found[0].name.clone() };
    let whole = scene.client.receipts().get_receipt(request).await?.into_inner();
    assert_eq!(whole.payload, body.as_bytes());
    assert!(whole.payload_expire_time.is_some());
    Ok(())
}
