//! What must be kept beside a body, so that the same events can be made of it later.

use super::Mapping;
use http::{HeaderMap, Uri, header};
use std::collections::BTreeSet;
use turnbuckle_domain::{ReplayContext, may_hold_credential};
use turnbuckle_signing::scheme::Locator;
use url::form_urlencoded;

/// Longest value kept. What is longer is no part of an event.
const VALUE_BYTES: usize = 4 * 1024;

impl Mapping {
    /// The media type, and the headers and parameters that the settings read.
    pub(crate) fn context(
        &self,
        headers: &HeaderMap,
        uri: &Uri,
        message_id: Option<String>,
    ) -> ReplayContext {
        let (mut names, mut parameters) = (BTreeSet::new(), BTreeSet::new());
        for at in self.places() {
            match at {
                Locator::Header(name) if !may_hold_credential(&name.to_ascii_lowercase()) => {
                    names.insert(name.as_str());
                }
                Locator::Query(name) => {
                    parameters.insert(name.as_str());
                }
                _ => {}
            }
        }
        let text = |value: &http::HeaderValue| value.to_str().ok().map(str::to_owned);
        let fits = |value: &String| value.len() <= VALUE_BYTES;
        let of_header = |name: &str| {
            let values = headers.get_all(name).iter().filter_map(text).filter(fits);
            values.map(|value| (name.to_owned(), value)).collect::<Vec<_>>()
        };
        let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let wanted = query.filter(|(name, value)| {
            parameters.contains(name.as_ref()) && value.len() <= VALUE_BYTES
        });
        ReplayContext {
            content_type: headers.get(header::CONTENT_TYPE).and_then(text).unwrap_or_default(),
            message_id,
            headers: names.iter().flat_map(|name| of_header(name)).collect(),
            query: wanted.map(|(name, value)| (name.into_owned(), value.into_owned())).collect(),
        }
    }

    fn places(&self) -> impl Iterator<Item = &Locator> {
        let ids = self.event_id.iter().flatten();
        let finders = self.event_type.iter().chain(&self.version).chain(&self.occurred_at);
        finders.chain(ids).flat_map(super::Finder::places)
    }
}
