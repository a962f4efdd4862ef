//! Verification of webhooks from anyone: one declarative scheme instead of code for each provider.
//!
//! A [`Scheme`] is plain data. It says where the signatures, the time and the id of a request
//! stand, which bytes are signed, with which algorithm, how keys are written, how old a request
//! may be, and how to answer the questions a provider asks before it sends anything (handshakes).

mod certificate;
mod document;
mod entry;
mod form;
mod handshake;
mod hash;
mod json;
mod json_path;
mod jwt;
mod key;
pub mod limits;
mod locator;
mod model;
mod names;
mod preset;
mod proof;
mod refusal;
mod request;
mod signature;
mod template;
mod text;
mod time;
mod url;
mod validate;
mod verifier;
mod violation;
mod wanted;
mod weakness;

pub use certificate::{MAX_CHAIN, MAX_CHAIN_BYTES};
pub use document::DocumentError;
pub use handshake::{
    Condition, Escape, Expected, Handshake, HandshakeError, HandshakeReply, Piece, Reply,
};
pub use json_path::{JsonPath, JsonPathError, JsonStep};
pub use key::{MAX_KEY_TEXT_BYTES, SchemeKey, SchemeKeyError};
pub use locator::Locator;
pub use model::{
    BodyForm, Claim, ClaimValue, KeySource, Scheme, TimeUnit, TimestampRule, UrlVariant,
};
pub use preset::{EventRule, Evidence, Preset, preset, presets};
pub use proof::{
    Algorithm, AlgorithmRule, BodyHashClaim, Encoding, JwtAlgorithm, JwtProof, KeyDigest,
    KeyEncoding, KeyRule, Proof, SignatureProof, SignatureSyntax, UrlHashClaim,
};
pub use refusal::{Refusal, Role};
pub use request::{Context, Request};
pub use template::{Part, WhenAbsent};
pub use text::TextError;
pub use verifier::{Verified, Verifier};
pub use violation::{Violation, Violations};
pub use wanted::{MAX_SET_BYTES, MAX_SET_KEYS, WantedKey};
pub use weakness::Weakness;
// Part of the public signatures: callers need not find the matching version themselves.
pub use rustls_pki_types::TrustAnchor;
