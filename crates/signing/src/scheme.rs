//! Verification of webhooks from anyone: one declarative scheme instead of code for each provider.
//!
//! A [`Scheme`] is plain data. It says where the signatures, the time and the id of a request
//! stand, which bytes are signed, with which algorithm, how keys are written, how old a request
//! may be, and how to answer the questions a provider asks before it sends anything (handshakes).
//! [`presets`] has the schemes of known senders; [`Scheme::from_toml`] reads others.
//!
//! ```
//! use turnbuckle_signing::scheme::{Context, Request, Verifier, preset};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Once, at start.
//! let github = preset("github").ok_or("no such preset")?;
//! let verifier = Verifier::new(github.scheme.clone())?;
//! let keys = [verifier.key("It's a Secret to Everybody")?];
//!
//! // For each request: what came, exactly as it came, and your clock.
//! let headers = [(
//!     "X-Hub-Signature-256",
//!     "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
//! )];
//! let request = Request {
//!     method: "POST",
//!     url: "https://hooks.example/github",
//!     headers: &headers,
//!     body: b"Hello, World!",
//! };
//! let context = Context { now_unix_ms: 1_700_000_000_000, settings: &[] };
//! if let Some(handshake) = verifier.handshake(&request, &keys, &context) {
//!     if handshake.signed {
//!         verifier.verify(&request, &keys, &context)?;
//!     }
//!     let _answer = verifier.answer(handshake, &request, &keys, &context)?;
//! } else {
//!     // Log the reason, answer 401 with the same body whatever it was.
//!     let verified = verifier.verify(&request, &keys, &context)?;
//!     assert_eq!(verified.key_index, 0);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Keys that do not come from a key ring are fetched by the caller, who owns the network:
//! [`Verifier::wanted_key`] says what to fetch, [`Verifier::key_from_chain`] and
//! [`Verifier::key_from_set`] make a key of it.
//!
//! # What holds
//!
//! - Algorithm, places and keys come from the scheme, never from the request.
//! - Every key is tried on every signature, and secrets are compared in constant time.
//! - A malformed entry never hides a good one; what must be single is refused when it is not.
//! - A time counts only where the signature covers it.
//! - Everything is bounded ([`limits`]), and memory does not grow with the request beyond a
//!   decoded copy of the values that are read.
//! - No error and no [`std::fmt::Debug`] text holds bytes of a key or a request.

mod certificate;
mod confirmation;
mod document;
mod entry;
mod extract;
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
mod sample;
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
pub use extract::MAX_BATCH_ITEMS;
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
    KeyEncoding, KeyRule, Proof, SignatureProof, SignatureSyntax, TokenClaim, UrlHashClaim,
};
pub use refusal::{Refusal, Role};
pub use request::{Context, Request};
pub use sample::{Sample, SampleError, SampleOrder, Wish};
pub use template::{Part, WhenAbsent};
pub use text::TextError;
pub use verifier::{Verified, Verifier};
pub use violation::{Violation, Violations};
pub use wanted::{MAX_SET_BYTES, MAX_SET_KEYS, WantedKey};
pub use weakness::Weakness;
// Part of the public signatures: callers need not find the matching version themselves.
pub use rustls_pki_types::TrustAnchor;
