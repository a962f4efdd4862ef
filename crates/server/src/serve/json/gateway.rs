//! Finds the method a request means, calls it, and writes the answer.

use super::{
    about,
    answer::Answers,
    body::{JSON_MAX, Transcoded},
    is_grpc_web,
    origin::{self, Origins, Page},
    refusal::{self, Refusal},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Version,
    header::{
        ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, TE,
        TRANSFER_ENCODING, UPGRADE,
    },
};
use hyper::body::Body as _;
use prost_reflect::{DescriptorPool, MessageDescriptor, MethodDescriptor};
use std::{collections::HashMap, convert::Infallible, time::Duration};
use tonic::{Status, body::Body};
use tonic_web::GrpcWebLayer;
use tower::{Layer as _, Service, ServiceExt as _};
use turnbuckle_proto::DESCRIPTORS;

/// Headers that belong to the HTTP request and not to the call it stands for.
const OWN_HEADERS: [HeaderName; 8] = [
    ACCEPT_ENCODING,
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    EXPECT,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Headers of gRPC's own, which would change how the call answers.
const GRPC_HEADERS: [&str; 3] = ["grpc-accept-encoding", "grpc-encoding", "grpc-timeout"];

/// Answers everything that is not native gRPC.
pub(super) struct Gateway {
    methods: HashMap<String, Target>,
    answers: Answers,
    origins: Origins,
    timeout: Duration,
}

/// A method that can be called.
struct Target {
    input: MessageDescriptor,
    output: MessageDescriptor,
    streams: bool,
}

impl Gateway {
    pub(super) fn new(origins: Origins, timeout: Duration) -> anyhow::Result<Self> {
        let mut methods = HashMap::new();
        for descriptors in [DESCRIPTORS, tonic_health::pb::FILE_DESCRIPTOR_SET] {
            let pool = DescriptorPool::decode(descriptors)?;
            for service in pool.services() {
                let name = service.full_name();
                methods.extend(
                    service
                        .methods()
                        .map(|method| (format!("/{name}/{}", method.name()), Target::new(&method))),
                );
            }
        }
        Ok(Self { methods, answers: Answers::new()?, origins, timeout })
    }

    /// Answers one request.
    pub(super) async fn answer<S>(&self, inner: S, request: Request<Body>) -> Response<Body>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Send,
        S::Future: Send,
    {
        match self.origins.page(request.headers()) {
            Page::None => self.route(inner, request).await,
            Page::Foreign => self.refuse(Refusal::Origin, request.uri().path()),
            Page::Allowed(page) => {
                let mut response = match origin::is_preflight(&request) {
                    true => origin::preflight(),
                    false => self.route(inner, request).await,
                };
                origin::mark(&mut response, page);
                response
            }
        }
    }

    async fn route<S>(&self, inner: S, request: Request<Body>) -> Response<Body>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Send,
        S::Future: Send,
    {
        if is_grpc_web(request.headers()) {
            return match GrpcWebLayer::new().layer(inner).oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
        }
        let path = request.uri().path();
        if path == "/" {
            return match *request.method() {
                Method::GET | Method::HEAD => about::page(self.unary_methods()),
                _ => self.refuse(Refusal::Verb("GET"), path),
            };
        }
        match self.target(&request) {
            Ok(target) => self.call(inner, request, target).await,
            Err(refusal) => self.refuse(refusal, path),
        }
    }

    fn unary_methods(&self) -> Vec<&str> {
        let unary = self.methods.iter().filter(|(_, target)| !target.streams);
        unary.map(|(path, _)| path.as_str()).collect()
    }

    fn target(&self, request: &Request<Body>) -> Result<&Target, Refusal> {
        let target = self.methods.get(request.uri().path()).ok_or(Refusal::Method)?;
        let headers = request.headers();
        if request.method() != Method::POST {
            return Err(Refusal::Verb("POST"));
        }
        if !is_json(headers) {
            return Err(Refusal::ContentType);
        }
        if headers.get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            return Err(Refusal::ContentEncoding);
        }
        if target.streams {
            return Err(Refusal::Streaming);
        }
        // Known from the content length, before anything is read.
        if request.body().size_hint().lower() > JSON_MAX as u64 {
            return Err(Refusal::TooLarge(JSON_MAX as u64));
        }
        Ok(target)
    }

    async fn call<S>(&self, inner: S, request: Request<Body>, target: &Target) -> Response<Body>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Send,
        S::Future: Send,
    {
        let call = as_grpc(request, target.input.clone());
        let answering = async {
            match inner.oneshot(call).await {
                Ok(called) => self.answers.call(called, target.output.clone()).await,
                Err(never) => match never {},
            }
        };
        match tokio::time::timeout(self.timeout, answering).await {
            Ok(response) => response,
            Err(_) => self.answers.failure(&Status::deadline_exceeded("the call took too long")),
        }
    }

    fn refuse(&self, refusal: Refusal, path: &str) -> Response<Body> {
        let mut response = self.answers.failure(&refusal.status(path));
        refusal::dress(&mut response, refusal);
        response
    }
}

impl Target {
    fn new(method: &MethodDescriptor) -> Self {
        Self {
            input: method.input(),
            output: method.output(),
            streams: method.is_client_streaming() || method.is_server_streaming(),
        }
    }
}

/// `application/json`, with no other character set than UTF-8.
fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let mut parts = kind.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    is_json
        && parts.all(|parameter| match parameter.split_once('=') {
            Some((name, value)) if name.eq_ignore_ascii_case("charset") => {
                value.trim_matches('"').eq_ignore_ascii_case("utf-8")
            }
            Some(_) | None => true,
        })
}

/// The same request as a native client would send it. All `authorization` headers go along.
fn as_grpc(request: Request<Body>, input: MessageDescriptor) -> Request<Body> {
    let (mut head, json) = request.into_parts();
    for own in OWN_HEADERS {
        head.headers.remove(own);
    }
    for own in GRPC_HEADERS {
        head.headers.remove(own);
    }
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    head.headers.insert(TE, HeaderValue::from_static("trailers"));
    head.version = Version::HTTP_2;
    Request::from_parts(head, Body::new(Transcoded::new(json, input)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_json_in_utf_8_only() {
        let is = |kind: &'static str| {
            is_json(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]))
        };
        assert!(is("application/json"));
        assert!(is("Application/JSON; charset=UTF-8"));
        assert!(is("application/json;charset=\"utf-8\""));
        assert!(!is("application/json; charset=latin1"));
        assert!(!is("application/jsonp"));
        assert!(!is("text/plain"));
        assert!(!is_json(&HeaderMap::new()));
    }
}
