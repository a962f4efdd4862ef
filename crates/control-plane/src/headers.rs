//! Which extra request headers an endpoint may have, and which header prefixes.

use http::{HeaderName, HeaderValue};
use std::collections::BTreeMap;
use turnbuckle_domain::{Violations, limits};

/// Longest name of an extra header: longer than any in use, short enough for every server.
const NAME_BYTES_MAX: usize = 128;

/// Enough of a bad name to recognise it, and no more.
const SHOWN_CHARS: usize = 70;

/// First part of the Standard Webhooks header names when none is chosen.
pub(crate) const PREFIX_DEFAULT: &str = "webhook";

/// Names that HTTP framing, content negotiation, tracing and idempotency need for themselves.
const RESERVED: [&str; 15] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "keep-alive",
    "user-agent",
    "accept-encoding",
    "traceparent",
    "tracestate",
    "idempotency-key",
];

/// Families that the product or HTTP own, whatever prefix an endpoint has. An extra header of the
/// hub profile may have any suffix, so that family is closed by prefix without a hyphen.
const RESERVED_FAMILIES: [&str; 4] = ["proxy-", "turnbuckle-", "x-webhook-", "x-hub-signature"];

/// Families of the common Standard Webhooks prefixes: closed to extra headers, open as a prefix.
const WEBHOOK_FAMILIES: [&str; 2] = ["webhook-", "svix-"];

/// What Standard Webhooks puts after the prefix.
const WEBHOOK_SUFFIXES: [&str; 3] = ["-id", "-timestamp", "-signature"];

fn owned_by_others(name: &str) -> bool {
    RESERVED.contains(&name) || RESERVED_FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Stands for a value in answers. Values may be credentials, and reading configuration shows none; in
/// an update it keeps the value of that name.
pub(crate) const HIDDEN: &str = "***";

/// Puts kept values in the place of [`HIDDEN`]. Values are kept only as long as the URL stays at its
/// origin: who may change the URL must not be able to send them elsewhere.
pub(crate) fn keep_hidden(
    given: &BTreeMap<String, String>,
    kept: &BTreeMap<String, String>,
    may_keep: bool,
    field: &str,
    violations: &mut Violations,
) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::new();
    for (name, value) in given {
        let old = kept.get(name).filter(|_| may_keep);
        match (value.as_str(), old) {
            (HIDDEN, Some(old)) => drop(headers.insert(name.clone(), old.clone())),
            (HIDDEN, None) => violations.add(
                field,
                format!("header {name:?} has no value to keep for this URL: send the value"),
            ),
            _ => drop(headers.insert(name.clone(), value.clone())),
        }
    }
    headers
}

/// Checks extra headers as far as they do not depend on the prefix. Returns them with lower-case
/// names. Values are in no message: they are where credentials go.
pub(crate) fn check(
    given: impl IntoIterator<Item = (String, String)>,
    field: &str,
    violations: &mut Violations,
) -> BTreeMap<String, String> {
    // In order, so that the same request gets the same answer.
    let given: BTreeMap<String, String> = given.into_iter().collect();
    if given.len() > limits::HEADERS {
        violations
            .add(field, format!("has {} headers; use at most {}", given.len(), limits::HEADERS));
        return BTreeMap::new();
    }
    let mut headers = BTreeMap::new();
    for (given_name, value) in given {
        let shown: String = given_name.chars().take(SHOWN_CHARS).collect();
        let name = given_name.to_ascii_lowercase();
        if let Err(problem) = check_one(&name, &value) {
            violations.add(field, format!("header {shown:?} {problem}"));
        } else if headers.insert(name, value).is_some() {
            violations
                .add(field, format!("header {shown:?} is there twice: names ignore letter case"));
        }
    }
    headers
}

fn check_one(name: &str, value: &str) -> Result<(), String> {
    if name.len() > NAME_BYTES_MAX || HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err(format!(
            "is no header name: use 1 to {NAME_BYTES_MAX} letters, digits and hyphens"
        ));
    }
    if owned_by_others(name) || WEBHOOK_FAMILIES.iter().any(|family| name.starts_with(family)) {
        return Err("is reserved: HTTP, the signature or the product sets it".to_owned());
    }
    if value.len() > limits::HEADER_VALUE_BYTES {
        return Err(format!(
            "has a value of {} bytes; use at most {}",
            value.len(),
            limits::HEADER_VALUE_BYTES
        ));
    }
    let visible = value.is_ascii() && HeaderValue::from_str(value).is_ok();
    if !visible || value.trim_ascii() != value {
        return Err("has a value that is not visible ASCII without spaces around it".to_owned());
    }
    Ok(())
}

/// Checks a prefix and returns it in lower case; the empty one is the default.
pub(crate) fn check_prefix(given: &str) -> Result<String, String> {
    if given.is_empty() {
        return Ok(PREFIX_DEFAULT.to_owned());
    }
    let prefix = given.to_ascii_lowercase();
    let well_formed = prefix.len() <= limits::HEADER_PREFIX_CHARS
        && prefix.starts_with(|first: char| first.is_ascii_lowercase())
        && !prefix.ends_with('-')
        && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !well_formed {
        return Err(format!(
            "is no header prefix: use 1 to {} letters, digits and inner hyphens, starting with a letter",
            limits::HEADER_PREFIX_CHARS
        ));
    }
    let taken = WEBHOOK_SUFFIXES.iter().any(|suffix| owned_by_others(&format!("{prefix}{suffix}")));
    if taken {
        return Err(format!("{prefix:?} is reserved: use webhook, svix or a name of your own"));
    }
    Ok(prefix)
}

/// Checks that no extra header belongs to the family of the prefix.
pub(crate) fn check_family(
    headers: &BTreeMap<String, String>,
    prefix: &str,
    field: &str,
    violations: &mut Violations,
) {
    let family = format!("{prefix}-");
    for name in headers.keys().filter(|name| name.starts_with(&family)) {
        violations.add(
            field,
            format!("header {name:?} is reserved: names with the header prefix {prefix:?} carry the signature"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(pairs: &[(&str, &str)]) -> Vec<String> {
        let mut violations = Violations::new();
        let given = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        check(given, "endpoint.http.headers", &mut violations);
        match violations.into_error() {
            turnbuckle_domain::Error::Invalid(list) => {
                list.into_iter().map(|violation| violation.message).collect()
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn ordinary_headers_pass_in_lower_case() {
        let mut violations = Violations::new();
        let given = [("Authorization", "Bearer a.b-c"), ("X-Api-Key", "k"), ("x-empty", "")];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let headers = check(given, "headers", &mut violations);
        assert!(violations.is_empty());
        let names: Vec<&str> = headers.keys().map(String::as_str).collect();
        assert_eq!(names, ["authorization", "x-api-key", "x-empty"]);
    }

    #[test]
    fn reserved_names_are_refused_in_any_letter_case() {
        for name in [
            "Host",
            "content-length",
            "Content-Type",
            "transfer-encoding",
            "connection",
            "TE",
            "trailer",
            "upgrade",
            "expect",
            "keep-alive",
            "proxy-authorization",
            "Proxy-Connection",
            "user-agent",
            "accept-encoding",
            "webhook-id",
            "webhook-anything",
            "svix-signature",
            "x-webhook-timestamp",
            "X-Hub-Signature",
            "x-hub-signature-256",
            "turnbuckle-attempt",
            "traceparent",
            "tracestate",
            "Idempotency-Key",
        ] {
            let found = problems(&[(name, "v")]);
            assert_eq!(found.len(), 1, "{name}");
            assert!(found[0].contains("reserved"), "{name}: {}", found[0]);
        }
    }

    #[test]
    fn malformed_names_and_values_are_refused_without_showing_values() {
        for (name, value) in [
            ("", "v"),
            ("a b", "v"),
            ("a:b", "v"),
            ("ä", "v"),
            ("x-a", "sécret"),
            ("x-a", "secret\r\nx-b: 1"),
            ("x-a", "secret\0"),
            ("x-a", " secret"),
            ("x-a", "secret\t"),
        ] {
            let found = problems(&[(name, value)]);
            assert_eq!(found.len(), 1, "{name:?} {value:?}");
            assert!(!found[0].contains("ecret") && !found[0].contains("cret"), "{}", found[0]);
        }
        let long = "v".repeat(limits::HEADER_VALUE_BYTES + 1);
        assert!(problems(&[("x-a", &long)])[0].contains("at most 4096"));
        assert_eq!(problems(&[(&"n".repeat(NAME_BYTES_MAX + 1), "v")]).len(), 1);
    }

    #[test]
    fn the_same_name_twice_is_refused() {
        let found = problems(&[("X-Key", "1"), ("x-key", "2")]);
        assert_eq!(found, ["header \"x-key\" is there twice: names ignore letter case"]);
    }

    #[test]
    fn there_is_a_bound_on_their_number() {
        let names: Vec<String> = (0..=limits::HEADERS).map(|n| format!("x-{n}")).collect();
        let pairs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
        assert!(problems(&pairs[1..]).is_empty());
        assert_eq!(problems(&pairs), ["has 33 headers; use at most 32"]);
    }

    #[test]
    fn prefixes_keep_to_their_alphabet_and_off_other_families() {
        for (given, kept) in [
            ("", "webhook"),
            ("webhook", "webhook"),
            ("Svix", "svix"),
            ("acme-hooks", "acme-hooks"),
        ] {
            assert_eq!(check_prefix(given).as_deref(), Ok(kept), "{given}");
        }
        let long = "p".repeat(33);
        for bad in ["-a", "a-", "9a", "a_b", "a b", "é", "turnbuckle", "x-webhook", "proxy", &long]
        {
            assert!(check_prefix(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn extra_headers_stay_out_of_the_prefix_family() {
        let headers = BTreeMap::from([("acme-id".to_owned(), "1".to_owned())]);
        let mut violations = Violations::new();
        check_family(&headers, "webhook", "headers", &mut violations);
        assert!(violations.is_empty());
        check_family(&headers, "acme", "headers", &mut violations);
        assert!(!violations.is_empty());
    }
}
