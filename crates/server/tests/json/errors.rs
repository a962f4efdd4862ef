//! Every way a JSON call can go wrong has the one shape.

use crate::server::{Server, detail};
use bytes::Bytes;
use http::{Method, Request, header::CONTENT_TYPE};
use http_body_util::Full;
use serde_json::{Value, json};

fn plain(method: Method, path: &str) -> http::request::Builder {
    Request::builder().method(method).uri(path)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_the_methods_arrive_with_their_details() {
    let server = Server::start(&[]).await.with_tenant().await;
    let bad = json!({ "parent": "tenants/a", "endpoint": { "http": { "url": "nonsense" } } });
    let error = server.call("Endpoints/CreateEndpoint", &bad).await;
    let error = error.error(400, "INVALID_ARGUMENT", "INVALID_REQUEST");
    let violations = detail(&error, "BadRequest")["fieldViolations"].as_array().unwrap();
    assert_eq!(violations[0]["field"], "endpoint.http.url", "{error}");

    let missing = json!({ "name": "tenants/a/endpoints/none" });
    let error = server.call("Endpoints/GetEndpoint", &missing).await;
    let error = error.error(404, "NOT_FOUND", "NOT_FOUND");
    assert_eq!(error["code"], 5);
    assert_eq!(detail(&error, "ResourceInfo")["resourceName"], "tenants/a/endpoints/none");

    let again = server.call("Tenants/CreateTenant", &json!({ "tenantId": "a" })).await;
    let error = again.error(409, "ALREADY_EXISTS", "ALREADY_EXISTS");
    assert_eq!(detail(&error, "ResourceInfo")["resourceType"], "tenants");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_against_its_schema_is_refused_by_json_pointer_and_not_quoted() {
    let server = Server::start(&[]).await.with_tenant().await;
    let event_type = json!({ "parent": "tenants/a", "eventTypeId": "order.paid" });
    server.ok("EventTypes/CreateEventType", &event_type).await;
    let schema = r#"{"properties": {"card": {"type": "object"}, "total": {"type": "number"}}}"#;
    let version = json!({ "parent": "tenants/a/eventTypes/order.paid",
        "eventTypeVersionId": "2", "eventTypeVersion": { "schema": schema } });
    let made = server.ok("EventTypeVersions/CreateEventTypeVersion", &version).await;
    assert_eq!(made["name"], "tenants/a/eventTypes/order.paid/versions/2");
    assert_eq!(made["schema"], schema);

    // {"card": "4111111111111111", "total": "1"}
    let data = "eyJjYXJkIjogIjQxMTExMTExMTExMTExMTEiLCAidG90YWwiOiAiMSJ9";
    let event = json!({ "parent": "tenants/a", "event":
        { "eventType": "order.paid", "eventVersion": "2", "data": data } });
    let answer = server.call("Events/PublishEvent", &event).await;
    let text = String::from_utf8(answer.bytes.to_vec()).unwrap();
    assert!(!text.contains("4111") && !text.contains(data), "{text}");
    let error = answer.error(400, "INVALID_ARGUMENT", "INVALID_REQUEST");
    let violations = detail(&error, "BadRequest")["fieldViolations"].as_array().unwrap();
    let mut told: Vec<(&str, &str)> = violations
        .iter()
        .map(|one| (one["field"].as_str().unwrap(), one["description"].as_str().unwrap()))
        .collect();
    told.sort_unstable();
    let expected =
        [("event.data/card", "must be an object"), ("event.data/total", "must be a number")];
    assert_eq!(told, expected, "{error}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_precondition_arrives_with_its_subject() {
    let server = Server::start(&[]).await.with_tenant().await;
    let endpoint = json!({ "parent": "tenants/a", "endpointId": "e",
        "endpoint": { "http": { "url": "https://hooks.example.com" } } });
    server.ok("Endpoints/CreateEndpoint", &endpoint).await;
    let ring = json!({ "name": "tenants/a/endpoints/e/keyRing" });
    let ring = server.ok("Keys/GetKeyRing", &ring).await;
    let activate = json!({ "parent": "tenants/a/endpoints/e", "etag": ring["etag"] });
    let error = server.call("Keys/RollbackKey", &activate).await;
    let error = error.error(400, "FAILED_PRECONDITION", "NOTHING_TO_ROLL_BACK");
    let violation = &detail(&error, "PreconditionFailure")["violations"][0];
    assert!(violation["subject"].as_str().unwrap().contains("tenants/a/endpoints/e"), "{error}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_are_known_before_their_body_is_looked_at() {
    let server = Server::start(&[]).await;
    // Not even JSON: who may not call learns nothing about that.
    let call = |token: Option<&str>| {
        let path = "/turnbuckle.v1.Tenants/CreateTenant";
        let mut request = plain(Method::POST, path).header(CONTENT_TYPE, "application/json");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request.body(Full::from("{{{")).unwrap()
    };
    for token in [None, Some("nonsense")] {
        let answer = server.send(call(token)).await;
        answer.error(401, "UNAUTHENTICATED", "UNAUTHENTICATED");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    let known = server.send(call(Some(&server.token))).await;
    known.error(400, "INVALID_ARGUMENT", "INVALID_JSON");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_authorization_headers_are_refused_as_over_grpc() {
    let server = Server::start(&[]).await;
    let request = server.request("Tenants/ListTenants").header("authorization", "Bearer other");
    let answer = server.send(request.body(Full::from("{}")).unwrap()).await;
    answer.error(401, "UNAUTHENTICATED", "UNAUTHENTICATED");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_json_is_answered_with_its_place_and_field() {
    let server = Server::start(&[]).await;
    let send = async |text: &'static str| {
        let request = server.request("Tenants/CreateTenant").body(Full::from(text)).unwrap();
        server.send(request).await
    };
    let error = send("{\n  \"tenantId\": oops }").await;
    let error = error.error(400, "INVALID_ARGUMENT", "INVALID_JSON");
    assert!(error["message"].as_str().unwrap().contains("line 2 column"), "{error}");
    let error = send(r#"{"tenantId":"a","tenant":{"displayNam":"x"}}"#).await;
    let error = error.error(400, "INVALID_ARGUMENT", "INVALID_REQUEST");
    assert_eq!(detail(&error, "BadRequest")["fieldViolations"][0]["field"], "tenant.displayNam");
    let error = send(r#"{"tenantId":{}}"#).await;
    let error = error.error(400, "INVALID_ARGUMENT", "INVALID_REQUEST");
    assert_eq!(detail(&error, "BadRequest")["fieldViolations"][0]["field"], "tenantId");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_no_calls_are_told_what_is_wrong() {
    const LIST: &str = "/turnbuckle.v1.Tenants/ListTenants";
    let server = Server::start(&[]).await;
    let send = async |request: http::request::Builder| {
        server.send(request.body(Full::<Bytes>::from("{}")).unwrap()).await
    };
    let json = "application/json";
    for path in ["/turnbuckle.v1.Tenants/Nope", "/nope", "/a/b/c", "//", "/%00"] {
        let answer = send(plain(Method::POST, path).header(CONTENT_TYPE, json)).await;
        answer.error(404, "NOT_FOUND", "UNKNOWN_METHOD");
    }
    let answer = send(plain(Method::GET, LIST)).await;
    answer.error(405, "UNIMPLEMENTED", "WRONG_HTTP_METHOD");
    assert_eq!(answer.header("allow"), "POST");
    let answer = send(plain(Method::DELETE, "/")).await;
    answer.error(405, "UNIMPLEMENTED", "WRONG_HTTP_METHOD");
    for kind in ["text/plain", "application/grpc", "application/json; charset=latin1", ""] {
        let answer = send(plain(Method::POST, LIST).header(CONTENT_TYPE, kind)).await;
        answer.error(415, "INVALID_ARGUMENT", "UNSUPPORTED_CONTENT_TYPE");
    }
    let packed = plain(Method::POST, LIST).header(CONTENT_TYPE, json);
    let answer = send(packed.header("content-encoding", "gzip")).await;
    answer.error(415, "INVALID_ARGUMENT", "UNSUPPORTED_CONTENT_ENCODING");
    let watch = plain(Method::POST, "/grpc.health.v1.Health/Watch").header(CONTENT_TYPE, json);
    send(watch).await.error(501, "UNIMPLEMENTED", "STREAMING_METHOD");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_beyond_a_limit_are_refused() {
    let server = Server::start(&[]).await;
    let declared = server.request("Events/PublishEvent");
    let declared = declared.body(Full::from(vec![b' '; 7 * 1024 * 1024 + 1])).unwrap();
    server.send_http_2(declared).await.error(413, "OUT_OF_RANGE", "REQUEST_TOO_LARGE");
    // Under the port's limit, but over that of the service.
    let long = json!({ "tenantId": "a", "tenant": { "displayName": "x".repeat(300 * 1024) } });
    let answer = server.call("Tenants/CreateTenant", &long).await;
    assert_eq!(answer.status, 413, "{answer:?}");
    let error: Value = answer.json()["error"].take();
    assert_eq!(error["status"], "OUT_OF_RANGE");
    server.stop().await;
}
