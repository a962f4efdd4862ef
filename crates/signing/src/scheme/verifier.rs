//! The engine: a scheme without violations, ready to judge requests.

use std::borrow::Borrow;

use subtle::ConstantTimeEq;

use super::certificate;
use super::key::{Purpose, SchemeKey, SchemeKeyError};
use super::limits::{MAX_ID_BYTES, MAX_VALUE_BYTES, MAX_VERIFYING_KEYS};
use super::locator::Locator;
use super::model::{ClaimValue, KeySource, Scheme};
use super::proof::{AlgorithmRule, Proof};
use super::refusal::{Refusal, Role};
use super::request::{Context, Request, View};
use super::violation::Violations;
use super::{handshake, jwt, signature, wanted};
use crate::scheme::handshake::{Handshake, HandshakeError, HandshakeReply};
use rustls_pki_types::TrustAnchor;

/// An authentic request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The first of the given keys that signed it.
    pub key_index: usize,
    /// The signed time in Unix milliseconds, where the scheme signs one.
    pub signed_at_ms: Option<i64>,
    /// The message id, where the request has one that can be read.
    pub message_id: Option<String>,
    /// Whether the id is covered by the proof; one that is not is only a hint.
    pub message_id_signed: bool,
}

/// What a proof brings.
pub(crate) struct Proven {
    pub(crate) key_index: usize,
    pub(crate) signed_at_ms: Option<i64>,
    /// Where the proof itself covers the id.
    pub(crate) message_id: Option<String>,
}

/// A scheme without violations, ready to judge requests. Cheap to share, free of keys.
#[derive(Clone, Debug)]
pub struct Verifier {
    scheme: Scheme,
}

impl Verifier {
    /// Takes a scheme that keeps every rule.
    ///
    /// # Errors
    /// All violations at once.
    pub fn new(scheme: Scheme) -> Result<Self, Violations> {
        scheme.validate()?;
        Ok(Self { scheme })
    }

    /// The scheme.
    #[must_use]
    pub const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// A key of this scheme from its text.
    ///
    /// With two algorithms, the prefix of the text says which one the key is for; without any of
    /// their prefixes it is for the first.
    ///
    /// # Errors
    /// When the text is no usable key, or the scheme does not take keys as texts.
    pub fn key(&self, text: &str) -> Result<SchemeKey, SchemeKeyError> {
        if self.scheme.fetches_keys() {
            return Err(SchemeKeyError::NotFromKeyRing);
        }
        let (rule_index, purpose, rule) = match &self.scheme.proof {
            Proof::Jwt(proof) => (0, jwt::purpose(proof.algorithm), &proof.key),
            Proof::Signature(proof) => {
                let trimmed = text.trim_ascii();
                let meant = |rule: &AlgorithmRule| {
                    rule.key.prefixes.iter().any(|prefix| trimmed.starts_with(prefix.as_str()))
                };
                let index = proof.algorithms.iter().position(meant).unwrap_or(0);
                let rule = proof.algorithms.get(index).ok_or(SchemeKeyError::Empty)?;
                (index, Purpose::of(rule.algorithm), &rule.key)
            }
        };
        SchemeKey::parse(rule_index, purpose, rule, text)
    }

    /// What must be fetched before [`verify`](Self::verify), for schemes whose keys come from a
    /// certificate or a key set.
    ///
    /// # Errors
    /// When the request does not say which, or names a host that is not trusted with it.
    pub fn wanted_key(&self, request: &Request<'_>) -> Result<Option<wanted::WantedKey>, Refusal> {
        wanted::of(&self.scheme, request)
    }

    /// The key of a fetched certificate chain in PEM, leaf first.
    ///
    /// # Errors
    /// When the chain does not lead to one of the anchors, is for another name or out of date.
    pub fn key_from_chain(
        &self,
        wanted: &wanted::WantedKey,
        pem: &[u8],
        anchors: &[TrustAnchor<'_>],
        now_unix_ms: i64,
    ) -> Result<SchemeKey, Refusal> {
        match (&self.scheme.proof, wanted) {
            (
                Proof::Signature(proof),
                wanted::WantedKey::Certificate { subject, leaf_alone, .. },
            ) => {
                let rule = proof.algorithms.first().ok_or(Refusal::Certificate)?;
                let purpose = Purpose::of(rule.algorithm);
                let wanted = certificate::Wanted { subject, leaf_alone: *leaf_alone, purpose };
                certificate::key_of_chain(pem, &wanted, anchors, now_unix_ms)
            }
            _ => Err(Refusal::Certificate),
        }
    }

    /// The key of that name in a fetched JSON Web Key Set.
    ///
    /// # Errors
    /// When the set has no usable key of that name and of the scheme's algorithm.
    pub fn key_from_set(
        &self,
        wanted: &wanted::WantedKey,
        json: &[u8],
    ) -> Result<SchemeKey, Refusal> {
        match (&self.scheme.proof, wanted) {
            (Proof::Jwt(proof), wanted::WantedKey::KeySet { key_id, .. }) => {
                wanted::key_of_set(json, key_id, proof.algorithm)
            }
            _ => Err(Refusal::UnknownKey),
        }
    }

    /// Judges a request: proof over the exact bytes first, then time, claims and id.
    ///
    /// Every key is tried on every signature, whatever the outcome; all work is bounded.
    ///
    /// # Errors
    /// When the request is not proven authentic and fresh; see [`Refusal`] on what to tell whom.
    pub fn verify<K: Borrow<SchemeKey>>(
        &self,
        request: &Request<'_>,
        keys: &[K],
        context: &Context<'_>,
    ) -> Result<Verified, Refusal> {
        let keys: Vec<&SchemeKey> = match keys.len() {
            0 => return Err(Refusal::NoKeys),
            1..=MAX_VERIFYING_KEYS => keys.iter().map(Borrow::borrow).collect(),
            _ => return Err(Refusal::TooManyKeys),
        };
        let scheme = &self.scheme;
        let view = self.view(request);
        let proven = match &scheme.proof {
            Proof::Signature(proof) => signature::prove(scheme, proof, &view, &keys, context)?,
            Proof::Jwt(proof) => jwt::prove(proof, &view, &keys, context)?,
        };
        self.check_claims(&view, context)?;
        let message_id = match proven.message_id {
            Some(id) => Some(id),
            None => match message_id(scheme, &view) {
                // Which of them is meant? Whoever repeats a request would like us to take neither.
                Err(refusal @ Refusal::Repeated(_)) => return Err(refusal),
                // Authenticity does not hang on an id that the proof does not need.
                found => found.unwrap_or(None),
            },
        };
        Ok(Verified {
            key_index: proven.key_index,
            signed_at_ms: proven.signed_at_ms,
            message_id_signed: message_id.is_some() && scheme.signs_message_id(),
            message_id,
        })
    }

    /// The handshake that a request asks for, if it is one.
    ///
    /// One that is [`signed`](Handshake::signed) must pass [`verify`](Self::verify) before it is
    /// answered.
    #[must_use]
    pub fn handshake<K: Borrow<SchemeKey>>(
        &self,
        request: &Request<'_>,
        keys: &[K],
        context: &Context<'_>,
    ) -> Option<&Handshake> {
        let keys: Vec<&SchemeKey> = keys.iter().map(Borrow::borrow).collect();
        let view = self.view(request);
        self.scheme.handshakes.iter().find(|handshake| handshake.fits(&view, &keys, context))
    }

    /// The answer to a handshake, and the secret it brings.
    ///
    /// # Errors
    /// When a value that the answer needs is missing, too long, or not fit to be echoed.
    pub fn answer<K: Borrow<SchemeKey>>(
        &self,
        handshake: &Handshake,
        request: &Request<'_>,
        keys: &[K],
        context: &Context<'_>,
    ) -> Result<HandshakeReply, HandshakeError> {
        let keys: Vec<&SchemeKey> = keys.iter().map(Borrow::borrow).collect();
        let challenge = handshake::Challenge::of(&self.scheme);
        handshake::answer(handshake, challenge, &self.view(request), &keys, context)
    }

    fn view<'a>(&'a self, request: &'a Request<'a>) -> View<'a> {
        let proof = match &self.scheme.proof {
            Proof::Signature(proof) => Some(proof),
            Proof::Jwt(_) => None,
        };
        View::of(request, proof)
    }

    fn check_claims(&self, view: &View<'_>, context: &Context<'_>) -> Result<(), Refusal> {
        for (index, claim) in self.scheme.claims.iter().enumerate() {
            let mut value = view.need(&claim.at, Role::Claim, MAX_VALUE_BYTES)?.into_owned();
            let hash;
            let expected = match &claim.equals {
                ClaimValue::Text(text) => text.as_bytes(),
                ClaimValue::Setting(name) => context.setting(name)?.as_bytes(),
                ClaimValue::BodySha256Hex => {
                    value.make_ascii_lowercase();
                    hash = signature::body_sha256_hex(view.request.body);
                    hash.as_bytes()
                }
            };
            if !bool::from(expected.ct_eq(&value)) {
                return Err(Refusal::ClaimMismatch(index));
            }
        }
        Ok(())
    }
}

/// The id at the first place that has one.
pub(crate) fn message_id(scheme: &Scheme, view: &View<'_>) -> Result<Option<String>, Refusal> {
    const ROLE: Role = Role::MessageId;
    for at in &scheme.message_id {
        if let Some(bytes) = view.find(at, ROLE, MAX_ID_BYTES)? {
            return id_text(&bytes).ok_or(Refusal::Malformed(ROLE)).map(Some);
        }
    }
    Ok(None)
}

/// Printable text: an id ends up in logs, answers and a database.
pub(crate) fn id_text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let printable = !text.is_empty()
        && text.len() <= MAX_ID_BYTES
        && text.trim() == text
        && !text.chars().any(char::is_control);
    printable.then(|| text.to_owned())
}

/// Age and future apart; exactly the bound passes.
pub(crate) fn check_window(
    at_ms: i64,
    max_age_seconds: u32,
    max_future_seconds: u32,
    now_unix_ms: i64,
) -> Result<(), Refusal> {
    let distance = now_unix_ms.abs_diff(at_ms);
    let bound = |seconds: u32| u64::from(seconds) * 1000;
    if at_ms <= now_unix_ms && distance > bound(max_age_seconds) {
        return Err(Refusal::TooOld { age_ms: distance });
    }
    if at_ms > now_unix_ms && distance > bound(max_future_seconds) {
        return Err(Refusal::TooNew { ahead_ms: distance });
    }
    Ok(())
}

impl Scheme {
    /// The place of the certificate's address, where there is one.
    pub(crate) fn certificate_place(&self) -> Option<&Locator> {
        match &self.key_source {
            KeySource::Certificate { url, .. } => Some(url),
            _ => None,
        }
    }
}
