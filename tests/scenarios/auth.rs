//! Who may call what.

use anyhow::Context as _;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use std::os::unix::fs::PermissionsExt as _;
use tonic::{
    Code, Request, Status, client::Grpc, codegen::http::uri::PathAndQuery, transport::Channel,
};
use tonic_prost::ProstCodec;
use turnbuckle_proto::v1::{
    CancelDeliveryRequest, DeleteTenantRequest, GetDeliveryRequest, GetEndpointRequest,
    GetEventRequest, GetKeyRingRequest, GetTenantRequest, ListApiTokensRequest,
    ListDeliveriesRequest, ListEndpointsRequest, ListEventTypesRequest, ListEventsRequest,
    ListRetryPoliciesRequest, ListRetryPolicyVersionsRequest, ListSubscriptionsRequest,
    ListTenantsRequest, RetryDeliveryRequest, RevokeApiTokenRequest,
};
use turnbuckle_tests::{Scene, Server, StoreKind, http_endpoint};

/// Every method of the contract, as a path.
fn methods() -> anyhow::Result<Vec<String>> {
    let files = FileDescriptorSet::decode(turnbuckle_proto::DESCRIPTORS)?.file;
    let ours = files.iter().filter(|file| file.package() == "turnbuckle.v1");
    let methods = ours.flat_map(|file| &file.service).flat_map(|service| {
        let path = |method: &str| format!("/turnbuckle.v1.{}/{method}", service.name());
        service.method.iter().map(move |method| path(method.name()))
    });
    Ok(methods.collect())
}

/// Calls a method with an empty message. Authentication does not look at it.
async fn call(channel: &Channel, path: &str, token: Option<&str>) -> anyhow::Result<Status> {
    let mut request = Request::new(());
    if let Some(token) = token {
        let value = format!("Bearer {token}").parse()?;
        request.metadata_mut().insert("authorization", value);
    }
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await?;
    let path: PathAndQuery = path.parse()?;
    let answer = grpc.unary(request, path, ProstCodec::<(), ()>::default()).await;
    Ok(answer.err().unwrap_or_else(|| Status::ok("")))
}

async fn channel(server: &Server) -> anyhow::Result<Channel> {
    Ok(Channel::from_shared(format!("http://{}", server.api))?.connect().await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_method_answers_without_a_valid_token() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let channel = channel(&server).await?;
    let methods = methods()?;
    assert!(methods.len() > 40, "{}", methods.len());
    let good = server.home().token("admin", None)?;
    let (head, _) = good.rsplit_once('.').context("a token has parts")?;
    let forged = format!("{head}.{}", "A".repeat(43));
    let made_up = format!("tbk_{}", "0".repeat(72));
    for path in &methods {
        for token in [None, Some("nonsense"), Some(forged.as_str()), Some(made_up.as_str())] {
            let status = call(&channel, path, token).await?;
            assert_eq!(status.code(), Code::Unauthenticated, "{path} {status}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_opens_its_own_methods_and_no_other() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let channel = channel(&server).await?;
    let token = |role: &str| server.home().token(role, None);
    let (admin, operator, publisher, viewer, node, consumer) = (
        token("admin")?,
        token("operator")?,
        token("publisher")?,
        token("viewer")?,
        token("node")?,
        token("consumer")?,
    );
    for path in methods()? {
        let name = path.rsplit('/').next().unwrap_or_default();
        let audits = path.contains(".Audit/");
        let of_tokens = path.contains(".ApiTokens/");
        let watches = path.contains(".Configuration/");
        let of_nodes = path.contains(".Nodes/");
        let of_keyring = path.contains(".Keyring/");
        let reveals = name == "RevealKey";
        let looks = ["Get", "List", "Preview"].iter().any(|verb| name.starts_with(verb));
        let reads = looks && !audits && !of_tokens && !watches && !of_keyring;
        let of_tenants = path.contains(".Tenants/") && !looks;
        let of_keys = [".Keys/", ".KeyRings/", ".KeyTests/", ".SourceTests/"]
            .iter()
            .any(|own| path.contains(own));
        let of_keys = (of_keys || name == "RotateIngestPath") && !reads;
        let operates =
            [".Deliveries/", ".Receipts/", ".Replays/"].iter().any(|own| path.contains(own))
                && !reads;
        let publishes = name.contains("Publish");
        let consumes = path.contains(".Pull/");
        let allowed = [
            (&admin, !watches),
            (&operator, !(of_tenants || watches || of_keyring || reveals)),
            (
                &publisher,
                !(watches || of_nodes || of_tokens || of_keyring || consumes)
                    && (reads || publishes || !(of_tenants || of_keys || operates || audits)),
            ),
            (&viewer, reads),
            (&node, watches),
            (&consumer, consumes || (reads && !of_nodes)),
        ];
        for (index, (token, may)) in allowed.into_iter().enumerate() {
            let status = call(&channel, &path, Some(token)).await?;
            let refused = status.code() == Code::PermissionDenied;
            assert_eq!(refused, !may, "role {index} at {path}: {status}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_tenant_sees_and_changes_nothing() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let endpoint = scene.raw("shop", http_endpoint("http://127.0.0.1:9/")).await?;
    let event = scene.publish("e", "{}").await?.name;
    let delivery = scene.delivery_of(&event).await?.name;
    let foreign = server.client_with(Some(server.home().token("admin", Some("rival"))?)).await?;
    let parent = || scene.tenant.clone();
    let ring = format!("{}/keyRing", endpoint.name);

    let mut codes = Vec::new();
    macro_rules! refuse {
        ($client:ident.$method:ident($($request:tt)*)) => {
            let answer = foreign.$client().$method($($request)*).await;
            codes.push((stringify!($method), answer.err().map(|status| status.code())));
        };
    }
    refuse!(tenants.get_tenant(GetTenantRequest { name: parent() }));
    refuse!(tenants.delete_tenant(DeleteTenantRequest { name: parent(), etag: String::new() }));
    let get = GetEndpointRequest { name: endpoint.name, ..Default::default() };
    refuse!(endpoints.get_endpoint(get.clone()));
    refuse!(
        endpoints.list_endpoints(ListEndpointsRequest { parent: parent(), ..Default::default() })
    );
    refuse!(
        event_types
            .list_event_types(ListEventTypesRequest { parent: parent(), ..Default::default() })
    );
    refuse!(
        subscriptions.list_subscriptions(ListSubscriptionsRequest {
            parent: parent(),
            ..Default::default()
        })
    );
    refuse!(
        retry_policies.list_retry_policies(ListRetryPoliciesRequest {
            parent: parent(),
            ..Default::default()
        })
    );
    let name = format!("{}/retryPolicies/quick", parent());
    refuse!(
        retry_policies.list_retry_policy_versions(ListRetryPolicyVersionsRequest {
            name,
            ..Default::default()
        })
    );
    refuse!(keys.get_key_ring(GetKeyRingRequest { name: ring }));
    refuse!(
        api_tokens.list_api_tokens(ListApiTokensRequest { parent: parent(), ..Default::default() })
    );
    refuse!(api_tokens.list_api_tokens(ListApiTokensRequest::default()));
    let token = format!("{}/apiTokens/ci", parent());
    refuse!(
        api_tokens.revoke_api_token(RevokeApiTokenRequest { name: token, ..Default::default() })
    );
    refuse!(events.get_event(GetEventRequest { name: event }));
    refuse!(events.list_events(ListEventsRequest { parent: parent(), ..Default::default() }));
    refuse!(deliveries.get_delivery(GetDeliveryRequest { name: delivery.clone() }));
    refuse!(
        deliveries
            .list_deliveries(ListDeliveriesRequest { parent: parent(), ..Default::default() })
    );
    refuse!(deliveries.retry_delivery(RetryDeliveryRequest { name: delivery.clone() }));
    refuse!(deliveries.cancel_delivery(CancelDeliveryRequest { name: delivery }));
    for (method, code) in codes {
        assert_eq!(code, Some(Code::PermissionDenied), "{method}");
    }
    // A token of the tenant itself passes the same door.
    let own = server.client_with(Some(server.home().token("operator", Some("acme"))?)).await?;
    own.endpoints().get_endpoint(get).await?;
    stranger_makes_nothing(&Scene { client: foreign, ..scene }).await
}

async fn stranger_makes_nothing(stranger: &Scene) -> anyhow::Result<()> {
    let published = stranger.publish("x", "{}").await;
    assert_eq!(published.err().map(|status| status.code()), Some(Code::PermissionDenied));
    let created = stranger.create_endpoint("x", http_endpoint("http://127.0.0.1:9/")).await;
    assert_eq!(created.err().map(|status| status.code()), Some(Code::PermissionDenied));
    let seen = stranger.client.tenants().list_tenants(ListTenantsRequest::default()).await?;
    assert!(seen.get_ref().tenants.is_empty(), "{seen:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_leaves_a_token_that_works_and_only_its_owner_can_read()
-> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    for file in ["admin.token", "token.key", "keyring.json"] {
        let mode = std::fs::metadata(server.home().data_dir().join(file))?.permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let token = std::fs::read_to_string(server.home().data_dir().join("admin.token"))?;
    assert!(!server.log().contains(token.trim()), "the token was logged");
    let client = server.client_with(Some(token)).await?;
    client.tenants().list_tenants(ListTenantsRequest::default()).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn development_needs_no_token_but_refuses_a_broken_one() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &["--dev"]).await?);
    let client = server.client_with(None).await?;
    let tenants = client.tenants().list_tenants(ListTenantsRequest::default()).await?;
    assert_eq!(tenants.into_inner().tenants[0].name, "tenants/default");
    let broken = server.client_with(Some("broken".into())).await?;
    let refused = broken.tenants().list_tenants(ListTenantsRequest::default()).await;
    assert_eq!(refused.err().map(|status| status.code()), Some(Code::Unauthenticated));
    Ok(())
}
