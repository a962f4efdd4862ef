//! A server of our own in this process, and plain HTTP to it.

use bytes::Bytes;
use clap::Parser;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use std::net::SocketAddr;
use tempfile::TempDir;
use tokio::net::TcpStream;
use turnbuckle_server::serve::{self, Running, ServeArgs};

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    serve: ServeArgs,
}

/// A running server with an embedded store, all roles, and ports of its own.
pub(crate) struct Server {
    running: Running,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    _data: TempDir,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Server {
    pub(crate) async fn start(options: &[&str]) -> Self {
        let data = TempDir::new().unwrap();
        let dir = data.path().to_str().unwrap().to_owned();
        let own = ["serve", "--data-dir", &dir, "--grace", "0s"];
        let ports = ["--api-listen", "--ingress-listen", "--admin-listen"];
        let ports = ports.iter().flat_map(|option| [*option, "127.0.0.1:0"]);
        let line = own.into_iter().chain(ports).chain(options.iter().copied());
        let running = serve::start(&Arguments::parse_from(line).serve).await.unwrap();
        let (address, token) = (running.api.unwrap(), running.admin_token.clone().unwrap());
        Self { running, address, token, _data: data }
    }

    pub(crate) async fn stop(self) {
        self.running.supervisor.shutdown().cancel();
        self.running.finished().await.unwrap();
    }

    /// A POST of JSON to a method of the API, with the admin's token.
    pub(crate) async fn call(&self, method: &str, json: &Value) -> Answer {
        self.send(self.request(method).body(Full::from(json.to_string())).unwrap()).await
    }

    /// The same, of which the message matters.
    pub(crate) async fn ok(&self, method: &str, json: &Value) -> Value {
        let answer = self.call(method, json).await;
        assert_eq!(answer.status, StatusCode::OK, "{method}: {answer:?}");
        answer.json()
    }

    pub(crate) fn request(&self, method: &str) -> http::request::Builder {
        Request::builder()
            .method(Method::POST)
            .uri(format!("/turnbuckle.v1.{method}"))
            .header("content-type", "application/json; charset=utf-8")
            .header("authorization", format!("Bearer {}", self.token))
    }

    /// Over HTTP/1.1, on a connection of its own.
    pub(crate) async fn send(&self, mut request: Request<Full<Bytes>>) -> Answer {
        let host = self.address.to_string().parse().unwrap();
        request.headers_mut().insert("host", host);
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(connection);
        let response = sender.send_request(request).await.unwrap();
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        connection.abort();
        Answer { status: head.status, headers: head.headers, bytes }
    }

    /// Over HTTP/2 without TLS.
    pub(crate) async fn send_http_2(&self, mut request: Request<Full<Bytes>>) -> Answer {
        let uri = format!("http://{}{}", self.address, request.uri());
        *request.uri_mut() = uri.parse().unwrap();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let io = TokioIo::new(stream);
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        let connection = tokio::spawn(connection);
        let response = sender.send_request(request).await.unwrap();
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        connection.abort();
        Answer { status: head.status, headers: head.headers, bytes }
    }

    /// A tenant `a`, for tests that are about something inside of it.
    pub(crate) async fn with_tenant(self) -> Self {
        self.ok("Tenants/CreateTenant", &serde_json::json!({ "tenantId": "a" })).await;
        self
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The error object, its shape checked.
    #[track_caller]
    pub(crate) fn error(&self, http: u16, status: &str, reason: &str) -> Value {
        assert_eq!(self.status, http, "{self:?}");
        assert_eq!(self.header("content-type"), "application/json");
        let error = self.json()["error"].take();
        assert_eq!(error["status"], status, "{error}");
        assert!(error["code"].is_u64() && error["message"].is_string(), "{error}");
        let info = detail(&error, "ErrorInfo");
        assert_eq!(info["reason"], reason, "{error}");
        assert_eq!(info["domain"], "turnbuckle.dev");
        error
    }
}

/// The detail of this kind.
#[track_caller]
pub(crate) fn detail<'a>(error: &'a Value, kind: &str) -> &'a Value {
    let url = format!("type.googleapis.com/google.rpc.{kind}");
    let details = error["details"].as_array().unwrap();
    details.iter().find(|detail| detail["@type"] == url.as_str()).unwrap()
}
