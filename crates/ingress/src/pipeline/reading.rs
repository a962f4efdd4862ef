//! What is read of a request's head.

use super::Received;
use http::{HeaderMap, header};
use turnbuckle_signing::HeaderSource;

/// Headers as the signing crate asks for them.
pub(super) struct Headers<'a>(pub(super) &'a HeaderMap);

impl HeaderSource for Headers<'_> {
    fn get_all(&self, name: &str) -> Vec<&[u8]> {
        self.0.get_all(name).iter().map(http::HeaderValue::as_bytes).collect()
    }
}

/// Stands where a source has no URL of its own: its scheme signs none then.
pub(super) const NO_HOST: &str = "https://ingress.invalid";

impl Received {
    /// The URL that the sender called: the configured one, with the query of this request. `Host` and
    /// the headers of proxies are never believed.
    pub(super) fn url(&self) -> String {
        let uri = &self.parts.uri;
        let Some(public) = &self.entry.source().public_url else {
            let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
            return format!("{NO_HOST}{path}");
        };
        match uri.query() {
            Some(query) => match public.split_once('?') {
                None => format!("{public}?{query}"),
                // Some senders put parameters of their own behind the configured ones.
                Some((bare, configured)) if query.starts_with(configured) => {
                    format!("{bare}?{query}")
                }
                Some(_) => public.clone(),
            },
            None => public.clone(),
        }
    }

    /// The media type as it was sent; empty when it is not readable.
    pub(super) fn content_type(&self) -> String {
        let value = self.parts.headers.get(header::CONTENT_TYPE);
        value.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    }
}
