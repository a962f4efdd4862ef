//! Sources that take nothing for a while, and sources that were deleted by mistake.

use turnbuckle_proto::v1::{
    DeleteSourceRequest, DisableSourceRequest, EnableSourceRequest, GetSourceRequest,
    ListReceiptsRequest, ReceiptDecision, SourceState, TestSourceRequest, UndeleteSourceRequest,
};
use turnbuckle_tests::{
    Scene, Server, StoreKind, eventually,
    sender::{self, SECRET, Sender, WRONG_SECRET},
};

on_both_stores!(
    a_disabled_source_asks_its_sender_to_come_again_and_leaves_receipts,
    a_deleted_source_is_unknown_and_comes_back_with_its_path_and_keys,
);

async fn send(github: &Sender, secret: &str, id: &str) -> anyhow::Result<(u16, String)> {
    // The same body under another id would be a repeat.
    let body = format!(r#"{{"id":"{id}"}}"#);
    let headers = sender::github(secret, id, "push", &body)?;
    let answer = github.post(&headers, &body).await?;
    Ok((answer.status, answer.head.to_ascii_lowercase()))
}

async fn a_disabled_source_asks_its_sender_to_come_again_and_leaves_receipts(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let github = Sender::of(&scene, &server, "github", SECRET).await?;
    let name = github.source.name.clone();
    assert_eq!(send(&github, SECRET, "a1").await?.0, 202);
    let mut sources = scene.client.sources();
    let reason = "they flood us".to_owned();
    let request = DisableSourceRequest { name: name.clone(), reason, ..Default::default() };
    let disabled = sources.disable_source(request.clone()).await?.into_inner();
    assert_eq!(disabled.state(), SourceState::Disabled);
    assert_eq!(disabled.disable_reason, "they flood us");
    let again = sources.disable_source(request).await?.into_inner();
    assert_eq!(again.etag, disabled.etag, "the same again is a change");
    // Whoever asks: nothing is looked at.
    for secret in [SECRET, WRONG_SECRET] {
        let (status, head) = send(&github, secret, "a2").await?;
        assert_eq!(status, 503);
        assert!(head.contains("retry-after: 60") && !head.contains("flood"), "{head}");
    }
    let receipts = eventually("there are receipts of it", async || {
        let request = ListReceiptsRequest {
            parent: scene.tenant.clone(),
            decision: ReceiptDecision::Refused.into(),
            ..Default::default()
        };
        let found = scene.client.receipts().list_receipts(request).await?.into_inner().receipts;
        Ok((found.len() == 2).then_some(found))
    })
    .await?;
    assert!(receipts.iter().all(|receipt| receipt.reason == "disabled" && receipt.status == 503));
    let counted = "turnbuckle_ingress_requests_total{outcome=\"disabled\"}";
    assert_eq!(server.metric(counted).await?, 2.0);

    // Nor is it tried: an operator who asks is told why.
    let test = TestSourceRequest { name: name.clone(), deliver: true, ..Default::default() };
    let tried = scene.client.source_tests().test_source(test).await?.into_inner();
    assert_eq!((tried.accepted, tried.http_status), (false, 503), "{tried:?}");
    assert!(tried.summary.contains("the source is disabled"), "{tried:?}");
    assert!(tried.event.is_empty(), "{tried:?}");

    let request = EnableSourceRequest { name, ..Default::default() };
    let enabled = sources.enable_source(request).await?.into_inner();
    assert_eq!((enabled.state(), enabled.disable_reason.as_str()), (SourceState::Active, ""));
    // The retry that the sender was asked for.
    assert_eq!(send(&github, SECRET, "a2").await?.0, 202);
    Ok(())
}

async fn a_deleted_source_is_unknown_and_comes_back_with_its_path_and_keys(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let github = Sender::of(&scene, &server, "github", SECRET).await?;
    let name = github.source.name.clone();
    assert_eq!(send(&github, SECRET, "a1").await?.0, 202);
    let mut sources = scene.client.sources();
    sources.delete_source(DeleteSourceRequest { name: name.clone(), ..Default::default() }).await?;
    let deleted = send(&github, SECRET, "a2").await?;
    let unknown =
        sender::post(github.address(), "/in/00000000000000000000000000", &[], b"{}").await?;
    assert_eq!((deleted.0, unknown.status), (401, 401));
    let shown = GetSourceRequest { name: name.clone(), show_deleted: true };
    let shown = sources.get_source(shown).await?.into_inner();
    assert!(shown.delete_time.is_some() && shown.purge_time.is_some());

    let request = UndeleteSourceRequest { name: name.clone(), ..Default::default() };
    let checked = UndeleteSourceRequest { validate_only: true, ..request.clone() };
    sources.undelete_source(checked).await?;
    assert_eq!(send(&github, SECRET, "a2").await?.0, 401, "it was only validated");
    let back = sources.undelete_source(request.clone()).await?.into_inner();
    assert_eq!((&back.uid, &back.ingest_path), (&github.source.uid, &github.source.ingest_path));
    assert!(back.delete_time.is_none());
    assert_eq!(send(&github, SECRET, "a2").await?.0, 202);
    assert_eq!(send(&github, SECRET, "a1").await?.0, 200, "what was received is remembered");
    let again = sources.undelete_source(request).await.err();
    assert_eq!(again.map(|status| status.code()), Some(tonic::Code::AlreadyExists));
    Ok(())
}
