//! Requests made to hurt: nothing panics, nothing passes, all work is bounded.

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use turnbuckle_signing::scheme::{Locator, Proof, Refusal, Role, Verifier, presets};

use crate::sample::{Sample, base64, hex, hmac_sha256};
use crate::vectors::{self, named};

/// However the grammar is bent: what passes still carries a published signature whole.
#[test]
fn bent_headers_pass_only_with_a_whole_signature() {
    let mut random = StdRng::seed_from_u64(20_261_130);
    for sample in vectors::all() {
        let key = [sample.parsed_key()];
        for _ in 0..200 {
            let mut changed = sample.clone();
            for (_, value) in &mut changed.headers {
                garble(value, &mut random);
            }
            if changed.headers.is_empty() {
                garble(&mut changed.body, &mut random);
            }
            if changed.verify_with(&key).is_ok() {
                assert!(carries_a_signature(&sample, &changed), "{}", sample.name);
            }
        }
    }
}

/// The case of hex digits aside.
fn carries_a_signature(before: &Sample, after: &Sample) -> bool {
    const SHORTEST: usize = 27;
    let texts = |sample: &Sample| -> Vec<String> {
        let headers = sample.headers.iter().map(|(_, value)| value.as_slice());
        let all = headers.chain([sample.body.as_slice()]);
        all.map(|text| String::from_utf8_lossy(text).to_ascii_lowercase()).collect()
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
    let after = texts(after);
    texts(before)
        .iter()
        .flat_map(|text| text.split(|c: char| !plain(c)))
        .filter(|word| word.len() >= SHORTEST)
        .any(|word| after.iter().any(|text| text.contains(word)))
}

/// Cuts, doubles, flips, inserts separators: what a grammar stumbles over.
fn garble(value: &mut Vec<u8>, random: &mut StdRng) {
    const PIECES: [&[u8]; 14] = [
        b",",
        b"=",
        b" ",
        b";",
        b"v1=",
        b"v1,",
        b"t=",
        b"sha256=",
        b"\0",
        b"\xff\xfe",
        b"==",
        b",,",
        b"v1a,",
        b"\r\n",
    ];
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..=value.len());
        match random.random_range(0..5) {
            0 => value.truncate(at),
            1 => {
                let piece = PIECES[random.random_range(0..PIECES.len())];
                value.splice(at..at, piece.iter().copied());
            }
            2 if at < value.len() => value[at] ^= 1 << random.random_range(0..8),
            3 => {
                let copy = value.clone();
                value.extend_from_slice(&copy);
            }
            _ => {
                let mut noise = [0; 16];
                random.fill_bytes(&mut noise);
                value.splice(at..at, noise);
            }
        }
    }
}

#[test]
fn noise_is_refused_by_every_preset() {
    let mut random = StdRng::seed_from_u64(4);
    for preset in presets() {
        let verifier = Verifier::new(preset.scheme.clone()).unwrap();
        let Ok(key) = verifier
            .key("MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=")
            .or_else(|_| verifier.key(&"ab".repeat(32)))
        else {
            continue;
        };
        for _ in 0..100 {
            let mut sample = Sample::of(&preset.name, "");
            for name in read_headers(&preset.scheme) {
                let mut value = b"t=1700000000,v1=".to_vec();
                garble(&mut value, &mut random);
                sample.headers.push((name, value));
            }
            sample.body = br#"{"signature":{"signature":"00"},"a":1}"#.to_vec();
            garble(&mut sample.body, &mut random);
            assert!(sample.verify_with(std::slice::from_ref(&key)).is_err(), "{}", preset.name);
        }
    }
}

fn read_headers(scheme: &turnbuckle_signing::scheme::Scheme) -> Vec<String> {
    let mut names = Vec::new();
    let mut add = |at: &Locator| {
        if let Locator::Header(name) = at {
            names.push(name.clone());
        }
    };
    match &scheme.proof {
        Proof::Signature(proof) => proof.sources.iter().for_each(&mut add),
        Proof::Jwt(proof) => add(&proof.source),
    }
    scheme.timestamp.iter().for_each(|rule| add(&rule.at));
    scheme.message_id.iter().for_each(&mut add);
    names
}

#[test]
fn the_number_and_length_of_signatures_is_bounded() {
    let good = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    let with = |value: String| {
        let mut sample = named("standard-webhooks-shared");
        sample.headers[2].1 = value.into_bytes();
        sample.verify().map(|_| ())
    };
    assert_eq!(with([good; 8].join(" ")), Ok(()));
    assert_eq!(with([good; 9].join(" ")), Err(Refusal::TooManySignatures));
    // Entries that are none do not count, and hide nothing.
    assert_eq!(with(format!("{}{good}", "junk v9,x , v1, ".repeat(40))), Ok(()));
    assert_eq!(with(format!("{good} {}", "x".repeat(4096))), Err(Refusal::SignaturesTooLong));
    assert_eq!(with("v2,AAAA".into()), Err(Refusal::NoUsableSignature));
}

#[test]
fn signatures_in_several_headers_of_one_name_all_count() {
    let mut sample = named("standard-webhooks-shared");
    sample.headers.insert(2, ("Webhook-Signature".into(), b"v1,AAAA".to_vec()));
    assert!(sample.verify().is_ok());
    let mut slack = named("slack");
    slack.headers.push(("x-slack-signature".into(), b"v0=00".to_vec()));
    assert!(slack.verify().is_ok());
}

#[test]
fn the_border_between_id_and_time_cannot_be_moved() {
    // `msg.1614265330.…` can be cut in two ways; the sender meant neither.
    let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let secret = data_encoding::BASE64.decode(b"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let mac = base64(&hmac_sha256(&secret, b"a.1614265330.1614265330.{}"));
    let sample = |id: &str, body: &str| {
        let mut sample = Sample::of("standard-webhooks", key)
            .header("webhook-id", id)
            .header("webhook-timestamp", "1614265330")
            .header("webhook-signature", &format!("v1,{mac}"))
            .body(body);
        sample.now_ms = 1_614_265_330_000;
        sample.verify().map(|verified| verified.message_id)
    };
    let dotted = sample("a.1614265330", "{}");
    assert_eq!(dotted, Err(Refusal::Malformed(Role::MessageId)));
    assert_eq!(sample("a", "1614265330.{}"), Ok(Some("a".into())));
}

#[test]
fn odd_times_are_refused_before_anything_is_compared() {
    for text in [
        "+1614265330",
        " 1614265330",
        "1614265330 ",
        "1614265330.0",
        "1e9",
        "",
        "-1",
        "99999999999999999999",
        "0x60",
        "hello",
        "\u{661}\u{662}",
    ] {
        let mut sample = named("standard-webhooks-shared");
        sample.headers[1].1 = text.as_bytes().to_vec();
        assert_eq!(sample.verify(), Err(Refusal::Malformed(Role::Timestamp)), "{text}");
    }
}

#[test]
fn odd_ids_are_refused() {
    for id in ["", " a", "a ", "a\u{7}", "a\nb", &"a".repeat(257)] {
        let mut sample = named("standard-webhooks-shared");
        sample.headers[0].1 = id.as_bytes().to_vec();
        assert!(sample.verify().is_err(), "{id}");
    }
    let mut sample = named("standard-webhooks-shared");
    sample.headers[0].1 = b"\xff".to_vec();
    assert_eq!(sample.verify(), Err(Refusal::Malformed(Role::MessageId)));
}

#[test]
fn a_batch_passes_only_whole() {
    let good = String::from_utf8(named("adyen").body).unwrap();
    let (head, item) = good.split_once('[').unwrap();
    let item = item.strip_suffix("]}").unwrap();
    let with = |items: &[&str]| {
        let mut sample = named("adyen");
        sample.body = format!("{head}[{}]}}", items.join(",")).into_bytes();
        sample.verify().map(|_| ())
    };
    assert_eq!(with(&[item, item]), Ok(()));
    let forged = item.replace("1130", "1131");
    assert_eq!(with(&[item, &forged]), Err(Refusal::Mismatch));
    assert_eq!(with(&[&forged, item]), Err(Refusal::Mismatch));
    let unsigned = item.replace("hmacSignature", "other");
    assert_eq!(with(&[item, &unsigned]), Err(Refusal::Missing(Role::Signature)));
    assert_eq!(with(&[]), Err(Refusal::NoItems));
    assert_eq!(with(&[item; 101]), Err(Refusal::TooManyItems));
    // An item under another name is no item, and the others do not vouch for it.
    assert_eq!(with(&["{}"]), Err(Refusal::NoItems));
    let twice = item.replace("\"success\"", "\"pspReference\":\"x\",\"success\"");
    assert_eq!(with(&[&twice]), Err(Refusal::Repeated(Role::SignedPart)));
}

#[test]
fn signed_fields_of_an_item_cannot_be_changed() {
    let body = String::from_utf8(named("adyen").body).unwrap();
    for (from, to) in [
        ("7914073381342284", "7914073381342285"),
        ("TestMerchant", "OtherMerchant"),
        ("TestPayment-", "TestPaymenT-"),
        ("1130", "113000"),
        ("EUR", "USD"),
        ("AUTHORISATION", "CANCELLATION"),
        ("\"true\"", "\"false\""),
        ("\"paymentMethod\"", "\"originalReference\""),
    ] {
        let mut sample = named("adyen");
        sample.body = body.replace(from, to).into_bytes();
        assert_eq!(sample.verify(), Err(Refusal::Mismatch), "{from}");
    }
}

#[test]
fn signed_fields_of_a_form_cannot_be_changed() {
    let body = String::from_utf8(named("twilio-form").body).unwrap();
    for changed in [
        body.replace("1234", "1235"),
        body.replace("Caller", "Called"),
        format!("{body}&More=1"),
        body.replace("&Digits=1234", ""),
        format!("{body}&Digits=9"),
    ] {
        let mut sample = named("twilio-form");
        sample.body = changed.into_bytes();
        assert!(sample.verify().is_err());
    }
    let mut sample = named("twilio-form");
    sample.body = "a=1&".repeat(1001).into_bytes();
    assert_eq!(sample.verify(), Err(Refusal::TooManyFields));
    let mut reordered = named("twilio-form");
    let fields: Vec<&str> = body.split('&').rev().collect();
    reordered.body = fields.join("&").into_bytes();
    assert!(reordered.verify().is_ok());
}

#[test]
fn a_hundred_numbered_headers_are_read() {
    let mac = base64(&hmac_sha256(b"secret", b"{}"));
    let wrong = base64(&[0; 32]);
    let mut sample = Sample::of("docusign", "secret").body("{}");
    for number in 1..100 {
        sample = sample.header(&format!("X-DocuSign-Signature-{number}"), &wrong);
    }
    assert_eq!(sample.verify(), Err(Refusal::Mismatch));
    let sample = sample.header("X-DocuSign-Signature-100", &mac);
    assert!(sample.verify().is_ok());
    let beyond = Sample::of("docusign", "secret").body("{}");
    let beyond = beyond.header("X-DocuSign-Signature-101", &mac);
    assert_eq!(beyond.verify(), Err(Refusal::Missing(Role::Signature)));
}

#[test]
fn tokens_are_equal_or_refused() {
    let of = |preset: &str, header: &str, value: &str, key: &str| {
        Sample::of(preset, key).header(header, value).verify().map(|_| ())
    };
    assert_eq!(of("gitlab-token", "X-Gitlab-Token", "token", "token"), Ok(()));
    for other in ["Token", "toke", "tokens", "token ", ""] {
        let refused = of("gitlab-token", "X-Gitlab-Token", other, "token");
        assert!(refused.is_err(), "{other}");
    }
    let basic = |text: &str| format!("Basic {}", base64(text.as_bytes()));
    let user = "user:pass:word";
    assert_eq!(of("postmark", "Authorization", &basic(user), user), Ok(()));
    assert!(of("postmark", "Authorization", &basic("user:pass"), user).is_err());
    assert!(of("postmark", "Authorization", user, user).is_err());
    assert!(of("postmark", "Authorization", "Basic !!!", user).is_err());
    let items = |states: [&str; 2]| {
        let body = format!(
            r#"{{"value":[{{"clientState":"{}"}},{{"clientState":"{}"}}]}}"#,
            states[0], states[1]
        );
        Sample::of("microsoft-graph", "state").body(&body).verify().map(|_| ())
    };
    assert_eq!(items(["state", "state"]), Ok(()));
    assert_eq!(items(["state", "other"]), Err(Refusal::Mismatch));
}

#[test]
fn a_million_bytes_of_anything_are_judged_without_harm() {
    for body in [
        "[".repeat(1 << 20),
        "{\"a\":".repeat(200_000),
        "\"".to_owned() + &"\\u0000".repeat(150_000) + "\"",
        "%".repeat(1 << 20),
        "&=".repeat(1 << 19),
        "9".repeat(1 << 20),
    ] {
        for name in ["adyen", "midtrans", "twilio-form", "github", "standard-webhooks-shared"] {
            let mut sample = named(name);
            sample.body = body.clone().into_bytes();
            assert!(sample.verify().is_err(), "{name}");
        }
    }
}

#[test]
fn no_refusal_and_no_debug_text_holds_a_key_or_a_signature() {
    let secret = "a-very-secret-marker";
    let mac = hex(&hmac_sha256(secret.as_bytes(), b"{}"));
    let sample = Sample::of("github", secret)
        .header("x-hub-signature-256", &format!("sha256={mac}"))
        .body("{\"marker\":1}");
    let key = sample.parsed_key();
    let refusal = sample.verify_with(std::slice::from_ref(&key)).unwrap_err();
    for text in [format!("{refusal:?} {refusal}"), format!("{key:?}"), key.fingerprint().into()] {
        assert!(!text.contains(secret) && !text.contains(&mac) && !text.contains("marker"));
    }
    let short = sample.verifier().key("").unwrap_err();
    assert_eq!(short.to_string(), "the key is empty");
}
