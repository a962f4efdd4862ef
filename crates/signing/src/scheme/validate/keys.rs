//! Rules of keys and where they come from.

use crate::scheme::limits::{MAX_REQUIRED_KEY_BYTES, MAX_TAGS, MAX_TEXT_BYTES, MIN_KEY_BYTES};
use crate::scheme::model::{KeySource, Scheme};
use crate::scheme::proof::{
    Algorithm, JwtAlgorithm, JwtProof, KeyEncoding, KeyRule, Proof, SignatureProof,
};
use crate::scheme::violation::Violations;

use super::{check_hosts, check_https, check_text, places};

/// What a key is, as far as its spelling goes.
enum Kind {
    Secret,
    Token,
    Ed25519,
    Structured,
}

impl Kind {
    fn of(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::HmacSha1
            | Algorithm::HmacSha256
            | Algorithm::HmacSha384
            | Algorithm::HmacSha512
            | Algorithm::Sha256
            | Algorithm::Sha512 => Self::Secret,
            Algorithm::Equality => Self::Token,
            Algorithm::Ed25519 => Self::Ed25519,
            Algorithm::EcdsaP256Sha256 | Algorithm::RsaPkcs1Sha1 | Algorithm::RsaPkcs1Sha256 => {
                Self::Structured
            }
        }
    }

    fn of_jwt(algorithm: JwtAlgorithm) -> Self {
        match algorithm {
            JwtAlgorithm::Hs256 | JwtAlgorithm::Hs384 | JwtAlgorithm::Hs512 => Self::Secret,
            JwtAlgorithm::EdDsa => Self::Ed25519,
            JwtAlgorithm::Es256 | JwtAlgorithm::Rs256 => Self::Structured,
        }
    }

    /// The encodings its keys come in, and how to say so.
    fn encodings(&self) -> (&'static [KeyEncoding], &'static str) {
        use KeyEncoding::{Base64, Hex, Pem, SpkiBase64, Utf8};
        match self {
            Self::Secret => (&[Utf8, Hex, Base64], "a secret is utf8, hex or base64"),
            Self::Token => (&[Utf8], "a token is utf8"),
            Self::Ed25519 => (
                &[Hex, Base64, SpkiBase64, Pem],
                "an Ed25519 public key is hex, base64, spki-base64 or pem",
            ),
            Self::Structured => {
                (&[SpkiBase64, Pem], "a public key of this kind is spki-base64 or pem")
            }
        }
    }
}

pub(super) fn check_rule(
    field: &str,
    algorithm: Algorithm,
    rule: &KeyRule,
    found: &mut Violations,
) {
    check_kind(field, &Kind::of(algorithm), rule, found);
}

pub(super) fn check_jwt_rule(proof: &JwtProof, found: &mut Violations) {
    check_kind("proof.jwt.key", &Kind::of_jwt(proof.algorithm), &proof.key, found);
}

fn check_kind(field: &str, kind: &Kind, rule: &KeyRule, found: &mut Violations) {
    let (encodings, message) = kind.encodings();
    if !encodings.contains(&rule.encoding) {
        found.add(format!("{field}.encoding"), message);
    }
    if rule.prefixes.len() > MAX_TAGS {
        found.add(format!("{field}.prefixes"), format!("has at most {MAX_TAGS} entries"));
    }
    for (index, prefix) in rule.prefixes.iter().enumerate() {
        check_text(&format!("{field}.prefixes[{index}]"), prefix, found);
    }
    if !(MIN_KEY_BYTES..=MAX_REQUIRED_KEY_BYTES).contains(&rule.min_bytes) {
        let message = format!("is {MIN_KEY_BYTES} to {MAX_REQUIRED_KEY_BYTES}");
        found.add(format!("{field}.min_bytes"), message);
    }
    if rule.digest.is_some() && !matches!(kind, Kind::Secret) {
        found.add(format!("{field}.digest"), "only a secret can be digested into a key");
    }
}

pub(super) fn check_source(scheme: &Scheme, found: &mut Violations) {
    match &scheme.key_source {
        KeySource::KeyRing => {}
        KeySource::Certificate { url, hosts, path_suffix, subject, leaf_alone: _ } => {
            match &scheme.proof {
                Proof::Signature(proof) => {
                    check_certificate_algorithm(proof, found);
                    places::Places::of(proof).check("key_source.url", url, found);
                }
                Proof::Jwt(_) => {
                    found.add("key_source", "tokens take keys from the key ring or a key set");
                }
            }
            check_hosts(hosts, found);
            if path_suffix.len() > MAX_TEXT_BYTES {
                let message = format!("has at most {MAX_TEXT_BYTES} bytes");
                found.add("key_source.path_suffix", message);
            }
            if let Some(subject) = subject {
                check_text("key_source.subject", subject, found);
            }
        }
        KeySource::KeySet { url } => {
            if matches!(scheme.proof, Proof::Signature(_)) {
                found.add("key_source", "only tokens name a key of a key set");
            }
            check_https("key_source.url", url, found);
        }
    }
}

fn check_certificate_algorithm(proof: &SignatureProof, found: &mut Violations) {
    let suitable = proof.algorithms.len() == 1
        && proof.algorithms.iter().all(|rule| {
            matches!(
                rule.algorithm,
                Algorithm::RsaPkcs1Sha1 | Algorithm::RsaPkcs1Sha256 | Algorithm::EcdsaP256Sha256
            )
        });
    if !suitable {
        found.add("key_source", "a certificate needs exactly one RSA or ECDSA algorithm");
    }
}
