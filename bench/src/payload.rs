//! Payloads that compress about as badly as real ones can.

use bytes::Bytes;

/// Enough different ones that no cache or compressor sees the same bytes in a row.
const VARIANTS: u64 = 64;
/// Letters that JSON takes without escaping.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// JSON objects of exactly `size` bytes each.
pub(crate) fn variants(size: usize) -> Vec<Bytes> {
    (0..VARIANTS).map(|seed| one(seed, size)).collect()
}

fn one(seed: u64, size: usize) -> Bytes {
    let head = format!(r#"{{"order":{seed},"note":""#);
    let tail = r#""}"#;
    let room = size.saturating_sub(head.len() + tail.len());
    let mut state = seed;
    let mut text = head.into_bytes();
    text.reserve_exact(room + tail.len());
    text.extend((0..room).map(|_| letter(&mut state)));
    text.extend_from_slice(tail.as_bytes());
    text.into()
}

/// Knuth's MMIX generator; its high bits are good enough to defeat a compressor.
fn letter(state: &mut u64) -> u8 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let index = usize::try_from(*state >> 58).unwrap_or(0);
    LETTERS[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_valid_json_of_the_asked_size_and_differ() {
        let payloads = variants(1_000);
        for payload in &payloads {
            assert_eq!(payload.len(), 1_000);
            assert!(serde_json::from_slice::<serde_json::Value>(payload).is_ok());
        }
        assert_ne!(payloads[0], payloads[1]);
    }
}
