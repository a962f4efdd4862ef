//! What the sender's side produces and refuses.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;

use turnbuckle_signing::{
    HeaderNames, KeyAlgorithm, Message, PrefixError, Profile, SignError, SignScratch, SignedHeader,
    SignerOptions, SigningKey, VerifyOptions, sign, sign_each, verify,
};

const MESSAGE: Message<'static> = Message { id: "msg_1", timestamp: 1_700_000_000, body: b"{}" };

fn hmac(fill: u8) -> SigningKey {
    SigningKey::generate_hmac(&[fill; 32])
}

fn sign_plain(
    profile: Profile,
    keys: &[SigningKey],
    message: &Message<'_>,
) -> Result<Vec<SignedHeader>, SignError> {
    sign(profile, keys, message, &SignerOptions::default())
}

fn value(headers: &[SignedHeader], name: &str) -> String {
    headers.iter().find(|(candidate, _)| candidate == name).unwrap().1.clone()
}

#[test]
fn each_key_adds_one_entry_with_the_active_one_first() {
    let alone = |fill| sign_plain(Profile::StandardWebhooks, &[hmac(fill)], &MESSAGE).unwrap();
    let both = sign_plain(Profile::StandardWebhooks, &[hmac(1), hmac(2)], &MESSAGE).unwrap();
    let name = "webhook-signature";
    assert_eq!(
        value(&both, name),
        format!("{} {}", value(&alone(1), name), value(&alone(2), name))
    );

    let alone = |fill| sign_plain(Profile::TimestampedHex, &[hmac(fill)], &MESSAGE).unwrap();
    let both = sign_plain(Profile::TimestampedHex, &[hmac(1), hmac(2)], &MESSAGE).unwrap();
    let name = "x-webhook-signature";
    assert_eq!(
        value(&both, name),
        format!("{},{}", value(&alone(1), name), value(&alone(2), name))
    );
}

#[test]
fn an_hmac_key_and_an_ed25519_key_sign_side_by_side() {
    let keys = [SigningKey::ed25519(&[1; 32]), hmac(2)];
    let headers = sign_plain(Profile::StandardWebhooks, &keys, &MESSAGE).unwrap();
    let signature = value(&headers, "webhook-signature");
    let (first, second) = signature.split_once(' ').unwrap();
    assert!(first.starts_with("v1a,") && second.starts_with("v1,"));
}

#[test]
fn the_hub_profile_signs_with_the_active_key_alone() {
    let both = sign_plain(Profile::HubSha256, &[hmac(1), hmac(2)], &MESSAGE).unwrap();
    let active = sign_plain(Profile::HubSha256, &[hmac(1)], &MESSAGE).unwrap();
    assert_eq!(both, active);
}

#[test]
fn no_key_and_too_many_keys_are_refused() {
    for profile in Profile::ALL {
        assert_eq!(sign_plain(profile, &[], &MESSAGE), Err(SignError::NoKeys));
        let three = [hmac(1), hmac(2), hmac(3)];
        assert_eq!(sign_plain(profile, &three, &MESSAGE), Err(SignError::TooManyKeys));
    }
}

#[test]
fn ed25519_keys_are_refused_where_only_macs_fit() {
    for profile in [Profile::TimestampedHex, Profile::HubSha256] {
        let keys = [hmac(1), SigningKey::ed25519(&[1; 32])];
        let algorithm = KeyAlgorithm::Ed25519;
        assert_eq!(
            sign_plain(profile, &keys, &MESSAGE),
            Err(SignError::UnsupportedAlgorithm { profile, algorithm })
        );
    }
}

#[test]
fn ids_that_could_move_a_border_or_break_a_header_are_refused() {
    let too_long = "x".repeat(257);
    for id in ["", "a.b", ".", "a b", "a\r\nb", "a\u{7f}", "ä", &too_long] {
        let message = Message { id, ..MESSAGE };
        let result = sign_plain(Profile::StandardWebhooks, &[hmac(1)], &message);
        assert_eq!(result, Err(SignError::BadId), "{id:?}");
    }
    let longest = "x".repeat(256);
    let message = Message { id: &longest, ..MESSAGE };
    assert!(sign_plain(Profile::StandardWebhooks, &[hmac(1)], &message).is_ok());
}

#[test]
fn negative_times_are_refused_where_the_time_is_signed() {
    let message = Message { timestamp: -1, ..MESSAGE };
    for profile in Profile::ALL {
        let refused =
            sign_plain(profile, &[hmac(1)], &message) == Err(SignError::NegativeTimestamp);
        assert_eq!(refused, profile.signs_timestamp(), "{profile}");
    }
    let epoch = Message { timestamp: 0, ..MESSAGE };
    assert!(sign_plain(Profile::StandardWebhooks, &[hmac(1)], &epoch).is_ok());
}

#[test]
fn a_moved_endpoint_keeps_its_header_names() {
    let options = SignerOptions::with_prefix("Acme-Hook").unwrap();
    let headers = sign(Profile::StandardWebhooks, &[hmac(1)], &MESSAGE, &options).unwrap();
    let names: Vec<_> = headers.iter().map(|(name, _)| name.as_ref()).collect();
    assert_eq!(names, ["acme-hook-id", "acme-hook-timestamp", "acme-hook-signature"]);
    assert_eq!(HeaderNames::with_prefix("SVIX"), Ok(HeaderNames::SVIX));

    let key = [hmac(1).verifying()];
    let receiver = VerifyOptions::at(MESSAGE.timestamp);
    let profile = Profile::StandardWebhooks;
    assert!(verify(profile, &key, &headers, MESSAGE.body, &receiver).is_err());
    let receiver = receiver.with_prefixes(&["acme-hook"]).unwrap();
    assert!(verify(profile, &key, &headers, MESSAGE.body, &receiver).is_ok());
}

#[test]
fn prefixes_that_cannot_be_header_names_are_refused() {
    let too_long = "x".repeat(65);
    for prefix in ["", "-", "a-", "-a", "a b", "a:b", "a\r\nb", "ä", &too_long] {
        assert_eq!(HeaderNames::with_prefix(prefix), Err(PrefixError), "{prefix:?}");
    }
}

#[test]
fn a_reused_scratch_gives_the_same_headers() {
    let mut scratch = SignScratch::default();
    let keys = [Arc::new(hmac(1)), Arc::new(hmac(2))];
    for profile in [Profile::StandardWebhooks, Profile::HubSha256, Profile::TimestampedHex] {
        for timestamp in [1_700_000_000, 5] {
            let message = Message { timestamp, ..MESSAGE };
            let options = SignerOptions::default();
            let mut emitted = Vec::new();
            sign_each(profile, &keys, &message, &options, &mut scratch, |name, value| {
                emitted.push((name.clone(), value.to_owned()));
            })
            .unwrap();
            assert_eq!(emitted, sign(profile, &keys, &message, &options).unwrap());
        }
    }
}

#[test]
fn every_value_can_stand_in_a_header() {
    let keys = [hmac(1), hmac(2)];
    for profile in Profile::ALL {
        for (name, value) in sign_plain(profile, &keys, &MESSAGE).unwrap() {
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            );
            assert!(value.bytes().all(|b| b == b' ' || b.is_ascii_graphic()));
        }
    }
}
