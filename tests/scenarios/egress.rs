//! Where deliveries may not go.

use anyhow::Context as _;
use tonic::Code;
use turnbuckle_client::ApiError;
use turnbuckle_proto::v1::{AttemptOutcome, DeliveryState};
use turnbuckle_testkit::receiver::{Receiver, Script};
use turnbuckle_tests::{Home, Scene, Server, StoreKind, http_endpoint};

on_both_stores!(an_endpoint_allowed_once_is_blocked_when_the_rule_is_gone);

#[tokio::test(flavor = "multi_thread")]
async fn an_internal_target_is_refused_at_creation_with_its_field() -> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Embedded).await?);
    let server = Server::start_strict(&home, &[]).await?;
    let scene = Scene::set(&server).await?;
    for url in [
        "http://127.0.0.1:8080/",
        "http://127.1/",
        "http://2130706433/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://localhost/",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "http://metadata.google.internal/",
        "ftp://example.com/",
        "https://user:password@example.com/",
    ] {
        let refused = scene.create_endpoint("e", http_endpoint(url)).await.err();
        let error = ApiError::new(&refused.with_context(|| format!("{url} was accepted"))?);
        assert_eq!(error.code, Code::InvalidArgument, "{url} {error}");
        let fields: Vec<_> = error.violations.iter().map(|found| found.field.as_str()).collect();
        assert_eq!(fields, ["endpoint.http.url"], "{url}");
    }
    Ok(())
}

async fn an_endpoint_allowed_once_is_blocked_when_the_rule_is_gone(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &["--lease", "1s"]).await?);
    let receiver = Receiver::start(Script::default()).await?;
    let scene = Scene::set(&server).await?;
    scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    server.stop().await?;
    let server = Server::start_strict(server.home(), &["--lease", "1s"]).await?;
    let scene = Scene::of(&server).await?;
    let event = scene.publish("e", "{}").await?.name;
    let delivery = scene.ended(&event, DeliveryState::Dead).await?;
    assert_eq!(delivery.reason, "EGRESS_BLOCKED");
    let attempts = scene.attempts(&delivery).await?;
    assert_eq!(attempts[0].outcome(), AttemptOutcome::Blocked);
    let totals = receiver.totals();
    assert_eq!((totals.connections, totals.requests), (0, 0));
    Ok(())
}
