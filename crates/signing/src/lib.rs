//! Webhook signatures both ways: bytes in, bytes out.
//!
//! The sender of webhooks signs with this crate, and so can any receiver verify with it: it stands
//! alone, without an async runtime, an HTTP library, a clock or a random source. Those belong to
//! the caller and come in as plain values.
//!
//! ```text
//!            sender                                             receiver
//!  keys (active, retiring)                            keys (staged, active, retiring)
//!  id, time, body ──► sign ──► headers ~~~~~~~► headers, body, now ──► verify ──► Verified
//!                                                                        └──► VerifyError
//!                                                            (operator's log; caller: one 401)
//! ```
//!
//! | [`Profile`] | headers | signed bytes | keys |
//! |---|---|---|---|
//! | `standard-webhooks` | `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,<base64> v1a,<base64>` | `id.timestamp.body` | HMAC-SHA256, Ed25519 |
//! | `timestamped-hex` | `x-webhook-timestamp`, `x-webhook-signature: v1=<hex>,v1=<hex>` | `timestamp.body` | HMAC-SHA256 |
//! | `hub-sha256` | `x-hub-signature` and `x-hub-signature-256: sha256=<hex>` | `body` | HMAC-SHA256, one |
//!
//! # For receivers
//!
//! ```
//! use turnbuckle_signing::{Profile, VerifyOptions, VerifyingKey, verify};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // From your configuration. During a rotation there are two: either one may have signed.
//! let keys = [VerifyingKey::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?];
//!
//! // From the request: the headers, and the body exactly as it came, before any JSON parser.
//! let headers = [
//!     ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
//!     ("webhook-timestamp", "1614265330"),
//!     ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
//! ];
//! let body = br#"{"test": 2432232314}"#;
//!
//! // From your clock.
//! let options = VerifyOptions::at(1_614_265_400);
//!
//! match verify(Profile::StandardWebhooks, &keys, &headers, body, &options) {
//!     // Remember the id for at least max_age + max_future, and ignore it when it comes again.
//!     Ok(verified) => assert_eq!(verified.id.as_deref(), Some("msg_p5jXN8AQM9LWM0D4loKWxJek")),
//!     // Log the reason, answer 401 with the same body whatever it was.
//!     Err(reason) => panic!("{reason}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Headers of other types come in through [`HeaderSource`], one function that gives all values of
//! a name.
//!
//! # For senders
//!
//! ```
//! use turnbuckle_signing::{Message, Profile, SignerOptions, SigningKey, sign};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let active = SigningKey::generate_hmac(&[7; 32]); // 32 bytes of your random source
//! let message = Message { id: "msg_1", timestamp: 1_614_265_330, body: b"{}" };
//! let headers = sign(Profile::StandardWebhooks, &[&active], &message, &SignerOptions::default())?;
//! assert_eq!(headers[1], ("webhook-timestamp".into(), "1614265330".to_owned()));
//! # Ok(())
//! # }
//! ```
//!
//! [`sign_each`] does the same without allocating, for loops that sign a lot.
//!
//! # Webhooks of others
//!
//! [`scheme`] verifies what other senders send: presets for some seventy of them, and a form for
//! schemes of one's own.
//!
//! # What holds
//!
//! - Signatures are made and checked over exact bytes; nothing is parsed, trimmed or printed again.
//! - The profile and the algorithm come from configuration and from the key, never from a request.
//! - Every key is tried on every signature, MACs are compared in constant time at full length, and
//!   a malformed entry never hides a good one after it.
//! - A signature has one base64 spelling (hex: two cases); truncated or extended ones fail.
//! - The id has no dot and the timestamp only digits, so the borders inside `id.timestamp.body`
//!   cannot be moved.
//! - Keys, texts and keyed hash states are wiped on drop; [`std::fmt::Debug`] shows a fingerprint,
//!   and no error holds bytes of a key or a request.
//! - All work is bounded: keys, signatures, header bytes and ids have a greatest number.
//!
//! # What does not
//!
//! - `hub-sha256` signs no time and no id, so it cannot tell a replay; only deduplication can.
//! - `timestamped-hex` signs no id: treat an id header sent beside it as a hint.
//! - The request line and other headers are not covered by any profile.

mod entries;
mod fingerprint;
mod headers;
mod key;
mod key_text;
mod mac;
mod profile;
pub mod scheme;
mod sign;
mod verify;
mod verifying_key;

pub use entries::{MAX_SIGNATURE_HEADER_BYTES, MAX_SIGNATURES};
pub use headers::{HeaderNames, HeaderSource, MAX_PREFIX_BYTES, PrefixError};
pub use key::{KeyError, MAX_HMAC_KEY_BYTES, MIN_HMAC_KEY_BYTES, SigningKey};
pub use key_text::SecretText;
pub use profile::{KeyAlgorithm, Profile, UnknownName};
pub use sign::{
    MAX_ID_BYTES, MAX_SIGNING_KEYS, Message, SignError, SignScratch, SignedHeader, SignerOptions,
    sign, sign_each,
};
pub use verify::{
    DEFAULT_MAX_AGE_SECONDS, DEFAULT_MAX_FUTURE_SECONDS, HeaderPart, MAX_VERIFYING_KEYS, Verified,
    VerifyError, VerifyOptions, verify,
};
pub use verifying_key::{MAX_FOREIGN_KEY_BYTES, VerifyingKey};
// Part of the public signatures: callers need not find the matching version themselves.
pub use zeroize::Zeroizing;
