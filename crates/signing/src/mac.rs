//! HMAC-SHA256 with the key schedule done once.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Bytes of an HMAC-SHA256 value.
pub(crate) const MAC_BYTES: usize = 32;

/// The block size of SHA-256, to which HMAC pads or hashes its key.
const BLOCK_BYTES: usize = 64;

/// A keyed hash state that is cloned for each message.
///
/// Preparing the key costs two compressions; cloning the result costs a copy of some 150 bytes,
/// which matters when many small messages are signed with the same key.
#[derive(Clone)]
pub(crate) struct MacKey(Hmac<Sha256>);

impl MacKey {
    pub(crate) fn new(secret: &[u8]) -> Self {
        // Padding to one block by hand makes the construction infallible by type.
        let mut block = Zeroizing::new([0_u8; BLOCK_BYTES]);
        if secret.len() > BLOCK_BYTES {
            block[..MAC_BYTES].copy_from_slice(&Sha256::digest(secret));
        } else {
            block[..secret.len()].copy_from_slice(secret);
        }
        Self(Hmac::new((&*block).into()))
    }

    /// The MAC of the concatenated parts; nothing is copied together.
    pub(crate) fn mac(&self, parts: &[&[u8]]) -> [u8; MAC_BYTES] {
        let mut state = self.0.clone();
        for part in parts {
            state.update(part);
        }
        state.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_padded_key_equals_the_library_key_at_every_length() {
        for length in [1, 24, 32, 63, 64, 65, 75, 200] {
            let secret = vec![0x5a; length];
            let mut reference = Hmac::<Sha256>::new_from_slice(&secret).unwrap();
            reference.update(b"one two");
            let expected: [u8; MAC_BYTES] = reference.finalize().into_bytes().into();
            assert_eq!(MacKey::new(&secret).mac(&[b"one", b" ", b"two"]), expected, "{length}");
        }
    }
}
