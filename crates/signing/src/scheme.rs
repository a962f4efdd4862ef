//! Verification of webhooks from anyone: one declarative scheme instead of code for each provider.
//!
//! A [`Scheme`] is plain data. It says where the signatures, the time and the id of a request
//! stand, which bytes are signed, with which algorithm, how keys are written, how old a request
//! may be, and how to answer the questions a provider asks before it sends anything (handshakes).

mod handshake;
mod json_path;
pub mod limits;
mod locator;
mod model;
mod names;
mod preset;
mod proof;
mod template;
mod validate;
mod violation;
mod weakness;

pub use handshake::{Condition, Escape, Expected, Handshake, Piece, Reply};
pub use json_path::{JsonPath, JsonPathError, JsonStep};
pub use locator::Locator;
pub use model::{
    BodyForm, Claim, ClaimValue, KeySource, Scheme, TimeUnit, TimestampRule, UrlVariant,
};
pub use preset::{EventRule, Evidence, Preset};
pub use proof::{
    Algorithm, AlgorithmRule, BodyHashClaim, Encoding, JwtAlgorithm, JwtProof, KeyDigest,
    KeyEncoding, KeyRule, Proof, SignatureProof, SignatureSyntax, UrlHashClaim,
};
pub use template::{Part, WhenAbsent};
pub use violation::{Violation, Violations};
pub use weakness::Weakness;
