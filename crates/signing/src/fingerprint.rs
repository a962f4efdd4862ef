//! Short public names of keys, for logs, audit entries and "which key signed this".

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::mac::MacKey;
use crate::profile::KeyAlgorithm;

/// Separates fingerprints from every signature ever made with the same key.
const DOMAIN: &[u8] = b"turnbuckle/key-fingerprint/v1";

/// Eight bytes are 16 hex characters: enough to tell keys apart, too few to help a search.
const FINGERPRINT_BYTES: usize = 8;

/// The fingerprint of an HMAC key: through a MAC, so the secret itself is never hashed plainly.
pub(crate) fn of_mac_key(key: &MacKey) -> String {
    render(KeyAlgorithm::HmacSha256.as_str(), &key.mac(&[DOMAIN]))
}

/// The fingerprint of an Ed25519 pair, the same for its private and its public half.
pub(crate) fn of_public_key(key: &ed25519_dalek::VerifyingKey) -> String {
    render(KeyAlgorithm::Ed25519.as_str(), key.as_bytes())
}

/// The fingerprint of a public key of another algorithm.
pub(crate) fn of_public_bytes(algorithm: &str, bytes: &[u8]) -> String {
    render(algorithm, bytes)
}

fn render(algorithm: &str, public_digest: &[u8]) -> String {
    let hash = Sha256::new()
        .chain_update(DOMAIN)
        .chain_update([0])
        .chain_update(algorithm)
        .chain_update([0])
        .chain_update(public_digest)
        .finalize();
    HEXLOWER.encode(&hash[..FINGERPRINT_BYTES])
}
