//! Rules of places in a request.

use crate::scheme::limits::{MAX_NAME_BYTES, MAX_NUMBERED_HEADER};
use crate::scheme::locator::Locator;
use crate::scheme::proof::SignatureProof;
use crate::scheme::violation::Violations;

/// Which kinds of places a field may name.
pub(super) struct Places {
    /// Entries of the signature header have tags.
    tagged: bool,
}

impl Places {
    pub(super) fn of(proof: &SignatureProof) -> Self {
        Self { tagged: proof.syntax.key_separator.is_some() }
    }

    pub(super) fn of_jwt() -> Self {
        Self { tagged: false }
    }

    /// A place of a single value.
    pub(super) fn check(&self, field: &str, at: &Locator, found: &mut Violations) {
        match at {
            Locator::NumberedHeader { .. } => {
                found.add(field, "numbered headers hold signatures only; name one header");
            }
            Locator::SignatureField(name) => {
                if !self.tagged {
                    found.add(field, "entries have no tags; set syntax.key_separator");
                }
                check_name(field, name, found);
            }
            other => check_shape(field, other, found),
        }
    }
}

/// A place of signatures.
pub(super) fn check_signature_source(field: &str, at: &Locator, found: &mut Violations) {
    match at {
        Locator::SignatureField(_) => {
            found.add(field, "a signature stands in a header, the query or the body");
        }
        Locator::NumberedHeader { prefix, last } => {
            check_header(field, prefix, found);
            if !(1..=MAX_NUMBERED_HEADER).contains(last) {
                found.add(field, format!("the last number is 1 to {MAX_NUMBERED_HEADER}"));
            }
        }
        other => check_shape(field, other, found),
    }
}

fn check_shape(field: &str, at: &Locator, found: &mut Violations) {
    match at {
        Locator::Header(name) => check_header(field, name, found),
        Locator::Authorization(scheme) => {
            if !is_token(scheme) {
                found.add(field, "the authorization scheme is one word, such as Bearer");
            }
        }
        Locator::Query(name) | Locator::Form(name) => check_name(field, name, found),
        Locator::Json(path) => {
            if path.is_plural() {
                found.add(field, "stands for one value; [*] is for items only");
            }
        }
        Locator::NumberedHeader { .. } | Locator::SignatureField(_) => {}
    }
}

/// A name of a parameter, field, tag or claim.
pub(super) fn check_name(field: &str, name: &str, found: &mut Violations) {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        found.add(field, format!("a name has 1 to {MAX_NAME_BYTES} bytes"));
    }
}

/// A lower-case header name.
pub(super) fn check_header(field: &str, name: &str, found: &mut Violations) {
    if !is_token(name) || name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        found.add(
            field,
            format!(
                "a header name is 1 to {MAX_NAME_BYTES} lower-case letters, digits and hyphens"
            ),
        );
    }
}

/// The `token` of HTTP, within our bound.
fn is_token(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(allowed)
}
