//! API tokens from their making to their end, as callers and attackers see them.

use anyhow::Context as _;
use serde_json::Value;
use std::{path::Path, process::Output};
use tonic::{Code, Status};
use turnbuckle_client::Client;
use turnbuckle_proto::v1::{
    ApiToken, ApiTokenState, AuditEvent, AuditOutcome, CreateApiTokenRequest,
    CreateEventTypeRequest, CreateTenantRequest, DeleteTenantRequest, EventType,
    GetApiTokenRequest, GetEndpointRequest, ListApiTokensRequest, ListAuditEventsRequest,
    ListEventTypesRequest, ListTenantsRequest, RevokeApiTokenRequest, UpdateApiTokenRequest,
};
use turnbuckle_tests::{Home, Scene, Server, StoreKind, eventually, home::program, http_endpoint};

on_both_stores!(
    a_token_opens_its_tenant_with_its_role_and_nothing_else,
    a_revoked_token_is_refused_when_the_revocation_is_answered,
    nobody_makes_a_token_with_more_rights_or_for_longer,
    calls_that_are_denied_are_in_the_record_and_the_chain_holds,
    the_name_of_a_deleted_tenant_opens_nothing_ever_again,
);

/// A token of this role; no parent means every tenant.
fn wanted(parent: &str, id: &str, role: &str) -> CreateApiTokenRequest {
    CreateApiTokenRequest {
        parent: parent.into(),
        api_token_id: id.into(),
        api_token: Some(ApiToken { role: role.into(), ..ApiToken::default() }),
        every_tenant: parent.is_empty(),
        ..CreateApiTokenRequest::default()
    }
}

async fn make(client: &Client, request: CreateApiTokenRequest) -> Result<ApiToken, Status> {
    Ok(client.api_tokens().create_api_token(request).await?.into_inner())
}

async fn revoke(client: &Client, token: &ApiToken) -> Result<ApiToken, Status> {
    let request = RevokeApiTokenRequest {
        name: token.name.clone(),
        reason: "it was on a laptop".into(),
        ..RevokeApiTokenRequest::default()
    };
    Ok(client.api_tokens().revoke_api_token(request).await?.into_inner())
}

/// What a call came to.
fn code<T>(answer: Result<T, Status>) -> Code {
    answer.err().map_or(Code::Ok, |status| status.code())
}

/// Whether a caller may read the tenant's event types.
async fn reads(client: &Client, tenant: &str) -> Code {
    let request = ListEventTypesRequest { parent: tenant.into(), ..Default::default() };
    code(client.event_types().list_event_types(request).await)
}

async fn record(client: &Client, parent: &str) -> anyhow::Result<Vec<AuditEvent>> {
    let request = ListAuditEventsRequest { parent: parent.into(), ..Default::default() };
    Ok(client.audit().list_audit_events(request).await?.into_inner().audit_events)
}

async fn a_token_opens_its_tenant_with_its_role_and_nothing_else(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let endpoint = scene.raw("shop", http_endpoint("http://127.0.0.1:9/")).await?;
    let other = CreateTenantRequest { tenant_id: "rival".into(), ..Default::default() };
    scene.client.tenants().create_tenant(other).await?;
    let made = make(&scene.client, wanted(&scene.tenant, "ci", "publisher")).await?;
    assert_eq!(made.name, "tenants/acme/apiTokens/ci");
    assert!(made.secret.starts_with("tbk_") && made.secret.ends_with(&made.hint));

    // In the very next call, for what the role may do.
    let caller = Scene {
        client: server.client_with(Some(made.secret.clone())).await?,
        tenant: scene.tenant.clone(),
    };
    assert_eq!(caller.publish("e1", "{}").await?.deliveries, 1);
    let create = CreateEventTypeRequest {
        parent: scene.tenant.clone(),
        event_type_id: "order.sent".into(),
        event_type: Some(EventType::default()),
        ..Default::default()
    };
    caller.client.event_types().create_event_type(create).await?;
    let ring = scene.ring(&endpoint).await?;
    let rotate = turnbuckle_proto::v1::RotateKeyRequest {
        parent: endpoint.name.clone(),
        etag: ring.etag,
        ..Default::default()
    };
    assert_eq!(code(caller.client.keys().rotate_key(rotate).await), Code::PermissionDenied);
    let token = wanted(&scene.tenant, "more", "viewer");
    assert_eq!(code(make(&caller.client, token).await), Code::PermissionDenied);
    // In no other tenant, whether it exists or not.
    assert_eq!(reads(&caller.client, "tenants/acme").await, Code::Ok);
    for foreign in ["tenants/rival", "tenants/nobody"] {
        assert_eq!(reads(&caller.client, foreign).await, Code::PermissionDenied);
    }
    let seen = caller.client.tenants().list_tenants(ListTenantsRequest::default()).await?;
    assert_eq!(seen.into_inner().tenants.len(), 1);

    // The record names the token, and its use is listed without its secret.
    let newest = record(&scene.client, &scene.tenant).await?;
    let made_type = newest.iter().find(|event| event.resource.ends_with("order.sent"));
    assert_eq!(made_type.map(|event| event.subject.as_str()), Some(made.name.as_str()));
    let used = eventually("the use of a token is listed", async || {
        let request = ListApiTokensRequest { parent: scene.tenant.clone(), ..Default::default() };
        let listed = scene.client.api_tokens().list_api_tokens(request).await?.into_inner();
        let found = listed.api_tokens.into_iter().find(|token| token.name == made.name);
        Ok(found.filter(|token| token.last_use_time.is_some()))
    })
    .await?;
    assert_eq!((used.secret.as_str(), used.etag), ("", made.etag));

    // One for every tenant.
    let platform = make(&scene.client, wanted("", "dashboard", "viewer")).await?;
    let viewer = server.client_with(Some(platform.secret)).await?;
    assert_eq!(reads(&viewer, "tenants/acme").await, Code::Ok);
    assert_eq!(reads(&viewer, "tenants/rival").await, Code::Ok);
    let get = GetEndpointRequest { name: endpoint.name, ..Default::default() };
    viewer.endpoints().get_endpoint(get).await?;
    Ok(())
}

async fn a_revoked_token_is_refused_when_the_revocation_is_answered(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let made = make(&scene.client, wanted(&scene.tenant, "ci", "viewer")).await?;
    let caller = server.client_with(Some(made.secret.clone())).await?;
    assert_eq!(reads(&caller, &scene.tenant).await, Code::Ok);
    let revoked = revoke(&scene.client, &made).await?;
    assert_eq!(revoked.state(), ApiTokenState::Revoked);
    assert_eq!(revoked.revoke_reason, "it was on a laptop");
    assert_eq!(reads(&caller, &scene.tenant).await, Code::Unauthenticated);
    // Again changes nothing, and its name is not given to another.
    assert_eq!(revoke(&scene.client, &made).await?, revoked);
    let again = make(&scene.client, wanted(&scene.tenant, "ci", "viewer")).await;
    assert_eq!(code(again), Code::AlreadyExists);
    let list = ListApiTokensRequest { parent: scene.tenant.clone(), ..Default::default() };
    let tokens = || scene.client.api_tokens();
    assert!(tokens().list_api_tokens(list.clone()).await?.into_inner().api_tokens.is_empty());
    let all = ListApiTokensRequest { show_ended: true, ..list };
    assert_eq!(tokens().list_api_tokens(all).await?.into_inner().api_tokens.len(), 1);

    // A restart brings nothing back, and takes what is valid along.
    let kept = make(&scene.client, wanted(&scene.tenant, "kept", "viewer")).await?;
    let home = std::sync::Arc::clone(server.home());
    server.stop().await?;
    let server = Server::start_in(&home, &[]).await?;
    let caller = server.client_with(Some(made.secret)).await?;
    assert_eq!(reads(&caller, &scene.tenant).await, Code::Unauthenticated);
    let caller = server.client_with(Some(kept.secret)).await?;
    assert_eq!(reads(&caller, &scene.tenant).await, Code::Ok);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_begins_and_ends_in_every_process() -> anyhow::Result<()> {
    let home = or_skip!(Home::new(StoreKind::Postgres).await?);
    let control = Server::start_in(&home, &["--roles", "control-plane"]).await?;
    let delivery = Server::start_in(&home, &["--roles", "delivery"]).await?;
    let scene = Scene::set(&control).await?;
    let made = make(&scene.client, wanted(&scene.tenant, "ci", "publisher")).await?;
    let at = async |server: &Server| -> anyhow::Result<Scene> {
        let client = server.client_with(Some(made.secret.clone())).await?;
        Ok(Scene { client, tenant: scene.tenant.clone() })
    };
    let (here, there) = (at(&control).await?, at(&delivery).await?);
    assert_eq!(reads(&here.client, &scene.tenant).await, Code::Ok);
    eventually("the delivery process takes the token", async || {
        let answer = there.publish("e1", "{}").await;
        Ok(answer.is_ok().then_some(()))
    })
    .await?;
    revoke(&scene.client, &made).await?;
    assert_eq!(reads(&here.client, &scene.tenant).await, Code::Unauthenticated);
    eventually("the delivery process refuses the token", async || {
        let answer = there.publish("e1", "{}").await;
        Ok((code(answer) == Code::Unauthenticated).then_some(()))
    })
    .await?;
    Ok(())
}

async fn nobody_makes_a_token_with_more_rights_or_for_longer(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let hour = Some(prost_types::Duration { seconds: 3600, nanos: 0 });
    let mut request = wanted(&scene.tenant, "ops", "operator");
    if let Some(token) = &mut request.api_token {
        token.ttl = hour;
    }
    let made = make(&scene.client, request).await?;
    let operator = server.client_with(Some(made.secret.clone())).await?;
    for (parent, role, expected) in [
        ("tenants/acme", "publisher", Code::Ok),
        ("tenants/acme", "operator", Code::Ok),
        ("tenants/acme", "admin", Code::PermissionDenied),
        ("tenants/rival", "viewer", Code::PermissionDenied),
        ("", "viewer", Code::PermissionDenied),
    ] {
        let answer = make(&operator, wanted(parent, "", role)).await;
        if let Ok(child) = &answer {
            // Without a wish it ends with the token that it was made with.
            assert_eq!(child.expire_time, made.expire_time);
            assert_eq!(child.creator, made.name);
        }
        assert_eq!(code(answer), expected, "{parent} {role}");
    }
    let mut longer = wanted(&scene.tenant, "longer", "viewer");
    if let Some(token) = &mut longer.api_token {
        token.ttl = Some(prost_types::Duration { seconds: 7200, nanos: 0 });
    }
    assert_eq!(code(make(&operator, longer).await), Code::InvalidArgument);
    // Neither can it make itself live longer.
    let later = ApiToken {
        name: made.name.clone(),
        expire_time: made
            .expire_time
            .map(|end| prost_types::Timestamp { seconds: end.seconds + 1, ..end }),
        ..ApiToken::default()
    };
    let update = UpdateApiTokenRequest { api_token: Some(later), ..Default::default() };
    let answer = operator.api_tokens().update_api_token(update).await;
    assert_eq!(code(answer), Code::InvalidArgument);
    // An operator of all tenants may do so for all tenants.
    let everywhere = server.client_with(Some(server.home().token("operator", None)?)).await?;
    make(&everywhere, wanted("", "fleet", "operator")).await?;
    assert_eq!(code(make(&everywhere, wanted("", "", "admin")).await), Code::PermissionDenied);
    // A forgotten parent makes nothing.
    let forgotten = CreateApiTokenRequest { every_tenant: false, ..wanted("", "", "viewer") };
    assert_eq!(code(make(&scene.client, forgotten).await), Code::InvalidArgument);
    // What is only tried has no secret.
    let dry =
        CreateApiTokenRequest { validate_only: true, ..wanted(&scene.tenant, "dry", "viewer") };
    assert_eq!(make(&scene.client, dry).await?.secret, "");
    let get = GetApiTokenRequest { name: "tenants/acme/apiTokens/dry".into() };
    assert_eq!(code(scene.client.api_tokens().get_api_token(get).await), Code::NotFound);
    Ok(())
}

async fn calls_that_are_denied_are_in_the_record_and_the_chain_holds(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let made = make(&scene.client, wanted(&scene.tenant, "ci", "viewer")).await?;
    let caller = server.client_with(Some(made.secret.clone())).await?;
    for _ in 0..5 {
        let delete = DeleteTenantRequest { name: scene.tenant.clone(), ..Default::default() };
        assert_eq!(code(caller.tenants().delete_tenant(delete).await), Code::PermissionDenied);
        assert_eq!(reads(&caller, "tenants/rival").await, Code::PermissionDenied);
    }
    let denied = async |client: &Client, parent: &str, method: &str| {
        let events = record(client, parent).await?;
        let found = events.into_iter().find(|event| event.method == method);
        anyhow::Ok(found.filter(|event| event.outcome() == AuditOutcome::Denied))
    };
    for (method, reason) in [
        ("turnbuckle.v1.Tenants/DeleteTenant", "the role does not allow the method"),
        ("turnbuckle.v1.EventTypes/ListEventTypes", "another tenant, or more rights"),
    ] {
        let event = eventually("a denied call is recorded", async || {
            denied(&scene.client, &scene.tenant, method).await
        })
        .await?;
        assert_eq!((event.subject.as_str(), event.role.as_str()), (made.name.as_str(), "viewer"));
        assert_eq!((event.resource.as_str(), event.revision), ("tenants/acme", 0));
        assert!(event.reason.starts_with(reason), "{}", event.reason);
        assert_eq!(event.changes[0].field, "denied.count");
    }
    // Callers of no tenant are in the platform's record, which no tenant reads.
    let stranger = server.client_with(Some(server.home().token("viewer", None)?)).await?;
    let token = wanted(&scene.tenant, "", "viewer");
    assert_eq!(code(make(&stranger, token).await), Code::PermissionDenied);
    eventually("a call denied to a caller of no tenant is recorded", async || {
        denied(&scene.client, "", "turnbuckle.v1.ApiTokens/CreateApiToken").await
    })
    .await?;
    let own = server.client_with(Some(server.home().token("admin", Some("acme"))?)).await?;
    let request = ListAuditEventsRequest::default();
    assert_eq!(code(own.audit().list_audit_events(request).await), Code::PermissionDenied);
    let denied = ["audit", "list", "--denied", "--tenant", "acme", "-o", "json"];
    let listed = command(&server, &server.home().token("auditor", Some("acme"))?, &denied)?;
    let listed: Vec<Value> = serde_json::from_slice(&listed.stdout)?;
    assert!(listed.len() >= 2);
    assert!(listed.iter().all(|event| event["outcome"] == "AUDIT_OUTCOME_DENIED"), "{listed:?}");
    for whose in [["--tenant", "acme"].as_slice(), ["--platform"].as_slice()] {
        let line = [["audit", "verify"].as_slice(), whose].concat();
        let verified = command(&server, &server.home().token("admin", None)?, &line)?;
        let text = String::from_utf8_lossy(&verified.stderr).into_owned();
        assert!(verified.status.success() && text.contains("is whole"), "{whose:?}: {text}");
    }
    Ok(())
}

async fn the_name_of_a_deleted_tenant_opens_nothing_ever_again(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let made = make(&scene.client, wanted(&scene.tenant, "ci", "admin")).await?;
    let caller = server.client_with(Some(made.secret)).await?;
    assert_eq!(reads(&caller, &scene.tenant).await, Code::Ok);
    let delete = DeleteTenantRequest { name: scene.tenant.clone(), ..Default::default() };
    scene.client.tenants().delete_tenant(delete).await?;
    assert_eq!(reads(&caller, &scene.tenant).await, Code::Unauthenticated);
    let again = CreateTenantRequest { tenant_id: "acme".into(), ..Default::default() };
    let refused = scene.client.tenants().create_tenant(again).await;
    let status = refused.err().context("the name was given again")?;
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("its name is not given again"), "{status}");
    // The record of what was is still there.
    assert!(!record(&scene.client, &scene.tenant).await?.is_empty());
    Ok(())
}

/// Runs the command line with a token in the environment.
fn command(server: &Server, token: &str, line: &[&str]) -> anyhow::Result<Output> {
    let mut command = program()?;
    command.env("TURNBUCKLE_TOKEN", token);
    command.args(["--server", &format!("http://{}", server.api)]).args(line);
    Ok(command.output()?)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_shows_a_secret_once_and_takes_it_as_a_token() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let admin = server.home().token("admin", None)?;
    let json = |token: &str, line: &[&str]| -> anyhow::Result<Value> {
        let output =
            command(&server, token, &[line, &["--tenant", "acme", "-o", "json"]].concat())?;
        let errors = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "{line:?}: {errors}");
        Ok(serde_json::from_slice(&output.stdout)?)
    };
    let create = ["api-token", "create", "ci", "--role", "operator", "--ttl", "1h"];
    let output =
        command(&server, &admin, &[&create[..], &["--tenant", "acme", "-o", "json"]].concat())?;
    assert!(String::from_utf8_lossy(&output.stderr).contains("shown once"));
    let made: Value = serde_json::from_slice(&output.stdout)?;
    let secret = made["secret"].as_str().context("no secret")?.to_owned();
    assert_eq!(json(&admin, &["api-token", "get", "ci"])?.get("secret"), None);
    let listed = json(&admin, &["api-token", "list"])?;
    assert_eq!(listed[0]["role"], "operator");
    assert!(!listed.to_string().contains(&secret));

    // By the environment, and by a file that is read again.
    assert_eq!(
        json(&secret, &["event-type", "list"])?[0]["name"],
        "tenants/acme/eventTypes/order.paid"
    );
    let file = server.home().data_dir().join("ci.token");
    std::fs::write(&file, format!("{secret}\n"))?;
    let path = file.display().to_string();
    json("nonsense", &["event-type", "list", "--token-file", &path])?;
    let child = json(&secret, &["api-token", "create", "child", "--role", "viewer"])?;
    assert_eq!(child["creator"], "tenants/acme/apiTokens/ci");
    let revoked = json(&admin, &["api-token", "revoke", "ci", "--reason", "lost"])?;
    assert_eq!(
        (&revoked["state"], &revoked["revokeReason"]),
        (&"API_TOKEN_STATE_REVOKED".into(), &"lost".into())
    );
    let refused = command(&server, &secret, &["event-type", "list", "--tenant", "acme"])?;
    assert!(!refused.status.success() && refused.stdout.is_empty());
    assert!(!String::from_utf8_lossy(&refused.stderr).contains(&secret));
    drop(scene);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_of_a_token_is_nowhere_but_in_its_answer() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &["--log", "debug"]).await?);
    let scene = Scene::set(&server).await?;
    let made = make(&scene.client, wanted(&scene.tenant, "ci", "viewer")).await?;
    let caller = server.client_with(Some(made.secret.clone())).await?;
    assert_eq!(reads(&caller, &scene.tenant).await, Code::Ok);
    assert_eq!(reads(&caller, "tenants/rival").await, Code::PermissionDenied);
    let mut mistyped = made.secret.clone();
    mistyped.pop();
    for wrong in [mistyped, format!("{}0", made.secret), made.secret.to_uppercase()] {
        let broken = server.client_with(Some(wrong)).await?;
        assert_eq!(reads(&broken, &scene.tenant).await, Code::Unauthenticated);
    }
    revoke(&scene.client, &made).await?;
    let metrics = server.metrics().await?;
    server.stop().await?;
    // Without its prefix, so that no other spelling of it passes.
    let random = &made.secret[4..68];
    for (place, text) in [("log", server.log()), ("metrics", metrics)] {
        let text = text.to_lowercase();
        assert!(!text.contains("tbk_") && !text.contains(random), "in the {place}");
    }
    let mut files = 0;
    for file in std::fs::read_dir(server.home().data_dir())? {
        let path = file?.path();
        files += 1;
        assert!(!holds(&path, random.as_bytes())?, "in {}", path.display());
        assert!(!holds(&path, b"tbk_")?, "in {}", path.display());
    }
    assert!(files > 2);
    Ok(())
}

fn holds(path: &Path, wanted: &[u8]) -> anyhow::Result<bool> {
    if path.is_dir() {
        return Ok(false);
    }
    Ok(std::fs::read(path)?.windows(wanted.len()).any(|window| window == wanted))
}
