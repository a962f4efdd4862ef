//! Configuration that is asked for twice, deleted by mistake, or too much.

use crate::unix_now;
use anyhow::Context as _;
use serde_json::Value;
use std::{collections::BTreeSet, time::Duration};
use turnbuckle_client::{ApiError, Client, ClientOptions, RetryLimits, TokenSource};
use turnbuckle_proto::v1::{
    CreateEndpointRequest, DeleteEndpointRequest, DeliveryState, Endpoint, ListAttemptsRequest,
    ListEndpointsRequest, UndeleteEndpointRequest,
};
use turnbuckle_signing::{Profile, VerifyOptions, VerifyingKey, verify};
use turnbuckle_testkit::{
    proxy::Proxy,
    receiver::{Answer, Received, Receiver, Script},
};
use turnbuckle_tests::{
    PATIENCE, Scene, Server, StoreKind, eventually, home::program, http_endpoint,
};
use uuid::Uuid;

on_both_stores!(
    creations_over_a_line_that_breaks_make_one_endpoint_each_and_lose_no_secret,
    a_server_that_was_killed_remembers_what_it_made,
    an_endpoint_that_comes_back_receives_and_signs_as_before,
    all_attempts_are_found_page_by_page,
    a_tenant_has_as_much_as_its_quota,
);

/// Endpoints made over the line that breaks.
const MADE: usize = 30;
/// How long the line holds: some answers pass, and others are on their way when it breaks.
const HOLDS: Duration = Duration::from_millis(300);
/// How long it is away.
const AWAY: Duration = Duration::from_millis(50);

fn request(scene: &Scene, id: &str) -> CreateEndpointRequest {
    CreateEndpointRequest {
        parent: scene.tenant.clone(),
        endpoint_id: id.to_owned(),
        endpoint: Some(http_endpoint("https://receiver.example/")),
        ..CreateEndpointRequest::default()
    }
}

fn refusal<T>(result: Result<T, tonic::Status>) -> anyhow::Result<ApiError> {
    Ok(ApiError::new(&result.err().context("it was not refused")?))
}

async fn endpoints(scene: &Scene) -> anyhow::Result<Vec<Endpoint>> {
    let request = ListEndpointsRequest {
        parent: scene.tenant.clone(),
        page_size: 1000,
        ..ListEndpointsRequest::default()
    };
    Ok(scene.client.endpoints().list_endpoints(request).await?.into_inner().endpoints)
}

/// Breaks and mends a line until it is dropped, and then leaves it mended.
async fn break_and_mend(line: &Proxy) {
    loop {
        tokio::time::sleep(HOLDS).await;
        line.cut();
        tokio::time::sleep(AWAY).await;
        line.heal();
    }
}

async fn creations_over_a_line_that_breaks_make_one_endpoint_each_and_lose_no_secret(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let line = Proxy::start(server.api).await?;
    let options = ClientOptions {
        token: Some(TokenSource::Text(server.home().token("admin", None)?)),
        deadline: PATIENCE,
        // As patient as the test: what is at stake is that a repeat is safe.
        retry: RetryLimits { tries: 500, max_delay: HOLDS, ..RetryLimits::default() },
        ..ClientOptions::new(format!("http://{}", line.address()))
    };
    let client = Client::connect(options).await?;
    let mut calls = Vec::new();
    for _ in 0..MADE {
        // Without a name: twice would be two.
        let (client, request) = (client.clone(), request(&scene, ""));
        calls.push(tokio::spawn(async move { client.create_endpoint(request).await }));
    }
    let answers = async {
        let mut made = Vec::new();
        for call in calls {
            made.push(call.await??);
        }
        anyhow::Ok(made)
    };
    let made = tokio::select! {
        made = answers => made?,
        () = break_and_mend(&line) => unreachable!("it never ends"),
    };
    assert!(made.iter().all(|endpoint| endpoint.signing_secret.starts_with("whsec_")));
    let answered: BTreeSet<_> = made.iter().map(|endpoint| endpoint.uid.clone()).collect();
    let there: BTreeSet<_> = endpoints(&scene).await?.into_iter().map(|it| it.uid).collect();
    assert_eq!(answered.len(), MADE);
    assert_eq!(there, answered);
    Ok(())
}

async fn a_server_that_was_killed_remembers_what_it_made(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let request_id = Uuid::now_v7().to_string();
    let request = CreateEndpointRequest { request_id, ..request(&scene, "") };
    let made = scene.client.create_endpoint(request.clone()).await?;
    let home = std::sync::Arc::clone(server.home());
    server.kill().await?;
    let server = Server::start_in(&home, &[]).await?;
    let scene = Scene::of(&server).await?;
    assert_eq!(scene.client.create_endpoint(request.clone()).await?, made);
    assert_eq!(endpoints(&scene).await?.len(), 1);
    let other = CreateEndpointRequest { endpoint_id: "other".to_owned(), ..request };
    let refused = refusal(scene.client.create_endpoint(other).await)?;
    assert_eq!(refused.reason.as_deref(), Some("REQUEST_ID_REUSED"));
    Ok(())
}

fn signed_by(request: &Received, secret: &str) -> anyhow::Result<bool> {
    let key = VerifyingKey::parse(secret)?;
    let options = VerifyOptions::at(unix_now());
    let verified =
        verify(Profile::StandardWebhooks, &[key], &request.headers, &request.body, &options);
    Ok(verified.is_ok())
}

async fn an_endpoint_that_comes_back_receives_and_signs_as_before(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let receiver = Receiver::start(Script::default()).await?;
    let shop = scene.raw("shop", http_endpoint(&receiver.url("/"))).await?;
    scene.publish("before", "{}").await?;
    receiver.wait_for(1, PATIENCE).await?;
    let delete = DeleteEndpointRequest { name: shop.name.clone(), ..Default::default() };
    scene.client.endpoints().delete_endpoint(delete).await?;
    eventually("nothing matches the deleted endpoint", async || {
        let id = format!("away-{}", Uuid::now_v7());
        Ok((scene.publish(&id, "{}").await?.deliveries == 0).then_some(()))
    })
    .await?;
    let undelete = UndeleteEndpointRequest { name: shop.name.clone(), ..Default::default() };
    let back = scene.client.endpoints().undelete_endpoint(undelete).await?.into_inner();
    assert_eq!(back.uid, shop.uid);
    eventually("events match again", async || {
        let id = format!("back-{}", Uuid::now_v7());
        Ok((scene.publish(&id, "{}").await?.deliveries == 1).then_some(()))
    })
    .await?;
    let is_back = |request: &&Received| {
        request.header("webhook-id").is_some_and(|id| id.starts_with("back-"))
    };
    let received =
        receiver.wait_until(PATIENCE, |received| received.iter().any(|it| is_back(&it))).await?;
    let first = received.iter().find(is_back).context("waited for")?;
    assert!(signed_by(first, &shop.signing_secret)?, "the receiver's key does not verify");
    Ok(())
}

async fn all_attempts_are_found_page_by_page(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let scene = Scene::set(&server).await?;
    let receiver = Receiver::start(Script::always(Answer::status(500))).await?;
    let retry_policy = scene.delays("busy", &[Duration::from_millis(10)], 60).await?;
    let endpoint = Endpoint { retry_policy, ..http_endpoint(&receiver.url("/")) };
    scene.raw("shop", endpoint).await?;
    let event = scene.publish("e1", "{}").await?.name;
    let delivery = scene.ended(&event, DeliveryState::Dead).await?;
    let mut numbers = Vec::new();
    let mut page_token = String::new();
    let mut pages = Vec::new();
    loop {
        let request =
            ListAttemptsRequest { parent: delivery.name.clone(), page_token, page_size: 0 };
        let page = scene.client.deliveries().list_attempts(request).await?.into_inner();
        pages.push(page.attempts.len());
        numbers.extend(page.attempts.iter().map(|attempt| attempt.number));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(pages, [50, 10]);
    assert!(numbers.into_iter().eq(1..=60));
    Ok(())
}

async fn a_tenant_has_as_much_as_its_quota(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &["--max-endpoints", "2"]).await?);
    let scene = Scene::set(&server).await?;
    scene.client.create_endpoint(request(&scene, "one")).await?;
    scene.client.create_endpoint(request(&scene, "two")).await?;
    let error = refusal(scene.client.create_endpoint(request(&scene, "three")).await)?;
    assert_eq!(error.reason.as_deref(), Some("QUOTA_EXCEEDED"));
    assert!(error.message.contains("--max-endpoints"), "{}", error.message);
    Ok(())
}

/// What a command that succeeds prints.
fn says(server: &Server, line: &[&str]) -> anyhow::Result<String> {
    let url = format!("http://{}", server.api);
    let output = program()?.args(["--server", &url]).args(line).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{line:?}: {}\n{errors}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_shows_deletes_and_brings_back() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &["--dev"]).await?);
    says(&server, &["endpoint", "create", "shop", "--url", "http://127.0.0.1:9/"])?;
    says(&server, &["endpoint", "delete", "shop"])?;
    assert_eq!(says(&server, &["endpoint", "list", "-o", "name"])?, "");
    let all = says(&server, &["endpoint", "list", "--show-deleted", "-o", "json"])?;
    let all: Value = serde_json::from_str(&all)?;
    let uid = all[0]["uid"].as_str().unwrap_or_default().to_owned();
    assert!(all[0]["deleteTime"].is_string(), "{all}");
    let dry = ["endpoint", "undelete", "shop", "--uid", &uid, "--dry-run", "-o", "name"];
    says(&server, &dry)?;
    assert_eq!(says(&server, &["endpoint", "list", "-o", "name"])?, "");
    let back = says(&server, &["endpoint", "undelete", "shop", "-o", "name"])?;
    assert_eq!(back, "tenants/default/endpoints/shop\n");
    assert_eq!(says(&server, &["endpoint", "list", "-o", "name"])?, back);

    let line = ["retry-policy", "preview", "--delays", "5s,1m", "--jitter", "none"];
    let table = says(&server, &[&line[..], &["--max-attempts", "3"]].concat())?;
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(table.lines().last().is_some_and(|row| row.contains("1m5s")), "{table}");
    Ok(())
}
