//! The API's methods over JSON.

use crate::server::Server;
use bytes::Bytes;
use data_encoding::BASE64;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_to_the_first_event_is_open_to_curl() {
    let server = Server::start(&[]).await;
    let tenant = json!({ "tenantId": "a", "tenant": { "displayName": "Ä \"quoted\"" } });
    let tenant = server.ok("Tenants/CreateTenant", &tenant).await;
    assert_eq!(tenant["name"], "tenants/a");
    assert_eq!(tenant["displayName"], "Ä \"quoted\"");
    // 64-bit integers are strings, times are RFC 3339.
    assert!(tenant["revision"].as_str().unwrap().parse::<i64>().unwrap() > 0, "{tenant}");
    assert!(tenant["createTime"].as_str().unwrap().ends_with('Z'), "{tenant}");

    let kind = json!({ "parent": "tenants/a", "eventTypeId": "order.paid" });
    server.ok("EventTypes/CreateEventType", &kind).await;
    let event = json!({ "parent": "tenants/a", "event": {
        "eventId": "o-1", "eventType": "order.paid", "occurredAt": "2026-01-15T08:00:00.5Z",
        "sequence": "9007199254740993", "data": BASE64.encode(br#"{"total":"12.50"}"#),
    }});
    let published = server.ok("Events/PublishEvent", &event).await;
    assert_eq!(published["eventId"], "o-1");
    // Default values are left out.
    assert!(published.get("duplicate").is_none(), "{published}");
    let again = server.ok("Events/PublishEvent", &event).await;
    assert_eq!(again["duplicate"], true);
    assert_eq!(again["name"], published["name"]);

    let read = server.ok("Events/GetEvent", &json!({ "name": published["name"] })).await;
    assert_eq!(read["data"], BASE64.encode(br#"{"total":"12.50"}"#));
    assert_eq!(read["sequence"], "9007199254740993");
    assert_eq!(read["occurredAt"], "2026-01-15T08:00:00.500Z");
    let listed = server.ok("Events/ListEvents", &json!({ "parent": "tenants/a" })).await;
    assert_eq!(listed["events"].as_array().unwrap().len(), 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resources_can_be_made_changed_and_deleted() {
    let server = Server::start(&[]).await.with_tenant().await;
    let endpoint = json!({ "parent": "tenants/a", "endpointId": "e", "endpoint": {
        "http": { "url": "https://hooks.example.com/in", "timeout": "2.500s", "headers": { "x-a": "1" } },
        "signatureProfile": "SIGNATURE_PROFILE_HUB_SHA256",
    }});
    let answer = server.call("Endpoints/CreateEndpoint", &endpoint).await;
    assert_eq!(answer.header("cache-control"), "no-store");
    let made = answer.json();
    assert!(made["signingSecret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")));
    assert_eq!(made["http"]["timeout"], "2.500s");
    assert_eq!(made["state"], "ENDPOINT_STATE_ACTIVE");

    let change = json!({
        "endpoint": { "name": made["name"], "etag": made["etag"], "displayName": "E", "maxInFlight": 8 },
        "updateMask": "displayName,maxInFlight",
    });
    let changed = server.ok("Endpoints/UpdateEndpoint", &change).await;
    assert_eq!((&changed["displayName"], &changed["maxInFlight"]), (&json!("E"), &json!(8)));
    let stale = server.call("Endpoints/UpdateEndpoint", &change).await;
    let error = stale.error(409, "ABORTED", "ETAG_MISMATCH");
    let info = crate::server::detail(&error, "ErrorInfo");
    assert_eq!(info["metadata"]["current_etag"], changed["etag"]);

    let deleted = server.ok("Endpoints/DeleteEndpoint", &json!({ "name": made["name"] })).await;
    assert_eq!(deleted, json!({}));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_2_and_http_1_give_the_same_answers_and_the_root_tells_what_this_is() {
    let server = Server::start(&[]).await;
    let list = || server.request("Tenants/ListTenants").body(Full::from("{}")).unwrap();
    let (first, second) = (server.send(list()).await, server.send_http_2(list()).await);
    assert_eq!((first.status, &first.bytes), (StatusCode::OK, &second.bytes));

    let root = Request::get("/").body(Full::default()).unwrap();
    let root = server.send(root).await.json();
    assert_eq!(root["name"], "turnbuckle");
    let methods = root["json"]["methods"].as_array().unwrap();
    assert!(methods.contains(&json!("/turnbuckle.v1.Endpoints/CreateEndpoint")), "{root}");
    assert!(methods.contains(&json!("/grpc.health.v1.Health/Check")), "{root}");
    assert!(!methods.contains(&json!("/grpc.health.v1.Health/Watch")), "{root}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_as_large_as_grpc_takes_it_fits_in_base64_too() {
    let server = Server::start(&[]).await.with_tenant().await;
    let kind = json!({ "parent": "tenants/a", "eventTypeId": "big.one" });
    server.ok("EventTypes/CreateEventType", &kind).await;
    // 16 events of a quarter of a megabyte: 4 MiB, in base64 5.3 MiB.
    let data = BASE64.encode(&vec![b'x'; 256 * 1024 - 1024]);
    let event = json!({ "eventType": "big.one", "contentType": "text/plain", "data": data });
    let batch = json!({ "parent": "tenants/a", "events": vec![event; 16] });
    let results = server.ok("Events/BatchPublishEvents", &batch).await;
    let results = results["results"].as_array().unwrap();
    assert_eq!(results.len(), 16);
    assert!(results.iter().all(|result| result["accepted"]["name"].is_string()), "{results:?}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_can_be_asked_without_a_token() {
    let server = Server::start(&[]).await;
    let request = Request::builder()
        .method(Method::POST)
        .uri("/grpc.health.v1.Health/Check")
        .header("content-type", "application/json")
        .body(Full::<Bytes>::from("{}"))
        .unwrap();
    // The server reports itself serving right after its start.
    let mut answer = server.send(request.clone()).await;
    while answer.json()["status"] != "SERVING" {
        answer = server.send(request.clone()).await;
    }
    assert_eq!(answer.status, StatusCode::OK);
    server.stop().await;
}
