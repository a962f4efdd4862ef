//! Wire to commands, with every violation at once; rows to wire, which cannot fail.

pub(crate) mod api_token;
pub(crate) mod audit;
pub(crate) mod change;
pub(crate) mod configuration;
pub(crate) mod endpoint;
pub(crate) mod event_type;
pub(crate) mod event_type_version;
pub(crate) mod key_ring;
pub(crate) mod key_status;
pub(crate) mod keyring;
mod mask;
pub(crate) mod node;
mod page;
mod processing;
pub(crate) mod receipt;
pub(crate) mod repeat;
pub(crate) mod retry_policy;
pub(crate) mod retry_policy_version;
pub(crate) mod retry_preview;
mod scheme;
pub(crate) mod source;
pub(crate) mod source_preset;
mod source_settings;
pub(crate) mod subscription;
mod target;
pub(crate) mod tenant;
mod value;
mod wire_name;

use crate::page::PageRequest;
use std::fmt;
use turnbuckle_domain::{Error, ResourceId, Revision, Violations};
use turnbuckle_runtime::page::{PageToken, page_size};

/// A scheme as requests carry it, for whoever reads schemes in other forms.
#[must_use]
pub fn scheme_message(
    scheme: &turnbuckle_signing::scheme::Scheme,
) -> turnbuckle_proto::v1::VerificationScheme {
    scheme::wire_scheme(scheme)
}

/// The command, when nothing was noted against it.
fn finish<T>(violations: Violations, command: Option<T>) -> Result<T, Error> {
    violations.finish()?;
    command.ok_or_else(|| Error::internal("a part of a request is missing, but no rule is broken"))
}

/// The one value of a request that has no other.
fn single<T, E: fmt::Display>(field: &str, value: Result<T, E>) -> Result<T, Error> {
    value.map_err(|problem| Error::invalid(field, problem.to_string()))
}

/// The etag a caller insists on; none when it sent none.
fn etag(violations: &mut Violations, field: &str, text: &str) -> Option<Revision> {
    if text.is_empty() {
        return None;
    }
    let etag = Revision::from_etag(text)
        .ok_or("is no etag: send back the etag of the resource as it was read, quotes included");
    violations.take(field, etag)
}

/// The etag a caller must send.
fn required_etag(violations: &mut Violations, field: &str, text: &str) -> Option<Revision> {
    if text.is_empty() {
        violations.add(field, "is required: read the key ring and send its etag");
    }
    etag(violations, field, text)
}

/// Last part of a new name. `Some(None)` leaves it to the server.
fn new_id(violations: &mut Violations, field: &str, text: String) -> Option<Option<ResourceId>> {
    if text.is_empty() {
        return Some(None);
    }
    violations.take(field, ResourceId::new(text)).map(Some)
}

/// Which of several deleted resources of one name; none when the caller did not say.
fn uid<I: std::str::FromStr<Err: fmt::Display>>(
    violations: &mut Violations,
    field: &str,
    text: &str,
) -> Option<Option<I>> {
    if text.is_empty() {
        return Some(None);
    }
    let parsed = text.parse().map_err(|error: I::Err| format!("is {error}: use the uid of a list"));
    violations.take(field, parsed).map(Some)
}

/// What separates the tokens of a list with deleted rows from those of one without.
const fn with_deleted(show_deleted: bool) -> &'static str {
    if show_deleted { "/deleted" } else { "" }
}

/// Which rows of a list.
fn page(violations: &mut Violations, scope: String, size: i32, token: &str) -> Option<PageRequest> {
    let limit = absorb(violations, page_size(size));
    let after = absorb(violations, PageToken::decode(&scope, token));
    // Whoever computes a token of their own gets an answer about it, not about the store.
    let malformed = |after: &String| after.contains(char::is_control);
    if after.as_ref().is_some_and(|after| after.as_ref().is_some_and(malformed)) {
        violations.add("page_token", "is not a token of this list");
    }
    Some(PageRequest { scope, after: after?, limit: limit? })
}

/// Adds the violations of a check that has its own error.
fn absorb<T>(violations: &mut Violations, result: Result<T, Error>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Invalid(list)) => {
            for violation in list {
                violations.add(violation.field, violation.message);
            }
            None
        }
        Err(other) => {
            violations.add("request", other.to_string());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_are_optional_but_never_garbage() {
        let mut violations = Violations::new();
        assert_eq!(etag(&mut violations, "etag", ""), None);
        assert_eq!(etag(&mut violations, "etag", "\"7\""), Some(Revision(7)));
        assert!(violations.is_empty());
        for bad in ["7", "W/\"7\"", "\"x\"", "*"] {
            let mut violations = Violations::new();
            assert_eq!(etag(&mut violations, "etag", bad), None);
            assert!(!violations.is_empty(), "{bad}");
        }
        let mut violations = Violations::new();
        assert_eq!(required_etag(&mut violations, "etag", ""), None);
        assert!(violations.into_error().to_string().contains("etag: is required"));
    }

    #[test]
    fn page_requests_report_size_and_token_together() {
        let mut violations = Violations::new();
        assert_eq!(page(&mut violations, "tenants".to_owned(), -1, "garbage"), None);
        let text = violations.into_error().to_string();
        assert!(text.contains("page_size") && text.contains("page_token"), "{text}");
    }

    #[test]
    fn page_tokens_belong_to_their_list() {
        let token = PageToken::encode("tenants/a/endpoints", "billing");
        let mut violations = Violations::new();
        let scope = || "tenants/a/endpoints".to_owned();
        let request = page(&mut violations, scope(), 0, &token).unwrap();
        assert_eq!(request.after.as_deref(), Some("billing"));
        assert!(page(&mut violations, "tenants/b/endpoints".to_owned(), 0, &token).is_none());
        let forged = PageToken::encode("tenants/a/endpoints", "a\0b");
        let mut violations = Violations::new();
        page(&mut violations, scope(), 0, &forged);
        assert!(!violations.is_empty());
    }
}
