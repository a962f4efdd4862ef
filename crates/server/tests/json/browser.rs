//! gRPC-Web, and which pages may call.

use crate::server::{Answer, Server};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use prost::Message;
use turnbuckle_proto::v1::{GetTenantRequest, ListTenantsRequest, ListTenantsResponse};

const PAGE: &str = "https://console.example.com";

/// One gRPC-Web call.
async fn web(server: &Server, method: &str, message: &impl Message, token: bool) -> Answer {
    let encoded = message.encode_to_vec();
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(encoded.len()).unwrap());
    framed.put_slice(&encoded);
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(format!("/turnbuckle.v1.{method}"))
        .header("content-type", "application/grpc-web+proto")
        .header("x-grpc-web", "1");
    if token {
        request = request.header("authorization", format!("Bearer {}", server.token));
    }
    server.send(request.body(Full::from(framed.freeze())).unwrap()).await
}

/// The frames of a body: flag and content.
fn frames(mut body: Bytes) -> Vec<(u8, Bytes)> {
    let mut frames = Vec::new();
    while body.has_remaining() {
        let (flag, length) = (body.get_u8(), body.get_u32() as usize);
        frames.push((flag, body.split_to(length)));
    }
    frames
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_web_over_http_1_has_its_trailers_in_the_body() {
    let server = Server::start(&[]).await.with_tenant().await;
    let answer = web(&server, "Tenants/ListTenants", &ListTenantsRequest::default(), true).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/grpc-web+proto");
    let frames = frames(answer.bytes);
    assert_eq!(frames.iter().map(|(flag, _)| *flag).collect::<Vec<_>>(), [0, 0x80]);
    let listed = ListTenantsResponse::decode(frames[0].1.clone()).unwrap();
    assert_eq!(listed.tenants[0].name, "tenants/a");
    let trailers = String::from_utf8(frames[1].1.to_vec()).unwrap();
    assert!(trailers.contains("grpc-status:0"), "{trailers}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grpc_web_needs_a_token_and_gets_errors_like_grpc() {
    let server = Server::start(&[]).await;
    let answer = web(&server, "Tenants/ListTenants", &ListTenantsRequest::default(), false).await;
    assert_eq!(answer.header("grpc-status"), "16", "{answer:?}");
    let none = GetTenantRequest { name: "tenants/none".into() };
    let answer = web(&server, "Tenants/GetTenant", &none, true).await;
    assert_eq!(answer.header("grpc-status"), "5", "{answer:?}");
    assert!(!answer.header("grpc-status-details-bin").is_empty());
    server.stop().await;
}

fn from_page(server: &Server, page: &str) -> Request<Full<Bytes>> {
    let request = server.request("Tenants/ListTenants").header("origin", page);
    request.body(Full::from("{}")).unwrap()
}

fn preflight(page: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .method(Method::OPTIONS)
        .uri("/turnbuckle.v1.Tenants/ListTenants")
        .header("origin", page)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type")
        .body(Full::default())
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_may_call_unless_it_is_listed_not_even_in_development() {
    let server = Server::start(&["--dev"]).await;
    for page in [PAGE, "null", &format!("http://{}", server.address)] {
        let answer = server.send(from_page(&server, page)).await;
        answer.error(403, "PERMISSION_DENIED", "ORIGIN_NOT_ALLOWED");
        let answer = server.send(preflight(page)).await;
        answer.error(403, "PERMISSION_DENIED", "ORIGIN_NOT_ALLOWED");
        assert_eq!(answer.header("access-control-allow-origin"), "");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listed_page_may_ask_call_and_read() {
    let server = Server::start(&["--cors-origin", PAGE]).await;
    let answer = server.send(preflight(PAGE)).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), PAGE);
    assert!(answer.header("access-control-allow-headers").contains("authorization"));
    let answer = server.send(from_page(&server, PAGE)).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), PAGE);
    assert!(answer.header("access-control-expose-headers").contains("grpc-status"));
    assert_eq!(answer.header("vary"), "origin");
    let other = server.send(from_page(&server, "https://evil.example")).await;
    other.error(403, "PERMISSION_DENIED", "ORIGIN_NOT_ALLOWED");
    server.stop().await;
}
