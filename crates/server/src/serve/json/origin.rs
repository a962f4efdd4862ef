//! Which web pages may call: cross-origin resource sharing, and its absence.
//!
//! A browser names the page behind every POST in `origin`. Pages that are not listed are refused
//! outright, not only kept from reading the answer: in development a call needs no token, and a
//! page that made its own name resolve to this machine would count as same-origin to the browser.

use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
        ORIGIN, VARY,
    },
};
use tonic::body::Body;

/// What pages may send: gRPC-Web's own headers, the token, and trace context.
const ALLOW_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, grpc-timeout, traceparent, tracestate, x-grpc-web, x-user-agent",
);
/// What pages may read.
const EXPOSE_HEADERS: HeaderValue =
    HeaderValue::from_static("grpc-message, grpc-status, grpc-status-details-bin, retry-after");
/// Browsers keep the answer no longer than two hours in any case.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// The origins whose pages may call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins(Vec<HeaderValue>);

/// Where a request comes from.
pub(super) enum Page {
    /// Not from a web page.
    None,
    /// From a page that may call.
    Allowed(HeaderValue),
    /// From any other page.
    Foreign,
}

impl Origins {
    /// Takes origins as browsers write them: `https://console.example.com`, with the port when it
    /// is not the scheme's own.
    ///
    /// # Errors
    /// When one would never match, or would match everything.
    pub(crate) fn parse(origins: &[String]) -> anyhow::Result<Self> {
        origins.iter().map(|origin| one(origin)).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn page(&self, headers: &HeaderMap) -> Page {
        match headers.get(ORIGIN) {
            None => Page::None,
            Some(origin) if self.0.contains(origin) => Page::Allowed(origin.clone()),
            Some(_) => Page::Foreign,
        }
    }
}

fn one(origin: &str) -> anyhow::Result<HeaderValue> {
    let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    let plain = host.is_some_and(|host| {
        !host.is_empty()
            && host.bytes().all(
                |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b':' | b'[' | b']'),
            )
    });
    anyhow::ensure!(
        plain,
        "--cors-origin {origin}: write it as https://console.example.com, in lower case and \
         without a path; patterns are not taken"
    );
    Ok(HeaderValue::from_str(origin)?)
}

/// Whether the browser only asks if it may call.
pub(super) fn is_preflight(request: &Request<Body>) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Yes, it may.
pub(super) fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOW_HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}

/// Lets the page read the answer.
pub(super) fn mark(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSE_HEADERS);
    headers.append(VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_that_could_never_match_or_always_would_are_refused() {
        for good in ["https://console.example.com", "http://localhost:3000", "http://[::1]:80"] {
            assert!(Origins::parse(&[good.into()]).is_ok(), "{good}");
        }
        for bad in ["*", "https://*.example.com", "https://a.b/", "null", "https://", "HTTPS://a"] {
            let error = Origins::parse(&[bad.into()]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--cors-origin {bad}")), "{error}");
        }
    }

    #[test]
    fn without_a_list_every_page_is_foreign_and_no_page_is_none() {
        let mut headers = HeaderMap::new();
        assert!(matches!(Origins::default().page(&headers), Page::None));
        headers.insert(ORIGIN, HeaderValue::from_static("http://127.0.0.1:7420"));
        assert!(matches!(Origins::default().page(&headers), Page::Foreign));
    }
}
