//! The bytes of a sealed secret, and what is bound into its encryption.
//!
//! ```text
//!  version 1 │ id length 1 │ id │ wrap nonce 12 │ wrapped data key 32+16 │ nonce 12 │ ciphertext n+16
//! ```

use turnbuckle_domain::{KeyOwner, SealContext};

/// Layout and algorithms of this record form.
const VERSION: u8 = 1;

/// AES-GCM's nonce. Random ones are safe here: a data key encrypts one message, and a wrapping key
/// stays far below the 2^32 messages that random 96-bit nonces allow.
pub(super) const NONCE_LENGTH: usize = 12;

/// A data key with its authentication tag.
const WRAPPED_LENGTH: usize = super::KEY_LENGTH + 16;

/// Longest key id; it must fit a length byte, and people read it.
const KEY_ID_MAX: usize = 64;

/// Separates these encryptions from any other use of the same keys.
const DOMAIN: &[u8] = b"turnbuckle/sealed-secret";

/// What is encrypted; bound in, so that one cannot stand for the other.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    DataKey = 1,
    Secret = 2,
}

/// The parts of a record.
pub(super) struct Record<'a> {
    pub key_id: &'a str,
    pub wrap_nonce: [u8; NONCE_LENGTH],
    pub wrapped_key: &'a [u8],
    pub nonce: [u8; NONCE_LENGTH],
    pub ciphertext: &'a [u8],
}

impl<'a> Record<'a> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, id_length(self.key_id)];
        bytes.extend_from_slice(self.key_id.as_bytes());
        bytes.extend_from_slice(&self.wrap_nonce);
        bytes.extend_from_slice(self.wrapped_key);
        bytes.extend_from_slice(&self.nonce);
        bytes.extend_from_slice(self.ciphertext);
        bytes
    }

    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (&[version, length], rest) = bytes.split_first_chunk()?;
        if version != VERSION {
            return None;
        }
        let (key_id, rest) = rest.split_at_checked(usize::from(length))?;
        // Checked before anyone prints it.
        let key_id = std::str::from_utf8(key_id).ok().filter(|id| is_key_id(id))?;
        let (&wrap_nonce, rest) = rest.split_first_chunk()?;
        let (wrapped_key, rest) = rest.split_at_checked(WRAPPED_LENGTH)?;
        let (&nonce, ciphertext) = rest.split_first_chunk()?;
        Some(Self { key_id, wrap_nonce, wrapped_key, nonce, ciphertext })
    }
}

/// Whether the text may name a key-encryption key.
pub(super) fn is_key_id(text: &str) -> bool {
    (1..=KEY_ID_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// Added to the purpose for the keys of sources: a record of a source opens for no endpoint, even if
/// their ids were the same.
const OF_SOURCE: u8 = 16;

/// What an encryption is bound to. Every part has a fixed length or a length before it, so that two
/// contexts never give the same bytes.
pub(super) fn associated_data(purpose: Purpose, key_id: &str, context: SealContext) -> Vec<u8> {
    let (kind, owner) = match context.owner {
        KeyOwner::Endpoint(endpoint) => (0, endpoint.uuid()),
        KeyOwner::Source(source) => (OF_SOURCE, source.uuid()),
    };
    let mut data = DOMAIN.to_vec();
    data.extend_from_slice(&[VERSION, purpose as u8 | kind, id_length(key_id)]);
    data.extend_from_slice(key_id.as_bytes());
    data.extend_from_slice(context.tenant.uuid().as_bytes());
    data.extend_from_slice(owner.as_bytes());
    data.extend_from_slice(context.key.uuid().as_bytes());
    data
}

fn id_length(key_id: &str) -> u8 {
    // Ids are checked to have at most KEY_ID_MAX bytes.
    u8::try_from(key_id.len()).unwrap_or(u8::MAX)
}
