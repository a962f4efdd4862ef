//! What must hold for every message: any change fails, any rotation step passes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use proptest::prelude::*;
use turnbuckle_signing::{
    Message, Profile, SignerOptions, SigningKey, VerifyOptions, VerifyingKey, sign, verify,
};

/// A request in parts that can be spoilt one at a time.
#[derive(Clone, Debug)]
struct Request {
    profile: Profile,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    now: i64,
}

impl Request {
    fn signed(profile: Profile, keys: &[&SigningKey], id: &str, now: i64, body: &[u8]) -> Self {
        let message = Message { id, timestamp: now, body };
        let headers = sign(profile, keys, &message, &SignerOptions::default()).unwrap();
        let mut headers: Vec<_> = headers
            .into_iter()
            .map(|(name, value)| (name.into_owned(), value.into_bytes()))
            .collect();
        // Two headers with the same good signature would hide a spoilt one.
        headers.retain(|(name, _)| name != "x-hub-signature");
        Self { profile, headers, body: body.to_vec(), now }
    }

    fn passes(&self, key: &VerifyingKey) -> bool {
        // A window without limits: a changed time must fail by its signature.
        let mut options = VerifyOptions::at(self.now);
        options.max_age = u64::MAX;
        options.max_future = u64::MAX;
        verify(self.profile, &[key], &self.headers, &self.body, &options).is_ok()
    }

    /// Everything that is covered: header values, then the body.
    fn fields(&mut self) -> Vec<&mut Vec<u8>> {
        let values = self.headers.iter_mut().map(|(_, value)| value);
        values.chain([&mut self.body]).collect()
    }

    /// Every bit for MACs. Ed25519 takes milliseconds in debug builds, so there a stride that
    /// shares no factor with 8 stands for all; over the cases every bit gets its turn.
    fn bit_stride(&self) -> usize {
        let ed25519 = self.headers.iter().any(|(_, value)| value.starts_with(b"v1a,"));
        if ed25519 { 19 } else { 1 }
    }

    fn first_bit(&self) -> usize {
        usize::try_from(self.now).unwrap() % self.bit_stride()
    }

    fn signature(&mut self) -> &mut Vec<u8> {
        &mut self.headers.last_mut().unwrap().1
    }
}

fn key(ed25519: bool, fill: u8) -> SigningKey {
    if ed25519 { SigningKey::ed25519(&[fill; 32]) } else { SigningKey::generate_hmac(&[fill; 32]) }
}

prop_compose! {
    fn signed_request()(
        // Ed25519 is slow in debug builds, hence its small share.
        (profile, ed25519) in prop_oneof![
            4 => Just((Profile::StandardWebhooks, false)),
            1 => Just((Profile::StandardWebhooks, true)),
            4 => Just((Profile::TimestampedHex, false)),
            2 => Just((Profile::HubSha256, false)),
        ],
        fill in any::<u8>(),
        id in "[A-Za-z0-9_-]{1,24}",
        now in 0..4_000_000_000_i64,
        body in prop::collection::vec(any::<u8>(), 0..48),
    ) -> (Request, VerifyingKey) {
        let key = key(ed25519, fill);
        (Request::signed(profile, &[&key], &id, now, &body), key.verifying())
    }
}

/// Hex has two cases of equal meaning; a change between them is no change.
fn same_meaning(request: &Request, original: &Request) -> bool {
    request.profile != Profile::StandardWebhooks
        && request.body == original.body
        && request.headers.iter().zip(&original.headers).all(|(changed, original)| {
            let (changed, original) = (&changed.1, &original.1);
            let digits = original.iter().position(|b| *b == b'=').unwrap_or(original.len());
            changed.len() == original.len()
                && changed[..digits] == original[..digits]
                && changed.eq_ignore_ascii_case(original)
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_signed_request_passes((request, key) in signed_request()) {
        prop_assert!(request.passes(&key));
    }

    #[test]
    fn a_single_flipped_bit_anywhere_fails((request, key) in signed_request()) {
        let mut original = request.clone();
        let sizes: Vec<usize> = original.fields().iter().map(|field| field.len()).collect();
        for (field, size) in sizes.into_iter().enumerate() {
            for bit in (request.first_bit()..size * 8).step_by(request.bit_stride()) {
                let mut changed = request.clone();
                changed.fields()[field][bit / 8] ^= 1 << (bit % 8);
                if same_meaning(&changed, &request) {
                    continue;
                }
                prop_assert!(!changed.passes(&key), "field {field} bit {bit}");
            }
        }
    }

    #[test]
    fn every_truncation_at_either_end_fails((request, key) in signed_request()) {
        let mut original = request.clone();
        let sizes: Vec<usize> = original.fields().iter().map(|field| field.len()).collect();
        for (field, size) in sizes.into_iter().enumerate() {
            for length in 0..size {
                let mut head = request.clone();
                head.fields()[field].truncate(length);
                prop_assert!(!head.passes(&key), "field {field} cut to {length}");
                let mut tail = request.clone();
                tail.fields()[field].drain(..size - length);
                prop_assert!(!tail.passes(&key), "field {field} cut by {} in front", size - length);
            }
        }
    }

    #[test]
    fn every_extension_fails((request, key) in signed_request(), byte in any::<u8>()) {
        let mut original = request.clone();
        let fields = original.fields().len();
        for field in 0..fields {
            // A separator beside a signature makes an empty entry, not a longer signature.
            let is_signature = field == fields - 2;
            if is_signature && (byte.is_ascii_whitespace() || byte == b',') {
                continue;
            }
            let mut back = request.clone();
            back.fields()[field].push(byte);
            prop_assert!(!back.passes(&key), "field {field} with {byte:#x} behind");
            let mut front = request.clone();
            front.fields()[field].insert(0, byte);
            prop_assert!(!front.passes(&key), "field {field} with {byte:#x} in front");
        }
    }

    #[test]
    fn another_key_fails((request, _) in signed_request(), ed25519 in any::<bool>()) {
        // Another kind of key, or the same kind with 33 equal bytes, which no case uses.
        let other = if ed25519 {
            SigningKey::ed25519(&std::array::from_fn(|index| u8::try_from(index).unwrap()))
        } else {
            SigningKey::hmac(&[7; 33]).unwrap()
        };
        prop_assert!(!request.passes(&other.verifying()));
    }

    #[test]
    fn during_a_rotation_a_receiver_with_either_key_passes(
        kinds in any::<(bool, bool)>(),
        id in "[a-z0-9_]{1,12}",
        body in prop::collection::vec(any::<u8>(), 0..48),
        hex in any::<bool>(),
    ) {
        let (profile, kinds) = if hex {
            (Profile::TimestampedHex, (false, false))
        } else {
            (Profile::StandardWebhooks, kinds)
        };
        let (new, old) = (key(kinds.0, 1), key(kinds.1, 2));
        let request = Request::signed(profile, &[&new, &old], &id, 1_700_000_000, &body);
        prop_assert!(request.passes(&new.verifying()));
        prop_assert!(request.passes(&old.verifying()));
        prop_assert!(!request.passes(&key(kinds.0, 3).verifying()));

        let mut reordered = request;
        let separator = if hex { ',' } else { ' ' };
        let list = String::from_utf8(reordered.signature().clone()).unwrap();
        let entries: Vec<&str> = list.split(separator).rev().collect();
        *reordered.signature() = entries.join(&separator.to_string()).into_bytes();
        prop_assert!(reordered.passes(&new.verifying()));
        prop_assert!(reordered.passes(&old.verifying()));
    }

    #[test]
    fn the_verifier_answers_anything_without_a_panic(
        id in prop::collection::vec(any::<u8>(), 0..40),
        timestamp in prop_oneof!["[0-9+. -]{0,22}", "\\PC{0,8}"],
        signature in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            "((v1|v1a|v2)[,=][A-Za-z0-9+/=]{0,90}[ ,]?){0,12}".prop_map(String::into_bytes),
        ],
        now in any::<i64>(),
    ) {
        let keys = [key(false, 1).verifying(), key(true, 1).verifying()];
        for names in [
            ["webhook-id", "webhook-timestamp", "webhook-signature"],
            ["x", "x-webhook-timestamp", "x-webhook-signature"],
            ["x", "y", "x-hub-signature"],
        ] {
            let values = [id.clone(), timestamp.clone().into_bytes(), signature.clone()];
            let headers: Vec<_> = names.into_iter().zip(values).collect();
            for profile in Profile::ALL {
                let result = verify(profile, &keys, &headers, b"{}", &VerifyOptions::at(now));
                prop_assert!(result.is_err());
            }
        }
    }
}
