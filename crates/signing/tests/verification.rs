//! Each rule of the receiver's side, the cases of public libraries included.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use turnbuckle_signing::{
    HeaderPart, Message, Profile, SignerOptions, SigningKey, Verified, VerifyError, VerifyOptions,
    VerifyingKey, sign, verify,
};

const ID: &str = "msg_1";
const NOW: i64 = 1_700_000_000;
const BODY: &[u8] = br#"{"test": 1}"#;

type Pairs = Vec<(String, Vec<u8>)>;

fn hmac(fill: u8) -> SigningKey {
    SigningKey::generate_hmac(&[fill; 32])
}

fn signed_at(profile: Profile, keys: &[SigningKey], timestamp: i64) -> Pairs {
    let message = Message { id: ID, timestamp, body: BODY };
    sign(profile, keys, &message, &SignerOptions::default())
        .unwrap()
        .into_iter()
        .map(|(name, value)| (name.into_owned(), value.into_bytes()))
        .collect()
}

fn standard() -> Pairs {
    signed_at(Profile::StandardWebhooks, &[hmac(1)], NOW)
}

fn check(profile: Profile, headers: &Pairs) -> Result<Verified, VerifyError> {
    verify(profile, &[hmac(1).verifying()], headers, BODY, &VerifyOptions::at(NOW))
}

fn check_standard(headers: &Pairs) -> Result<Verified, VerifyError> {
    check(Profile::StandardWebhooks, headers)
}

fn get(headers: &Pairs, name: &str) -> String {
    let (_, value) = headers.iter().find(|(candidate, _)| candidate == name).unwrap();
    String::from_utf8(value.clone()).unwrap()
}

fn with(mut headers: Pairs, name: &str, value: impl Into<Vec<u8>>) -> Pairs {
    headers.retain(|(candidate, _)| candidate != name);
    headers.push((name.to_owned(), value.into()));
    headers
}

fn without(mut headers: Pairs, name: &str) -> Pairs {
    headers.retain(|(candidate, _)| candidate != name);
    headers
}

#[test]
fn each_missing_header_is_refused() {
    for (name, part) in [
        ("webhook-id", HeaderPart::Id),
        ("webhook-timestamp", HeaderPart::Timestamp),
        ("webhook-signature", HeaderPart::Signature),
    ] {
        let result = check_standard(&without(standard(), name));
        assert_eq!(result, Err(VerifyError::MissingHeader(part)));
    }
    for profile in Profile::ALL {
        let missing = VerifyError::MissingHeader(HeaderPart::Signature);
        assert_eq!(check(profile, &Vec::new()), Err(missing));
    }
    let hex = signed_at(Profile::TimestampedHex, &[hmac(1)], NOW);
    assert_eq!(
        check(Profile::TimestampedHex, &without(hex, "x-webhook-timestamp")),
        Err(VerifyError::MissingHeader(HeaderPart::Timestamp))
    );
}

#[test]
fn header_names_are_compared_without_case() {
    let shouted: Pairs =
        standard().into_iter().map(|(name, value)| (name.to_uppercase(), value)).collect();
    assert!(check_standard(&shouted).is_ok());
}

#[test]
fn a_repeated_id_or_timestamp_is_refused_even_if_equal() {
    for (name, part) in
        [("webhook-id", HeaderPart::Id), ("webhook-timestamp", HeaderPart::Timestamp)]
    {
        let mut headers = standard();
        headers.push((name.to_owned(), get(&headers, name).into_bytes()));
        assert_eq!(check_standard(&headers), Err(VerifyError::RepeatedHeader(part)));
    }
}

#[test]
fn only_plain_digits_are_a_timestamp() {
    for text in [
        "",
        "hello",
        "+1700000000",
        "-1700000000",
        " 1700000000",
        "1700000000 ",
        "1700000000.0",
        "17e8",
        "0x10",
        "1_700_000_000",
        "17000000000000000000",
        "9999999999999999999",
        "１７００００００００",
    ] {
        let result = check_standard(&with(standard(), "webhook-timestamp", text));
        assert_eq!(result, Err(VerifyError::MalformedTimestamp), "{text:?}");
    }
    let not_text = with(standard(), "webhook-timestamp", [0xFF, 0xFE]);
    assert_eq!(check_standard(&not_text), Err(VerifyError::MalformedTimestamp));
}

#[test]
fn the_timestamp_is_verified_as_written_not_as_a_number() {
    let headers = with(standard(), "webhook-timestamp", format!("0{NOW}"));
    assert_eq!(check_standard(&headers), Err(VerifyError::Mismatch));
    let largest = with(standard(), "webhook-timestamp", i64::MAX.to_string());
    assert_eq!(check_standard(&largest), Err(VerifyError::Mismatch));
}

#[test]
fn the_window_is_open_at_its_borders_and_closed_one_second_later() {
    for profile in [Profile::StandardWebhooks, Profile::TimestampedHex] {
        let at = |timestamp| check(profile, &signed_at(profile, &[hmac(1)], timestamp));
        for timestamp in [NOW - 300, NOW, NOW + 60] {
            assert_eq!(at(timestamp).unwrap().timestamp, Some(timestamp));
        }
        assert_eq!(at(NOW - 301), Err(VerifyError::TooOld { age: 301 }));
        assert_eq!(at(NOW + 61), Err(VerifyError::TooNew { ahead: 61 }));
        assert!(matches!(at(0), Err(VerifyError::TooOld { .. })));
        assert!(matches!(at(i64::MAX), Err(VerifyError::TooNew { .. })));
    }
}

#[test]
fn age_and_future_are_limited_apart() {
    let mut options = VerifyOptions::at(NOW);
    options.max_age = 10;
    options.max_future = 0;
    let keys = [hmac(1).verifying()];
    let at = |timestamp| {
        let profile = Profile::StandardWebhooks;
        let headers = signed_at(profile, &[hmac(1)], timestamp);
        verify(profile, &keys, &headers, BODY, &options)
    };
    assert!(at(NOW - 10).is_ok());
    assert_eq!(at(NOW - 11), Err(VerifyError::TooOld { age: 11 }));
    assert_eq!(at(NOW + 1), Err(VerifyError::TooNew { ahead: 1 }));
}

#[test]
fn a_forged_old_request_is_a_forgery_first() {
    let headers = signed_at(Profile::StandardWebhooks, &[hmac(2)], NOW - 1_000);
    assert_eq!(check_standard(&headers), Err(VerifyError::Mismatch));
}

#[test]
fn a_good_entry_is_found_among_bad_unknown_and_malformed_ones() {
    let good = get(&standard(), "webhook-signature");
    let wrong = format!("v1,{}", "A".repeat(43) + "=");
    for list in [
        format!("v1,bad v2,bad {good} v1,bad"),
        format!("junk {good}"),
        format!("  {good}  "),
        format!(", v1 v1, v1a, =,= {good}"),
        format!("v1,a,b {good} v1,,"),
        format!("{wrong} {good} {wrong}"),
        format!("{good} {good}"),
    ] {
        let result = check_standard(&with(standard(), "webhook-signature", list.clone()));
        assert!(result.is_ok(), "{list:?}");
    }
    let mut not_text = vec![0xFF, 0x00, b' '];
    not_text.extend(good.as_bytes());
    assert!(check_standard(&with(standard(), "webhook-signature", not_text)).is_ok());
}

#[test]
fn lists_without_a_usable_entry_are_refused() {
    let good = get(&standard(), "webhook-signature");
    let mac = good.strip_prefix("v1,").unwrap();
    for list in [
        "",
        " ",
        "v1",
        "v1,",
        "v1a,",
        mac,
        &good[..good.len() - 1],
        &format!("v2,{mac}"),
        &format!("V1,{mac}"),
        &format!("v1, {mac}"),
        &format!("v1={mac}"),
        &format!("v1,*{mac}"),
        &format!("{good},"),
        &format!("v1a,{mac}"),
        &good.replace('=', ""),
    ] {
        let result = check_standard(&with(standard(), "webhook-signature", list));
        assert_eq!(result, Err(VerifyError::NoUsableSignature), "{list:?}");
    }
}

#[test]
fn a_second_spelling_of_the_right_mac_is_refused() {
    let good = get(&standard(), "webhook-signature");
    let last = good.as_bytes()[good.len() - 2];
    // The last character before the padding has two unused bits.
    let respelled: Vec<String> = (b'0'..=b'z')
        .filter(|b| b.is_ascii_alphanumeric() && *b != last)
        .map(|b| format!("{}{}=", &good[..good.len() - 2], char::from(b)))
        .collect();
    for list in respelled {
        assert!(check_standard(&with(standard(), "webhook-signature", list)).is_err());
    }
}

#[test]
fn several_signature_headers_count_as_one_list() {
    let mut headers = with(standard(), "webhook-signature", "v1,bad");
    headers.push(("Webhook-Signature".into(), get(&standard(), "webhook-signature").into()));
    assert!(check_standard(&headers).is_ok());
}

#[test]
fn more_than_eight_signatures_or_a_long_header_are_refused() {
    let good = get(&standard(), "webhook-signature");
    let repeat = |count: usize| vec![good.as_str(); count].join(" ");
    let check = |list: String| check_standard(&with(standard(), "webhook-signature", list));
    assert!(check(repeat(8)).is_ok());
    assert_eq!(check(repeat(9)), Err(VerifyError::TooManySignatures));
    let padded = |length: usize| format!("{good}{}", " ".repeat(length - good.len()));
    assert!(check(padded(4096)).is_ok());
    assert_eq!(check(padded(4097)), Err(VerifyError::SignatureHeaderTooLong));
}

#[test]
fn key_counts_are_bounded() {
    let keys = |count: u8| -> Vec<VerifyingKey> {
        (0..count).map(|fill| hmac(fill).verifying()).collect()
    };
    let check = |count| {
        let options = VerifyOptions::at(NOW);
        verify(Profile::StandardWebhooks, &keys(count), &standard(), BODY, &options)
    };
    assert_eq!(check(0), Err(VerifyError::NoKeys));
    assert_eq!(check(3).unwrap().key_index, 1);
    assert_eq!(check(4), Err(VerifyError::TooManyKeys));
}

#[test]
fn a_public_key_alone_cannot_serve_a_mac_profile() {
    let key = [SigningKey::ed25519(&[1; 32]).verifying()];
    for profile in [Profile::TimestampedHex, Profile::HubSha256] {
        let headers = signed_at(profile, &[hmac(1)], NOW);
        let result = verify(profile, &key, &headers, BODY, &VerifyOptions::at(NOW));
        assert_eq!(result, Err(VerifyError::NoUsableKey(profile)));
    }
}

#[test]
fn the_public_key_is_not_usable_as_an_hmac_secret() {
    // The classic confusion: an attacker signs with HMAC under the text everyone may know.
    let ed25519 = SigningKey::ed25519(&[1; 32]);
    let public = data_encoding::BASE64
        .decode(ed25519.public_text().unwrap().trim_start_matches("whpk_").as_bytes())
        .unwrap();
    let forger = SigningKey::hmac(&public).unwrap();
    let headers = signed_at(Profile::StandardWebhooks, &[forger], NOW);
    let options = VerifyOptions::at(NOW);
    let keys = [ed25519.verifying()];
    let result = verify(Profile::StandardWebhooks, &keys, &headers, BODY, &options);
    assert_eq!(result, Err(VerifyError::Mismatch));
}

#[test]
fn ids_with_a_dot_or_odd_bytes_are_refused() {
    for id in ["", "a.b", "a b", "a\n", "ä", &"x".repeat(257)] {
        let result = check_standard(&with(standard(), "webhook-id", id));
        assert_eq!(result, Err(VerifyError::MalformedId), "{id:?}");
    }
    let not_text = with(standard(), "webhook-id", [0xC3]);
    assert_eq!(check_standard(&not_text), Err(VerifyError::MalformedId));
}

#[test]
fn the_two_prefixes_are_accepted_but_never_mixed() {
    let svix: Pairs = standard()
        .into_iter()
        .map(|(name, value)| (name.replace("webhook-", "svix-"), value))
        .collect();
    assert!(check_standard(&svix).is_ok());

    let mut mixed = without(standard(), "webhook-id");
    mixed.push(("svix-id".into(), ID.into()));
    let missing = VerifyError::MissingHeader(HeaderPart::Id);
    assert_eq!(check_standard(&mixed), Err(missing));

    let only_webhook = VerifyOptions::at(NOW).with_prefixes(&["webhook"]).unwrap();
    let keys = [hmac(1).verifying()];
    let result = verify(Profile::StandardWebhooks, &keys, &svix, BODY, &only_webhook);
    assert_eq!(result, Err(VerifyError::MissingHeader(HeaderPart::Signature)));
}

#[test]
fn an_empty_body_and_a_body_that_is_no_text_are_signed_as_they_are() {
    for body in [b"".as_slice(), &[0xFF, 0x00, 0xC3]] {
        for profile in Profile::ALL {
            let message = Message { id: ID, timestamp: NOW, body };
            let headers = sign(profile, &[hmac(1)], &message, &SignerOptions::default()).unwrap();
            let keys = [hmac(1).verifying()];
            let options = VerifyOptions::at(NOW);
            assert!(verify(profile, &keys, &headers, body, &options).is_ok());
            assert!(verify(profile, &keys, &headers, b"other", &options).is_err());
        }
    }
}

#[test]
fn hex_may_be_upper_case_but_the_tag_may_not() {
    for (profile, name, tag) in [
        (Profile::TimestampedHex, "x-webhook-signature", "v1="),
        (Profile::HubSha256, "x-hub-signature-256", "sha256="),
    ] {
        let headers = signed_at(profile, &[hmac(1)], NOW);
        let headers = without(headers, "x-hub-signature");
        let value = get(&headers, name);
        let mac = value.strip_prefix(tag).unwrap();
        let replace = |value: String| check(profile, &with(headers.clone(), name, value));
        assert!(replace(format!("{tag}{}", mac.to_uppercase())).is_ok());
        for bad in [
            value.to_uppercase(),
            mac.to_owned(),
            format!("{tag}{}", &mac[1..]),
            tag.to_owned(),
            format!("{value}0"),
            format!("{tag} {mac}"),
            format!("sha1={mac}"),
        ] {
            let result = replace(bad.clone());
            assert_eq!(result, Err(VerifyError::NoUsableSignature), "{bad:?}");
        }
    }
}

#[test]
fn hex_lists_skip_what_they_do_not_know_and_allow_blanks() {
    let profile = Profile::TimestampedHex;
    let headers = signed_at(profile, &[hmac(1)], NOW);
    let name = "x-webhook-signature";
    let good = get(&headers, name);
    for list in [
        format!("v0=00,{good}"),
        format!("v1=zz, {good}"),
        format!(",,{good},"),
        format!("t=1,v1,v1=,{good}"),
    ] {
        let result = check(profile, &with(headers.clone(), name, list.clone()));
        assert_eq!(result.unwrap().id, None, "{list:?}");
    }
}

#[test]
fn the_hub_profile_accepts_either_header_beside_a_legacy_sha1_one() {
    let both = signed_at(Profile::HubSha256, &[hmac(1)], NOW);
    let profile = Profile::HubSha256;
    assert!(check(profile, &both).is_ok());
    assert!(check(profile, &without(both.clone(), "x-hub-signature")).is_ok());
    assert!(check(profile, &without(both.clone(), "x-hub-signature-256")).is_ok());
    let legacy = with(both, "x-hub-signature", format!("sha1={}", "0".repeat(40)));
    assert!(check(profile, &legacy).is_ok());
    let only_legacy = without(legacy, "x-hub-signature-256");
    assert_eq!(check(profile, &only_legacy), Err(VerifyError::NoUsableSignature));
}

#[test]
fn every_reason_has_a_label_fit_for_a_metric() {
    for error in [VerifyError::Mismatch, VerifyError::TooOld { age: 301 }] {
        assert!(error.as_str().bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
    }
    assert_eq!(
        VerifyError::TooOld { age: 301 }.to_string(),
        "the request is authentic but 301 s old"
    );
}
