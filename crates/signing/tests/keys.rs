//! Key texts, bounds, fingerprints, and what never shows.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use turnbuckle_signing::{KeyAlgorithm, KeyError, Profile, SigningKey, VerifyingKey};

const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PRIVATE: &str =
    "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==";
const PUBLIC: &str = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=";

fn fingerprint(text: &str) -> String {
    SigningKey::parse(text).unwrap().fingerprint()
}

#[test]
fn every_spelling_of_a_secret_is_the_same_key() {
    let expected = fingerprint(SECRET);
    for text in
        [format!("whsec_{SECRET}"), format!("v1,whsec_{SECRET}"), format!("  whsec_{SECRET}\n")]
    {
        assert_eq!(fingerprint(&text), expected, "{text:?}");
        assert_eq!(VerifyingKey::parse(&text).unwrap().fingerprint(), expected);
    }
}

#[test]
fn padding_and_trailing_bits_of_a_secret_are_not_judged() {
    let canonical = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBg==";
    for text in ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBg", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwBr"] {
        let key = SigningKey::parse(text).unwrap();
        assert_eq!(key.secret_text().expose(), canonical);
        assert_eq!(key.to_bytes().len(), 25);
    }
}

#[test]
fn lengths_at_the_bounds_pass_and_beyond_them_fail() {
    let long = [0xA5; 600];
    assert_eq!(SigningKey::hmac(&[]).unwrap_err(), KeyError::Empty);
    assert_eq!(SigningKey::hmac(&long[..23]).unwrap_err(), KeyError::TooShort { min: 24 });
    assert!(SigningKey::hmac(&long[..24]).is_ok());
    assert!(SigningKey::hmac(&long[..75]).is_ok());
    assert_eq!(SigningKey::hmac(&long[..76]).unwrap_err(), KeyError::TooLong { max: 75 });
    assert_eq!(VerifyingKey::foreign_hmac(&[]).unwrap_err(), KeyError::Empty);
    assert!(VerifyingKey::foreign_hmac(&long[..1]).is_ok());
    assert!(VerifyingKey::foreign_hmac(&long[..512]).is_ok());
    assert_eq!(
        VerifyingKey::foreign_hmac(&long[..513]).unwrap_err(),
        KeyError::TooLong { max: 512 }
    );
}

#[test]
fn the_longest_key_survives_its_text() {
    let key = SigningKey::hmac(&[0xFB; 75]).unwrap();
    let again = SigningKey::parse(key.secret_text().expose()).unwrap();
    assert_eq!(again.to_bytes(), key.to_bytes());
}

#[test]
fn empty_texts_and_bare_prefixes_are_refused() {
    for text in ["", " ", "whsec_", "v1,whsec_", "whsk_"] {
        assert_eq!(SigningKey::parse(text).unwrap_err(), KeyError::Empty, "{text:?}");
    }
    assert_eq!(VerifyingKey::parse("whpk_").unwrap_err(), KeyError::Empty);
    assert_eq!(VerifyingKey::parse("").unwrap_err(), KeyError::Empty);
}

#[test]
fn texts_that_do_not_decode_are_refused_without_quoting_them() {
    for text in ["whsec_not*base64*at*all*not*base64", "v1,MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
        let error = SigningKey::parse(text).unwrap_err();
        assert_eq!(error, KeyError::NotBase64, "{text:?}");
        assert!(!error.to_string().contains('*'));
    }
    let long = format!("whsec_{}", "A".repeat(10_000));
    assert_eq!(SigningKey::parse(&long).unwrap_err(), KeyError::TooLong { max: 75 });
}

#[test]
fn a_private_key_is_a_seed_or_a_matching_pair() {
    let pair = SigningKey::parse(PRIVATE).unwrap();
    assert_eq!(pair.algorithm(), KeyAlgorithm::Ed25519);
    let seed = pair.to_bytes();
    assert_eq!(seed.len(), 32);
    let text = format!("whsk_{}", data_encoding::BASE64.encode(&seed));
    let from_seed = SigningKey::parse(&text).unwrap();
    assert_eq!(from_seed.secret_text().expose(), PRIVATE);

    let mut other_half = seed.to_vec();
    other_half.extend([9; 32]);
    let from = |bytes: &[u8]| SigningKey::from_bytes(KeyAlgorithm::Ed25519, bytes);
    assert_eq!(from(&other_half).unwrap_err(), KeyError::HalvesDisagree);
    assert_eq!(from(&seed[..31]).unwrap_err(), KeyError::WrongLength);
}

#[test]
fn keys_of_the_wrong_side_are_refused() {
    assert_eq!(SigningKey::parse(PUBLIC).unwrap_err(), KeyError::PublicKeyGiven);
    assert_eq!(VerifyingKey::parse(PRIVATE).unwrap_err(), KeyError::PrivateKeyGiven);
}

#[test]
fn public_keys_that_accept_forgeries_are_refused() {
    let from = |bytes: &[u8]| VerifyingKey::from_bytes(KeyAlgorithm::Ed25519, bytes);
    let mut identity = [0; 32];
    identity[0] = 1;
    assert_eq!(from(&identity).unwrap_err(), KeyError::BadPublicKey);
    assert_eq!(from(&[0; 32]).unwrap_err(), KeyError::BadPublicKey);
    assert_eq!(from(&identity[..31]).unwrap_err(), KeyError::WrongLength);
    // No point of the curve has this coordinate.
    let mut off_curve = [0; 32];
    off_curve[0] = 2;
    assert_eq!(from(&off_curve).unwrap_err(), KeyError::BadPublicKey);
}

#[test]
fn stored_bytes_give_the_same_key_back() {
    for key in [SigningKey::generate_hmac(&[3; 32]), SigningKey::ed25519(&[3; 32])] {
        let again = SigningKey::from_bytes(key.algorithm(), &key.to_bytes()).unwrap();
        assert_eq!(again.fingerprint(), key.fingerprint());
        assert_eq!(again.secret_text().expose(), key.secret_text().expose());
    }
}

#[test]
fn fingerprints_are_short_stable_and_shared_by_both_halves() {
    let hmac = SigningKey::generate_hmac(&[3; 32]);
    let ed25519 = SigningKey::ed25519(&[3; 32]);
    // Stable across versions: they are stored in audit entries.
    assert_eq!(fingerprint(SECRET), "60c498328f2ea7a3");
    assert_eq!(fingerprint(PRIVATE), "fdcddccaafed4240");
    for key in [&hmac, &ed25519] {
        let fingerprint = key.fingerprint();
        assert_eq!(fingerprint.len(), 16);
        assert!(fingerprint.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
        assert_eq!(key.verifying().fingerprint(), fingerprint);
    }
    assert_ne!(hmac.fingerprint(), ed25519.fingerprint());
    assert_ne!(hmac.fingerprint(), SigningKey::generate_hmac(&[4; 32]).fingerprint());
}

#[test]
fn debug_shows_the_fingerprint_and_nothing_of_the_key() {
    for text in [SECRET, PRIVATE] {
        let key = SigningKey::parse(text).unwrap();
        let expected = format!("SigningKey({} {})", key.algorithm(), key.fingerprint());
        assert_eq!(format!("{key:?}"), expected);
        assert_eq!(format!("{:?}", key.verifying()), format!("Verifying{}", &expected[7..]));
        assert_eq!(format!("{:?}", key.secret_text()), "SecretText(redacted)");
    }
}

#[test]
fn only_ed25519_keys_have_a_public_text() {
    assert_eq!(SigningKey::parse(SECRET).unwrap().public_text(), None);
    let public = SigningKey::parse(PRIVATE).unwrap().public_text().unwrap();
    assert_eq!(public, PUBLIC);
    assert_eq!(VerifyingKey::parse(&public).unwrap().public_text().unwrap(), PUBLIC);
}

#[test]
fn names_survive_their_text_and_unknown_ones_are_refused() {
    for profile in Profile::ALL {
        assert_eq!(profile.to_string().parse(), Ok(profile));
    }
    for algorithm in KeyAlgorithm::ALL {
        assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
    }
    let error = "md5".parse::<Profile>().unwrap_err();
    assert!(!error.to_string().contains("md5"));
    assert!("HMAC-SHA256".parse::<KeyAlgorithm>().is_err());
}
