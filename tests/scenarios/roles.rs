//! One role in one process: what each does, and what it leaves to the others.

use tonic::Code;
use turnbuckle_proto::v1::ListEndpointsRequest;
use turnbuckle_signing::{Profile, VerifyOptions, VerifyingKey, verify};
use turnbuckle_testkit::receiver::{Receiver, Script};
use turnbuckle_tests::{Home, PATIENCE, Scene, Server, StoreKind, eventually, http, http_endpoint};

use crate::unix_now;

#[tokio::test(flavor = "multi_thread")]
async fn what_the_control_plane_is_told_the_delivery_process_does() -> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Postgres).await?);
    let control = Server::start_in(&home, &["--roles", "control-plane"]).await?;
    let delivery = Server::start_in(&home, &["--roles", "delivery"]).await?;
    let receiver = Receiver::start(Script::default()).await?;
    let config = Scene::set(&control).await?;
    let endpoint = config.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    let traffic = Scene::of(&delivery).await?;
    let mut number = 0;
    let published = eventually("the delivery process knows type and subscription", async || {
        number += 1;
        match traffic.publish(&format!("e{number}"), r#"{"paid": true}"#).await {
            Ok(published) if published.deliveries == 1 => Ok(Some(published)),
            // The type is known and the subscription is not yet.
            Ok(_) => Ok(None),
            Err(status) if matches!(status.code(), Code::NotFound | Code::InvalidArgument) => {
                Ok(None)
            }
            Err(status) => Err(status.into()),
        }
    })
    .await?;
    let request = &receiver.wait_for(1, PATIENCE).await?[0];
    assert_eq!(request.header("webhook-id"), Some(published.event_id.as_str()));
    assert_eq!(request.body, r#"{"paid": true}"#);
    // One process sealed the key and the other opened it.
    let key = VerifyingKey::parse(&endpoint.signing_secret)?;
    let options = VerifyOptions::at(unix_now());
    verify(Profile::StandardWebhooks, &[key], &request.headers, &request.body, &options)?;
    traffic.drained().await?;
    delivery.stop().await?;
    control.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_does_not_answer_for_another() -> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Postgres).await?);
    let control = Server::start_in(&home, &["--roles", "control-plane"]).await?;
    let delivery = Server::start_in(&home, &["--roles", "delivery"]).await?;
    let config = Scene::set(&control).await?;
    let refused = config.publish("e", "{}").await;
    assert_eq!(refused.err().map(|status| status.code()), Some(Code::Unimplemented));
    let traffic = Scene::of(&delivery).await?;
    let request = ListEndpointsRequest { parent: traffic.tenant.clone(), ..Default::default() };
    let refused = traffic.client.endpoints().list_endpoints(request.clone()).await;
    assert_eq!(refused.err().map(|status| status.code()), Some(Code::Unimplemented));
    let listed = config.client.endpoints().list_endpoints(request).await?.into_inner();
    assert!(listed.endpoints.is_empty());
    for server in [&control, &delivery] {
        assert_eq!(server.ingress.port(), 0, "an ingress that nobody asked for");
        assert_eq!(http::get(server.admin, "/readyz").await?.status, 200);
    }
    assert_eq!(control.metric("turnbuckle_shards_held").await?, 0.0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ingress_process_knows_no_path_and_has_no_api() -> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Postgres).await?);
    let server = Server::start_in(&home, &["--roles", "ingress"]).await?;
    assert_eq!(server.api.port(), 0, "an API that nobody asked for");
    let paths = ["/", "/in/shop", "/v1/tenants", "/healthz", "/turnbuckle.v1.Events/PublishEvent"];
    for path in paths {
        for answer in
            [http::get(server.ingress, path).await?, http::post(server.ingress, path, "{}").await?]
        {
            assert_eq!(answer.status, 401, "{path}");
            assert!(answer.body.is_empty(), "{path}: {}", answer.body);
        }
    }
    assert_eq!(http::get(server.admin, "/readyz").await?.status, 200);
    server.stop().await
}
