//! The text forms of keys: `whsec_…`, `whsk_…`, `whpk_…`.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use base64::{alphabet, engine::DecodePaddingMode};
use zeroize::Zeroizing;

use crate::key::KeyError;
use crate::key::MAX_HMAC_KEY_BYTES;

pub(crate) const HMAC_PREFIX: &str = "whsec_";
pub(crate) const PRIVATE_PREFIX: &str = "whsk_";
pub(crate) const PUBLIC_PREFIX: &str = "whpk_";

/// The longest base64 text looked at: 96 bytes decoded, more than any key (75) has.
const MAX_ENCODED_CHARS: usize = 128;
const MAX_DECODED_BYTES: usize = MAX_ENCODED_CHARS / 4 * 3;
const _: () = assert!(MAX_DECODED_BYTES > MAX_HMAC_KEY_BYTES);

/// Secrets in the wild come unpadded and with non-zero trailing bits, and refusing them would only
/// lock their owners out. Signatures are decoded strictly instead: there a second spelling of the
/// same value would be malleability.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A key text with its prefix taken off.
pub(crate) enum KeyText<'a> {
    Hmac(&'a str),
    Private(&'a str),
    Public(&'a str),
}

impl<'a> KeyText<'a> {
    /// Tells the kind by prefix; a text without any is an HMAC secret.
    pub(crate) fn classify(text: &'a str) -> Self {
        // Copied secrets often bring a line end along.
        let text = text.trim_ascii();
        // Some dashboards show the signature tag in front of the key.
        let untagged = text.strip_prefix("v1,").filter(|rest| rest.starts_with(HMAC_PREFIX));
        let text = untagged.or_else(|| text.strip_prefix("v1a,")).unwrap_or(text);
        if let Some(encoded) = text.strip_prefix(PRIVATE_PREFIX) {
            Self::Private(encoded)
        } else if let Some(encoded) = text.strip_prefix(PUBLIC_PREFIX) {
            Self::Public(encoded)
        } else {
            Self::Hmac(text.strip_prefix(HMAC_PREFIX).unwrap_or(text))
        }
    }
}

/// Decodes the part after the prefix; the intermediate buffer is wiped.
pub(crate) fn decode(encoded: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    if encoded.is_empty() {
        return Err(KeyError::Empty);
    }
    if encoded.len() > MAX_ENCODED_CHARS {
        return Err(KeyError::TooLong { max: MAX_HMAC_KEY_BYTES });
    }
    let mut buffer = Zeroizing::new([0_u8; MAX_DECODED_BYTES]);
    // The decoder's own error quotes a byte of the secret, so it is dropped.
    let length =
        LENIENT.decode_slice(encoded, buffer.as_mut_slice()).map_err(|_| KeyError::NotBase64)?;
    Ok(Zeroizing::new(buffer[..length].to_vec()))
}

/// Encodes public bytes.
pub(crate) fn encode_public(bytes: &[u8]) -> String {
    let mut text = String::from(PUBLIC_PREFIX);
    STANDARD.encode_string(bytes, &mut text);
    text
}

/// Encodes secret bytes into a buffer of the final size, so that growth leaves no copies behind.
pub(crate) fn encode_secret(prefix: &str, bytes: &[u8]) -> SecretText {
    let encoded = bytes.len().div_ceil(3) * 4;
    let mut text = Zeroizing::new(String::with_capacity(prefix.len() + encoded));
    text.push_str(prefix);
    STANDARD.encode_string(bytes, &mut text);
    SecretText(text)
}

/// The text of a secret: wiped on drop, shown only where [`SecretText::expose`] is called.
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Takes a text over; there is no other copy of it if the caller keeps none.
    pub(crate) fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself. Every call is a place to review.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(redacted)")
    }
}
