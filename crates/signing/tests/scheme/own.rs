//! What Turnbuckle sends, Turnbuckle receives.

use proptest::prelude::*;
use turnbuckle_signing::scheme::{Refusal, SchemeKey};
use turnbuckle_signing::{Message, Profile, SignerOptions, SigningKey, sign};

use crate::sample::Sample;

const NOW: i64 = 1_700_000_000;

fn preset_of(profile: Profile) -> &'static str {
    match profile {
        Profile::StandardWebhooks => "standard-webhooks",
        Profile::TimestampedHex => "turnbuckle",
        Profile::HubSha256 => "hub",
    }
}

fn sent(profile: Profile, keys: &[&SigningKey], id: &str, body: &[u8]) -> Sample {
    let message = Message { id, timestamp: NOW, body };
    let headers = sign(profile, keys, &message, &SignerOptions::default()).unwrap();
    let mut sample = Sample::of(preset_of(profile), "");
    sample.now_ms = NOW * 1000;
    sample.body = body.to_vec();
    for (name, value) in headers {
        sample = sample.header(&name, &value);
    }
    sample
}

fn received_key(sample: &Sample, key: &SigningKey) -> SchemeKey {
    let text = key.public_text().unwrap_or_else(|| key.secret_text().expose().to_owned());
    sample.verifier().key(&text).unwrap()
}

#[test]
fn every_profile_is_received_with_every_key_it_allows() {
    let hmac = SigningKey::generate_hmac(&[7; 32]);
    let ed25519 = SigningKey::ed25519(&[9; 32]);
    for profile in Profile::ALL {
        for key in [&hmac, &ed25519] {
            if !profile.supports(key.algorithm()) {
                continue;
            }
            let sample = sent(profile, &[key], "msg_1", br#"{"event_id":"e1"}"#);
            let verified = sample.verify_with(&[received_key(&sample, key)]).unwrap();
            let id = if profile == Profile::StandardWebhooks { "msg_1" } else { "e1" };
            assert_eq!(verified.message_id.as_deref(), Some(id));
            assert!(verified.message_id_signed);
        }
    }
}

#[test]
fn while_keys_rotate_either_key_verifies_and_the_first_in_the_ring_is_named() {
    let old = SigningKey::generate_hmac(&[1; 32]);
    let new = SigningKey::ed25519(&[2; 32]);
    let sample = sent(Profile::StandardWebhooks, &[&new, &old], "msg_1", b"{}");
    let (old, new) = (received_key(&sample, &old), received_key(&sample, &new));
    assert_eq!(sample.verify_with(&[old.clone(), new.clone()]).unwrap().key_index, 0);
    assert_eq!(sample.verify_with(std::slice::from_ref(&old)).unwrap().key_index, 0);
    assert_eq!(sample.verify_with(&[new]).unwrap().key_index, 0);
    let stranger = sample.verifier().key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    assert_eq!(sample.verify_with(&[stranger.clone(), old.clone()]).unwrap().key_index, 1);
    assert_eq!(sample.verify_with(std::slice::from_ref(&stranger)), Err(Refusal::Mismatch));
    assert_eq!(sample.verify_with(&[]), Err(Refusal::NoKeys));
    let four = [stranger.clone(), stranger.clone(), stranger, old];
    assert_eq!(sample.verify_with(&four), Err(Refusal::TooManyKeys));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_change_of_any_request_is_refused(
        body in proptest::collection::vec(any::<u8>(), 0..200),
        id in "[a-zA-Z0-9_-]{1,40}",
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
        cut in any::<prop::sample::Index>(),
        more in proptest::collection::vec(any::<u8>(), 1..8),
        which in 0_usize..3,
    ) {
        let key = SigningKey::generate_hmac(&[7; 32]);
        let sample = sent(Profile::ALL[which], &[&key], &id, &body);
        let keys = [received_key(&sample, &key)];
        prop_assert!(sample.verify_with(&keys).is_ok());
        let mut longer = sample.clone();
        longer.body.extend_from_slice(&more);
        prop_assert_eq!(longer.verify_with(&keys), Err(Refusal::Mismatch));
        if !body.is_empty() {
            let mut flipped = sample.clone();
            let index = at.index(body.len());
            flipped.body[index] ^= 1 << bit;
            prop_assert_eq!(flipped.verify_with(&keys), Err(Refusal::Mismatch));
            let mut shorter = sample;
            shorter.body.truncate(cut.index(body.len()));
            prop_assert_eq!(shorter.verify_with(&keys), Err(Refusal::Mismatch));
        }
    }
}
