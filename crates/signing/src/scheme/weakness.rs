//! What a scheme cannot protect from, to be shown to whoever chooses it.

use super::model::{KeySource, Scheme};
use super::names::named;
use super::proof::{Algorithm, Proof};

/// Something that a valid request does not prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Weakness {
    /// The key itself is sent: whoever sees a request can make others.
    TokenIsSent,
    /// The body, or most of it, could have been changed.
    BodyNotCovered,
    /// Nothing tells an old request from a new one but deduplication.
    NoSignedTime,
    /// The id could have been changed, so a repeated request can pass for a new one.
    IdNotSigned,
    /// The hash is broken for other uses, and may be for this one soon.
    OldHash,
}

named!(Weakness, "weakness", {
    TokenIsSent => "token-is-sent",
    BodyNotCovered => "body-not-covered",
    NoSignedTime => "no-signed-time",
    IdNotSigned => "id-not-signed",
    OldHash => "old-hash",
});

impl Scheme {
    /// What a request that passes still does not prove.
    #[must_use]
    pub fn weaknesses(&self) -> Vec<Weakness> {
        let mut found = Vec::new();
        let algorithms: Vec<Algorithm> = match &self.proof {
            Proof::Signature(proof) => proof.algorithms.iter().map(|rule| rule.algorithm).collect(),
            Proof::Jwt(_) => Vec::new(),
        };
        if algorithms.contains(&Algorithm::Equality) {
            found.push(Weakness::TokenIsSent);
        }
        if !self.covers_body() {
            found.push(Weakness::BodyNotCovered);
        }
        let timeless = match &self.proof {
            Proof::Signature(_) => self.timestamp.is_none(),
            Proof::Jwt(proof) => proof.timeless,
        };
        if timeless {
            found.push(Weakness::NoSignedTime);
        }
        if !self.message_id.is_empty() && !self.signs_message_id() {
            found.push(Weakness::IdNotSigned);
        }
        let old = |algorithm: &Algorithm| {
            matches!(algorithm, Algorithm::HmacSha1 | Algorithm::RsaPkcs1Sha1)
        };
        if algorithms.iter().any(old) {
            found.push(Weakness::OldHash);
        }
        found
    }

    /// Whether keys come with or through the request rather than from the key ring.
    #[must_use]
    pub fn fetches_keys(&self) -> bool {
        self.key_source != KeySource::KeyRing
    }
}
