//! What must never be written down (I7).

use std::{collections::HashMap, time::Duration};
use turnbuckle_proto::v1::{
    DeliveryState, Endpoint, GetEndpointRequest, HttpTarget, RotateKeyRequest, endpoint::Target,
};
use turnbuckle_testkit::receiver::{Answer, Receiver, Script};
use turnbuckle_tests::{Scene, Server, StoreKind};

on_both_stores!(no_secret_appears_in_the_log_or_the_metrics);

async fn no_secret_appears_in_the_log_or_the_metrics(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &["--log", "debug"]).await?);
    let script = Script::sequence([Answer::status(500), Answer::reset(), Answer::status(200)]);
    let receiver = Receiver::start(script).await?;
    let scene = Scene::set(&server).await?;
    let retry_policy = scene.delays("quick", &[Duration::from_millis(10)], 9).await?;
    let http = HttpTarget {
        url: receiver.url("/hooks/marker-path?key=marker-query"),
        headers: HashMap::from([("x-api-key".to_owned(), "marker-header".to_owned())]),
        ..HttpTarget::default()
    };
    let endpoint =
        Endpoint { target: Some(Target::Http(http)), retry_policy, ..Endpoint::default() };
    let endpoint = scene.raw("shop", endpoint).await?;
    let rotate = RotateKeyRequest {
        parent: endpoint.name.clone(),
        etag: scene.ring(&endpoint).await?.etag,
        ..RotateKeyRequest::default()
    };
    let rotated = scene.client.keys().rotate_key(rotate).await?.into_inner().secret;
    let event = scene.publish("e", r#"{"card": "marker-payload"}"#).await?.name;
    scene.ended(&event, DeliveryState::Delivered).await?;
    // Refused calls are logged most readily.
    let anomaly = scene.publish("e", r#"{"card": "marker-anomaly"}"#).await;
    assert!(anomaly.is_err());
    let malformed = scene.publish("f", r#"{"card": "marker-malformed""#).await;
    assert!(!malformed.err().is_some_and(|status| status.message().contains("marker")));
    let token = server.home().token("admin", None)?;
    let broken = server.client_with(Some(format!("{token}marker-token"))).await?;
    let read = GetEndpointRequest { name: endpoint.name.clone(), ..Default::default() };
    assert!(broken.endpoints().get_endpoint(read.clone()).await.is_err());
    let shown = scene.client.endpoints().get_endpoint(read).await?.into_inner();
    assert_eq!(shown.signing_secret, "");

    let request = &receiver.received()[0];
    assert_eq!(request.header("x-api-key"), Some("marker-header"));
    let signature = request.header("webhook-signature").unwrap_or_default().to_owned();
    let metrics = server.metrics().await?;
    server.stop().await?;
    let log = server.log();
    let key = std::fs::read_to_string(server.home().token_key())?;
    let secrets = [
        endpoint.signing_secret.trim_start_matches("whsec_"),
        rotated.trim_start_matches("whsec_"),
        signature.as_str(),
        token.as_str(),
        key.trim(),
        "marker-",
    ];
    for (index, secret) in secrets.into_iter().enumerate() {
        assert!(secret.len() >= 7, "secret {index} is too short to look for");
        for (place, text) in [("log", &log), ("metrics", &metrics)] {
            let line = text.lines().find(|line| line.contains(secret));
            assert!(line.is_none(), "secret {index} is in the {place}: {line:?}");
        }
    }
    Ok(())
}
