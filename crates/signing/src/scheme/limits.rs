//! Bounds of a scheme and of what one request may make a receiver do. Each has its reason.

pub use crate::entries::{MAX_SIGNATURE_HEADER_BYTES, MAX_SIGNATURES};
pub use crate::sign::MAX_ID_BYTES;
pub use crate::verify::MAX_VERIFYING_KEYS;

/// The longest name of a header, a query parameter, a form field, a tag or a setting: real ones
/// have up to 50 characters.
pub const MAX_NAME_BYTES: usize = 128;

/// The longest literal text inside a scheme: separators, prefixes, labels.
pub const MAX_TEXT_BYTES: usize = 256;

/// The longest text form of a JSON path.
pub const MAX_JSON_PATH_BYTES: usize = 256;

/// The most steps of a JSON path; real ones have up to five.
pub const MAX_JSON_STEPS: usize = 12;

/// The most places looked at for signatures: two named headers are the most known.
pub const MAX_SIGNATURE_SOURCES: usize = 4;

/// The most places looked at for the message id.
pub const MAX_ID_SOURCES: usize = 4;

/// The highest number of a numbered header, as the one sender that numbers them documents it.
pub const MAX_NUMBERED_HEADER: u8 = 100;

/// The most tags that one algorithm answers to.
pub const MAX_TAGS: usize = 4;

/// The most algorithms of one scheme: a shared secret and a public key beside each other.
pub const MAX_ALGORITHMS: usize = 2;

/// The most parts of what is signed: the longest known template, of eight fields, has 15.
pub const MAX_PARTS: usize = 24;

/// The most spellings of the URL tried: each costs a computation for each key.
pub const MAX_URL_VARIANTS: usize = 4;

/// The most claims checked after the signature.
pub const MAX_CLAIMS: usize = 8;

/// The most handshakes of one source.
pub const MAX_HANDSHAKES: usize = 4;

/// The most conditions of one handshake.
pub const MAX_CONDITIONS: usize = 4;

/// The most pieces of a handshake's answer.
pub const MAX_PIECES: usize = 8;

/// The most response headers of a handshake's answer.
pub const MAX_REPLY_HEADERS: usize = 4;

/// The widest window in seconds: seven days, the longest retry horizon of a sender whose retries
/// keep their first time. A wider one is no check any more.
pub const MAX_TOLERANCE_SECONDS: u32 = 7 * 24 * 60 * 60;

/// The fewest bytes a key may be required to have.
pub const MIN_KEY_BYTES: u16 = 1;

/// The most bytes a key may be required to have.
pub const MAX_REQUIRED_KEY_BYTES: u16 = 512;

/// The longest value taken out of a request for a template, a claim or an answer; longer ones are
/// refused. It is above every documented challenge, id and signed field.
pub const MAX_VALUE_BYTES: usize = 4096;

/// The longest challenge that an answer holds a MAC of; the longest known has 64 characters.
pub const MAX_CHALLENGE_BYTES: usize = 128;

/// The longest challenge where a signature covers values that could be such a challenge: the one
/// sender that does so asks with 20 to 32 hexadecimal digits.
pub const MAX_HEX_CHALLENGE_BYTES: usize = 32;

/// The longest message that a signature covers as a value inside a body (a notification's text).
pub const MAX_SIGNED_VALUE_BYTES: usize = 1024 * 1024;

/// The most fields of a form body whose names and values are sorted and signed.
pub const MAX_FORM_FIELDS: usize = 1000;

/// The most items of a body whose items are signed one by one; senders of that kind send one.
pub const MAX_ITEMS: usize = 100;

/// The longest JSON Web Token looked at.
pub const MAX_TOKEN_BYTES: usize = 8192;

/// The longest URL looked at: what most servers accept.
pub const MAX_URL_BYTES: usize = 8192;

/// The most hosts that certificates or key sets may come from.
pub const MAX_HOSTS: usize = 8;

/// The most settings (named texts that a source gives) of one scheme.
pub const MAX_SETTINGS: usize = 8;
