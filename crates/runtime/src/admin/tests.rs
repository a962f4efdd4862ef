use super::*;
use axum::{body::Body, http::Request};
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

fn state() -> (AdminState, CancellationToken) {
    let token = CancellationToken::new();
    (AdminState::new(metrics_recorder().unwrap(), token.clone()), token)
}

async fn get(state: &AdminState, path: &str) -> (StatusCode, String, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = router(state.clone()).oneshot(request).await.unwrap();
    let status = response.status();
    let kind = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, kind, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn liveness_does_not_depend_on_readiness() {
    let (state, _token) = state();
    let state = state.with_check("store", Arc::new(|| Readiness::NotReady));
    let (status, _, body) = get(&state, "/healthz").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, r#"{"status":"alive"}"#));
}

#[tokio::test]
async fn readiness_names_the_failing_checks_only() {
    let (state, _token) = state();
    let (sender, receiver) = watch::channel(Readiness::NotReady);
    let state = state
        .with_check("fine", Arc::new(|| Readiness::Ready))
        .with_check("store", Arc::new(|| Readiness::NotReady))
        .with_watch("configuration", receiver);
    let (status, _, body) = get(&state, "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(body, r#"{"failing":["store","configuration"],"status":"not ready"}"#);
    sender.send(Readiness::Ready).unwrap();
    let (_, _, body) = get(&state, "/readyz").await;
    assert_eq!(body, r#"{"failing":["store"],"status":"not ready"}"#);
    drop(sender);
    let (_, _, body) = get(&state, "/readyz").await;
    assert!(body.contains("configuration"), "{body}");
}

#[tokio::test]
async fn details_are_told_ready_or_not() {
    let (state, token) = state();
    let state = state.with_detail("configuration", Arc::new(|| json!({"revision": 7})));
    let (_, _, body) = get(&state, "/readyz").await;
    assert_eq!(body, r#"{"configuration":{"revision":7},"status":"ready"}"#);
    token.cancel();
    let (_, _, body) = get(&state, "/readyz").await;
    assert!(body.contains(r#"{"revision":7}"#), "{body}");
}

#[tokio::test]
async fn readiness_ends_when_the_process_is_to_stop() {
    let (state, token) = state();
    assert_eq!(get(&state, "/readyz").await.0, StatusCode::OK);
    token.cancel();
    let (status, _, body) = get(&state, "/readyz").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(body.contains("running"), "{body}");
}

#[tokio::test]
async fn metrics_come_as_prometheus_text_with_second_buckets() {
    let (state, _token) = state();
    ::metrics::histogram!("turnbuckle_sample_seconds").record(0.003);
    ::metrics::histogram!("turnbuckle_sample_rows").record(7.0);
    let (status, kind, body) = get(&state, "/metrics").await;
    assert_eq!((status, kind.as_str()), (StatusCode::OK, PROMETHEUS_TEXT));
    assert!(body.contains("turnbuckle_build_info{version="), "{body}");
    assert!(body.contains(r#"turnbuckle_sample_seconds_bucket{le="0.005"} 1"#), "{body}");
    assert!(body.contains(r#"turnbuckle_sample_rows_bucket{le="10"} 1"#), "{body}");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let (state, _token) = state();
    let (status, kind, body) = get(&state, "/other").await;
    assert_eq!((status, kind.as_str()), (StatusCode::NOT_FOUND, PROBLEM_JSON));
    assert!(body.contains(r#""status":404"#), "{body}");
    let request = Request::post("/healthz").body(Body::empty()).unwrap();
    let response = router(state).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM_JSON);
}

#[tokio::test]
async fn the_server_ends_with_its_token_though_a_client_dawdles() {
    let (state, token) = state();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(serve(listener, state));
    let _silent = tokio::net::TcpStream::connect(address).await.unwrap();
    token.cancel();
    server.await.unwrap().unwrap();
}
