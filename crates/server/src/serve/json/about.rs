//! `GET /`: what this port is, for whoever finds it with curl.

use http::{HeaderValue, Response, header::CONTENT_TYPE};
use serde_json::json;
use tonic::body::Body;

/// One JSON object. The version is left out: it is nobody's business without a token.
pub(super) fn page(mut methods: Vec<&str>) -> Response<Body> {
    methods.sort_unstable();
    let page = json!({
        "name": "turnbuckle",
        "description": "Webhook control and delivery: this port takes gRPC, gRPC-Web and JSON over HTTP",
        "json": {
            "request": "POST /{package.Service}/{Method}, content-type: application/json, \
                        authorization: Bearer <token>; the body is the request message in proto3 JSON",
            "methods": methods,
        },
        "grpc": { "reflection": "grpc.reflection.v1.ServerReflection", "health": "grpc.health.v1.Health" },
        "links": { "source": env!("CARGO_PKG_REPOSITORY"), "health": "/grpc.health.v1.Health/Check" },
    });
    let mut response = Response::new(super::answer::body(format!("{page:#}\n").into_bytes()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
