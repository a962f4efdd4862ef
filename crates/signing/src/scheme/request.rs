//! The request that is verified, and values out of it.

use std::borrow::Cow;

use super::form;
use super::json::{self, JsonFault};
use super::limits::{MAX_SIGNATURE_HEADER_BYTES, MAX_URL_BYTES};
use super::locator::Locator;
use super::proof::SignatureProof;
use super::refusal::{Refusal, Role};
use crate::headers::HeaderSource;

/// A received request, as it came.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The method, upper case.
    pub method: &'a str,
    /// The configured public URL with the path and query of this request: what the sender called.
    pub url: &'a str,
    /// All headers.
    pub headers: &'a dyn HeaderSource,
    /// The body, before any parsing.
    pub body: &'a [u8],
}

/// What a request is judged against, besides keys.
#[derive(Clone, Copy, Default)]
pub struct Context<'a> {
    /// The receiver's time in Unix milliseconds.
    pub now_unix_ms: i64,
    /// The settings of the source by name (see [`Scheme::settings`](super::Scheme::settings)).
    pub settings: &'a [(&'a str, &'a str)],
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Some settings are as good as a password.
        let names: Vec<&str> = self.settings.iter().map(|(name, _)| *name).collect();
        f.debug_struct("Context")
            .field("now_unix_ms", &self.now_unix_ms)
            .field("settings", &names)
            .finish()
    }
}

impl<'a> Context<'a> {
    pub(crate) fn setting(&self, name: &str) -> Result<&'a str, Refusal> {
        self.settings
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
            .ok_or(Refusal::MissingSetting)
    }
}

/// A request, or one item of it, as a scheme sees it.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) request: &'a Request<'a>,
    /// Where JSON locators start: the body, or an item of it.
    pub(crate) document: &'a [u8],
    /// What entries of a signature header look like.
    pub(crate) proof: Option<&'a SignatureProof>,
}

impl<'a> View<'a> {
    pub(crate) fn of(request: &'a Request<'a>, proof: Option<&'a SignatureProof>) -> Self {
        Self { request, document: request.body, proof }
    }

    /// The single value at a place; nothing for an absent one and for a JSON null.
    pub(crate) fn find(
        &self,
        at: &Locator,
        role: Role,
        limit: usize,
    ) -> Result<Option<Cow<'a, [u8]>>, Refusal> {
        let found = match at {
            Locator::Header(name) => self.header(name, role)?,
            Locator::Authorization(scheme) => {
                self.header("authorization", role)?.and_then(|value| credentials(value, scheme))
            }
            Locator::Query(name) => {
                let query = form::query(self.url()?).as_bytes();
                form::field(query, name).map_err(|_| Refusal::Repeated(role))?
            }
            Locator::Form(name) => {
                form::field(self.request.body, name).map_err(|_| Refusal::Repeated(role))?
            }
            Locator::Json(path) => {
                json::scalar(self.document, path).map_err(|fault| refusal(fault, role))?
            }
            Locator::SignatureField(name) => self.signature_field(name, role)?,
            // The rules refuse it here.
            Locator::NumberedHeader { .. } => None,
        };
        match found {
            Some(value) if value.len() > limit => Err(Refusal::TooLong(role)),
            other => Ok(other),
        }
    }

    /// A value that must be there.
    pub(crate) fn need(
        &self,
        at: &Locator,
        role: Role,
        limit: usize,
    ) -> Result<Cow<'a, [u8]>, Refusal> {
        self.find(at, role, limit)?.ok_or(Refusal::Missing(role))
    }

    /// Every value that signatures may stand in; bounded together.
    pub(crate) fn signature_values(
        &self,
        sources: &[Locator],
    ) -> Result<Vec<Cow<'a, [u8]>>, Refusal> {
        const ROLE: Role = Role::Signature;
        let mut values: Vec<Cow<'a, [u8]>> = Vec::new();
        for at in sources {
            match at {
                Locator::Header(name) => {
                    values.extend(self.all(name).into_iter().map(Cow::Borrowed));
                }
                Locator::NumberedHeader { prefix, last } => {
                    for number in 1..=*last {
                        let name = format!("{prefix}{number}");
                        values.extend(self.all(&name).into_iter().map(Cow::Borrowed));
                    }
                }
                other => values.extend(self.find(other, ROLE, MAX_SIGNATURE_HEADER_BYTES)?),
            }
        }
        let total: usize = values.iter().map(|value| value.len()).sum();
        if total > most_signature_bytes(sources) {
            return Err(Refusal::SignaturesTooLong);
        }
        Ok(values)
    }

    pub(crate) fn url(&self) -> Result<&'a str, Refusal> {
        let url = self.request.url;
        if url.len() > MAX_URL_BYTES { Err(Refusal::TooLong(Role::SignedPart)) } else { Ok(url) }
    }

    fn all(&self, name: &str) -> Vec<&'a [u8]> {
        self.request.headers.get_all(name)
    }

    /// A second value could be read by someone else in the chain, so it is refused, not ignored.
    fn header(&self, name: &str, role: Role) -> Result<Option<Cow<'a, [u8]>>, Refusal> {
        match self.all(name).as_slice() {
            [] => Ok(None),
            [value] => Ok(Some(Cow::Borrowed(value))),
            _ => Err(Refusal::Repeated(role)),
        }
    }

    fn signature_field(&self, name: &str, role: Role) -> Result<Option<Cow<'a, [u8]>>, Refusal> {
        let Some(proof) = self.proof else { return Ok(None) };
        let mut found = None;
        for value in self.signature_values(&proof.sources)? {
            // A tagged list stands in a header; one inside a body has no fields beside it.
            let Cow::Borrowed(value) = value else { continue };
            for entry in proof.syntax.entries(value) {
                let repeated = entry.tag == Some(name.as_bytes())
                    && found.replace(Cow::Borrowed(entry.value)).is_some();
                if repeated {
                    return Err(Refusal::Repeated(role));
                }
            }
        }
        Ok(found)
    }
}

/// Numbered headers carry one signature each, so their bound grows with their number.
fn most_signature_bytes(sources: &[Locator]) -> usize {
    /// The longest of those: HMAC with SHA-512 in hex.
    const EACH: usize = 128;
    let numbered = sources.iter().map(|at| match at {
        Locator::NumberedHeader { last, .. } => usize::from(*last) * EACH,
        _ => 0,
    });
    numbered.max().unwrap_or(0).max(MAX_SIGNATURE_HEADER_BYTES)
}

/// What follows the name of the authorization scheme.
fn credentials<'a>(value: Cow<'a, [u8]>, scheme: &str) -> Option<Cow<'a, [u8]>> {
    let (name, rest) = value.split_at_checked(scheme.len())?;
    let rest = rest.strip_prefix(b" ")?;
    let matches = name.eq_ignore_ascii_case(scheme.as_bytes());
    matches.then(|| Cow::Owned(rest.trim_ascii().to_vec()))
}

fn refusal(fault: JsonFault, role: Role) -> Refusal {
    match fault {
        JsonFault::Malformed => Refusal::MalformedBody,
        JsonFault::Repeated => Refusal::Repeated(role),
        JsonFault::NotScalar => Refusal::Malformed(role),
        JsonFault::TooMany => Refusal::TooManyItems,
    }
}
