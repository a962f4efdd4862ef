//! The JSON form of a keyring.

use super::{KEY_LENGTH, Keyring, KeyringError};
use data_encoding::BASE64;
use serde::Deserialize;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyringFile {
    primary: String,
    keys: Vec<KeyEntry>,
}

#[derive(Deserialize, Zeroize, ZeroizeOnDrop)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    id: String,
    key: String,
}

pub(super) fn parse(content: &[u8]) -> Result<Keyring, KeyringError> {
    let parsed: KeyringFile = serde_json::from_slice(content)
        .map_err(|error| KeyringError::Form { line: error.line(), column: error.column() })?;
    let mut keys = Vec::with_capacity(parsed.keys.len());
    for entry in &parsed.keys {
        keys.push((entry.id.clone(), decode(entry)?));
    }
    Keyring::from_keys(&parsed.primary, keys)
}

fn decode(entry: &KeyEntry) -> Result<Zeroizing<[u8; KEY_LENGTH]>, KeyringError> {
    let invalid = || {
        // The id is checked before it becomes part of a message.
        if super::record::is_key_id(&entry.id) {
            KeyringError::InvalidKey(entry.id.clone())
        } else {
            KeyringError::InvalidId
        }
    };
    let bytes = BASE64.decode(entry.key.as_bytes()).map(Zeroizing::new).map_err(|_| invalid())?;
    let key = <[u8; KEY_LENGTH]>::try_from(bytes.as_slice()).map_err(|_| invalid())?;
    Ok(Zeroizing::new(key))
}

/// A keyring file with one key. Built by hand: a serializer would leave copies of the key behind.
pub(super) fn render(id: &str, key: &[u8; KEY_LENGTH]) -> Zeroizing<Vec<u8>> {
    let encoded = Zeroizing::new(BASE64.encode(key));
    let text = format!(
        "{{\n  \"primary\": \"{id}\",\n  \"keys\": [\n    {{\"id\": \"{id}\", \"key\": \"{}\"}}\n  ]\n}}\n",
        encoded.as_str()
    );
    Zeroizing::new(text.into_bytes())
}
