//! Signatures taken out of the text they stand in.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use data_encoding::HEXLOWER_PERMISSIVE;

use super::limits::{MAX_SIGNATURES, MAX_VALUE_BYTES};
use super::locator::Locator;
use super::proof::{Algorithm, Encoding, SignatureProof, SignatureSyntax};
use super::refusal::{Refusal, Role};
use super::request::View;

/// One entry of a signature header.
pub(crate) struct Entry<'v> {
    pub(crate) tag: Option<&'v [u8]>,
    pub(crate) value: &'v [u8],
}

impl SignatureSyntax {
    /// The entries of a value, in order; where entries have tags, those without one are left out.
    pub(crate) fn entries<'v>(&'v self, value: &'v [u8]) -> impl Iterator<Item = Entry<'v>> {
        let separator = self.item_separator;
        value
            .split(move |byte| separator.is_some_and(|wanted| char::from(*byte) == wanted))
            .filter_map(|text| self.entry(text))
    }

    fn entry<'v>(&self, text: &'v [u8]) -> Option<Entry<'v>> {
        let text = if self.trim { text.trim_ascii() } else { text };
        let Some(separator) = self.key_separator else {
            return Some(Entry { tag: None, value: text });
        };
        let at = text.iter().position(|byte| char::from(*byte) == separator)?;
        Some(Entry { tag: Some(&text[..at]), value: &text[at + 1..] })
    }
}

/// A signature of the right spelling and length; whether it is right is not known yet.
pub(crate) struct Candidate {
    /// The algorithm it is for, by its place in the proof.
    pub(crate) rule: usize,
    pub(crate) bytes: Vec<u8>,
}

/// The well-formed signatures of a request; everything else is passed over, so that a malformed
/// or unknown entry can never hide a later good one.
pub(crate) fn candidates(
    view: &View<'_>,
    proof: &SignatureProof,
) -> Result<Vec<Candidate>, Refusal> {
    let values = view.signature_values(&proof.sources)?;
    if values.is_empty() {
        return Err(Refusal::Missing(Role::Signature));
    }
    let most = most_signatures(&proof.sources);
    let mut found = Vec::new();
    for value in &values {
        for entry in proof.syntax.entries(value) {
            let Some(text) = entry.value.strip_prefix(proof.syntax.prefix.as_bytes()) else {
                continue;
            };
            for (rule, algorithm) in proof.algorithms.iter().enumerate() {
                let meant = algorithm.tags.is_empty()
                    || algorithm.tags.iter().any(|tag| Some(tag.as_bytes()) == entry.tag);
                let decoded = meant.then(|| decode(text, proof.encoding, algorithm.algorithm));
                let Some(bytes) = decoded.flatten() else { continue };
                if found.len() == most {
                    return Err(Refusal::TooManySignatures);
                }
                found.push(Candidate { rule, bytes });
            }
        }
    }
    if found.is_empty() { Err(Refusal::NoUsableSignature) } else { Ok(found) }
}

/// Senders of numbered headers sign with as many keys as they number.
fn most_signatures(sources: &[Locator]) -> usize {
    let numbered = sources.iter().map(|at| match at {
        Locator::NumberedHeader { last, .. } => usize::from(*last),
        _ => 0,
    });
    numbered.max().unwrap_or(0).max(MAX_SIGNATURES)
}

/// The shortest and the longest signature of an algorithm, in bytes.
const fn lengths(algorithm: Algorithm) -> (usize, usize) {
    match algorithm {
        Algorithm::HmacSha1 => (20, 20),
        Algorithm::HmacSha256 | Algorithm::Sha256 => (32, 32),
        Algorithm::HmacSha384 => (48, 48),
        Algorithm::HmacSha512 | Algorithm::Sha512 | Algorithm::Ed25519 => (64, 64),
        // Two numbers of up to 33 bytes in ASN.1.
        Algorithm::EcdsaP256Sha256 => (8, 72),
        // Keys of 2048 to 8192 bits.
        Algorithm::RsaPkcs1Sha1 | Algorithm::RsaPkcs1Sha256 => (256, 1024),
        Algorithm::Equality => (1, MAX_VALUE_BYTES),
    }
}

fn decode(text: &[u8], encoding: Encoding, algorithm: Algorithm) -> Option<Vec<u8>> {
    let (shortest, longest) = lengths(algorithm);
    if text.len() > longest * 2 {
        return None;
    }
    decode_text(text, encoding).filter(|bytes| (shortest..=longest).contains(&bytes.len()))
}

/// Strict decoding: one spelling for each value, except for the case of hex digits, which differs
/// among senders.
pub(crate) fn decode_text(text: &[u8], encoding: Encoding) -> Option<Vec<u8>> {
    match encoding {
        Encoding::Hex => HEXLOWER_PERMISSIVE.decode(text).ok(),
        Encoding::Base64 => STANDARD.decode(text).ok(),
        Encoding::Base64Url => URL_SAFE_NO_PAD.decode(text).ok(),
        Encoding::Text => Some(text.to_vec()),
    }
}

/// Writes bytes the way [`decode_text`] reads them.
pub(crate) fn encode_text(bytes: &[u8], encoding: Encoding) -> String {
    match encoding {
        Encoding::Hex => data_encoding::HEXLOWER.encode(bytes),
        Encoding::Base64 => STANDARD.encode(bytes),
        Encoding::Base64Url => URL_SAFE_NO_PAD.encode(bytes),
        Encoding::Text => String::from_utf8_lossy(bytes).into_owned(),
    }
}
