//! Changes of an endpoint's target.

use crate::headers;
use std::{collections::BTreeMap, time::Duration};
use turnbuckle_domain::{EndpointTarget, Error, HttpTarget, PullTarget, Violations};

/// Where an endpoint's extra headers stand in requests.
pub(crate) const HEADERS_FIELD: &str = "endpoint.http.headers";

/// A change of a target, which must be of the target's own kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum TargetChange {
    /// It stays as it is.
    #[default]
    Keep,
    Http(HttpChange),
    Pull(PullChange),
}

impl TargetChange {
    pub(crate) fn apply(&self, target: &mut EndpointTarget) -> Result<(), Error> {
        match (self, target) {
            (Self::Keep, _) => Ok(()),
            (Self::Http(change), EndpointTarget::Http(http)) => change.apply(http),
            (Self::Pull(change), EndpointTarget::Pull(pull)) => {
                change.apply(pull);
                Ok(())
            }
            (Self::Http(_), EndpointTarget::Pull(_)) => Err(Error::invalid(
                "endpoint.http",
                "the endpoint is a pull endpoint and stays one; make another endpoint for the URL",
            )),
            (Self::Pull(_), EndpointTarget::Http(_)) => Err(Error::invalid(
                "endpoint.pull",
                "the endpoint has a URL and keeps it; make another endpoint to pull from",
            )),
        }
    }
}

/// New values of a pull endpoint's fields; none keeps the old one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PullChange {
    pub(crate) lease: Option<Duration>,
    pub(crate) max_outstanding: Option<u16>,
    pub(crate) ordered_by_subject: Option<bool>,
}

impl PullChange {
    fn apply(&self, target: &mut PullTarget) {
        target.lease = self.lease.unwrap_or(target.lease);
        target.max_outstanding = self.max_outstanding.unwrap_or(target.max_outstanding);
        target.ordered_by_subject = self.ordered_by_subject.unwrap_or(target.ordered_by_subject);
    }
}

/// New values of a receiver's fields; none keeps the old one. `Debug` hides what the target's hides.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct HttpChange {
    pub(crate) url: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) headers: Option<BTreeMap<String, String>>,
    pub(crate) header_prefix: Option<String>,
}

impl std::fmt::Debug for HttpChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpChange").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl HttpChange {
    fn apply(&self, target: &mut HttpTarget) -> Result<(), Error> {
        let mut violations = Violations::new();
        let stays = self.url.as_ref().is_none_or(|url| origin(url) == origin(&target.url));
        if let Some(given) = &self.headers {
            let kept = &target.headers;
            target.headers =
                headers::keep_hidden(given, kept, stays, HEADERS_FIELD, &mut violations);
        } else if !stays && !target.headers.is_empty() {
            let message = "send the headers again: kept values do not move to another origin";
            violations.add(HEADERS_FIELD, message);
        }
        if let Some(url) = &self.url {
            target.url.clone_from(url);
        }
        target.timeout = self.timeout.unwrap_or(target.timeout);
        if let Some(prefix) = &self.header_prefix {
            target.header_prefix.clone_from(prefix);
        }
        // Either half may be the old one, so this rule is only known now.
        let prefix = &target.header_prefix;
        headers::check_family(&target.headers, prefix, HEADERS_FIELD, &mut violations);
        violations.finish()
    }
}

/// Scheme and authority of a URL that the target policy has passed, as far as text can tell: two
/// spellings of one origin count as two, which only asks for the headers once more.
fn origin(url: &str) -> String {
    let end = url.match_indices('/').nth(2).map_or(url.len(), |(index, _)| index);
    url[..end].to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> HttpTarget {
        HttpTarget {
            url: "https://a.example/hook".to_owned(),
            timeout: Duration::from_secs(15),
            headers: BTreeMap::from([("acme-key".to_owned(), "1".to_owned())]),
            header_prefix: "webhook".to_owned(),
        }
    }

    #[test]
    fn a_target_keeps_what_is_not_named() {
        let mut changed = target();
        let change = HttpChange { timeout: Some(Duration::from_secs(3)), ..Default::default() };
        change.apply(&mut changed).unwrap();
        assert!(changed == HttpTarget { timeout: Duration::from_secs(3), ..target() });
    }

    #[test]
    fn header_values_are_kept_at_their_origin_and_never_move_to_another() {
        let change = |url: Option<&str>, value: Option<&str>| HttpChange {
            url: url.map(str::to_owned),
            headers: value.map(|value| BTreeMap::from([("acme-key".to_owned(), value.to_owned())])),
            ..HttpChange::default()
        };
        let after = |change: HttpChange| {
            let mut target = target();
            change.apply(&mut target).map(|()| target.headers["acme-key"].clone())
        };
        let same_origin = format!("{}other", target().url);
        assert_eq!(after(change(None, Some("***"))).unwrap(), "1");
        assert_eq!(after(change(Some(&same_origin), None)).unwrap(), "1");
        assert_eq!(after(change(Some("https://b.example/"), Some("2"))).unwrap(), "2");
        for value in [None, Some("***")] {
            let moved = after(change(Some("https://b.example/"), value)).unwrap_err();
            assert!(moved.to_string().contains("endpoint.http.headers"), "{moved}");
        }
    }

    #[test]
    fn a_new_prefix_is_held_against_the_old_headers() {
        let change = HttpChange { header_prefix: Some("acme".to_owned()), ..HttpChange::default() };
        let error = change.apply(&mut target()).unwrap_err();
        assert!(
            error.to_string().contains("endpoint.http.headers: header \"acme-key\""),
            "{error}"
        );
    }

    #[test]
    fn debug_shows_neither_url_nor_headers() {
        let change = HttpChange { url: Some("https://u:p@h/".to_owned()), ..Default::default() };
        assert!(!format!("{change:?}").contains("u:p"));
    }
}
