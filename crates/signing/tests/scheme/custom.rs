//! Schemes that users write.

use turnbuckle_signing::scheme::{
    Algorithm, DocumentError, Part, Proof, Scheme, SchemeKeyError, Verifier, preset,
};

use proptest::prelude::*;

use crate::sample::{Sample, hex, hmac_sha256};

const CUSTOM: &str = r#"
message_id = ["header:x-acme-delivery"]

[signature]
at = ["header:x-acme-signature"]
item_separator = ","
key_separator = "="
encoding = "hex"
template = "{id}:{timestamp}:{method}:{body}"

[[signature.algorithms]]
algorithm = "hmac-sha256"
tags = ["s"]
key = { encoding = "hex", min_bytes = 16 }

[timestamp]
at = "signature:t"
unit = "milliseconds"
max_age_seconds = 120
max_future_seconds = 10
"#;

#[test]
fn a_scheme_of_ones_own_verifies() {
    let verifier = Verifier::new(Scheme::from_toml(CUSTOM).unwrap()).unwrap();
    let key = verifier.key("00112233445566778899aabbccddeeff").unwrap();
    let secret = data_encoding::HEXLOWER.decode(b"00112233445566778899aabbccddeeff").unwrap();
    let mac = hex(&hmac_sha256(&secret, b"d-1:1700000000000:PUT:{\"a\":1}"));
    let mut sample = Sample::of("github", "")
        .header("X-Acme-Delivery", "d-1")
        .header("X-Acme-Signature", &format!("t=1700000000000,s={mac}"))
        .body("{\"a\":1}");
    sample.method = "PUT".into();
    let keys = [key];
    let verified = sample.verify_under(&verifier, &keys).unwrap();
    assert_eq!(verified.message_id.as_deref(), Some("d-1"));
    assert!(verified.message_id_signed);
    sample.method = "POST".into();
    assert!(sample.verify_under(&verifier, &keys).is_err());
}

#[test]
fn a_scheme_is_the_same_in_every_format() {
    let value: toml::Value = toml::from_str(CUSTOM).unwrap();
    let json = serde_json::to_string(&value).unwrap();
    let mut deserializer = serde_json::Deserializer::from_str(&json);
    let from_json = Scheme::from_document(&mut deserializer).unwrap();
    assert_eq!(from_json, Scheme::from_toml(CUSTOM).unwrap());
}

fn violations(text: &str) -> Vec<String> {
    match Scheme::from_toml(text) {
        Err(DocumentError::Rules(found)) => {
            found.as_slice().iter().map(|violation| violation.field.clone()).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_violations_come_at_once() {
    let text = CUSTOM
        .replace("header:x-acme-signature", "header:X-Acme Signature")
        .replace("\"{id}:{timestamp}:{method}:{body}\"", "\"{id}{setting:unknown}{secret}\"")
        .replace("min_bytes = 16", "min_bytes = 0")
        .replace("max_age_seconds = 120", "max_age_seconds = 0");
    let found = violations(&text);
    let expected = [
        "proof.signature.sources[0]",
        "proof.signature.algorithms[0].key.min_bytes",
        "proof.signature.template",
        "proof.signature.template[1]",
        "timestamp.max_age_seconds",
        "timestamp",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_time_that_is_not_signed_is_no_time() {
    let text = CUSTOM.replace(":{timestamp}:", ":");
    assert_eq!(violations(&text), ["timestamp"]);
    // The body is signed, and with it everything in it.
    let inside = text.replace("signature:t", "json:at");
    assert!(Scheme::from_toml(&inside).is_ok());
    // The checksum of a body is no signature of it.
    let checksum = inside.replace("{body}", "{body_crc32}");
    assert_eq!(violations(&checksum), ["timestamp"]);
}

#[test]
fn texts_that_are_no_scheme_say_where() {
    for (from, to, field) in [
        ("header:x-acme-delivery", "cookie:x", "message_id[0]"),
        ("{body}", "{bdy}", "signature.template"),
        ("\"hmac-sha256\"", "\"hmac-md5\"", "signature.algorithms[0].algorithm"),
        ("encoding = \"hex\"\ntemplate", "encoding = \"hexx\"\ntemplate", "signature.encoding"),
        ("milliseconds", "minutes", "timestamp.unit"),
    ] {
        assert_eq!(violations(&CUSTOM.replacen(from, to, 1)), [field]);
    }
    for text in ["", "nonsense", "unknown = 1", &CUSTOM.replace("[signature]", "[signatures]")] {
        assert!(matches!(Scheme::from_toml(text), Err(DocumentError::Form(_))), "{text}");
    }
    let both = format!(
        "{CUSTOM}\n[jwt]\nat = \"header:a\"\nalgorithm = \"HS256\"\nmax_age_seconds = 1\nmax_future_seconds = 1\n"
    );
    assert!(matches!(Scheme::from_toml(&both), Err(DocumentError::Form(_))));
}

#[test]
fn schemes_that_would_be_unsafe_are_refused() {
    let base = preset("github").unwrap().scheme.clone();
    let with = |change: &dyn Fn(&mut Scheme)| {
        let mut scheme = base.clone();
        change(&mut scheme);
        Verifier::new(scheme).is_err()
    };
    let proof = |scheme: &mut Scheme,
                 change: &dyn Fn(&mut turnbuckle_signing::scheme::SignatureProof)| {
        if let Proof::Signature(proof) = &mut scheme.proof {
            change(proof);
        }
    };
    // Nothing of the request signed.
    assert!(with(&|s| proof(s, &|p| p.template = vec![Part::Literal("x".into())])));
    assert!(with(&|s| proof(s, &|p| p.template.clear())));
    // A digest without its secret, and a secret where there is a MAC.
    assert!(with(&|s| proof(s, &|p| p.algorithms[0].algorithm = Algorithm::Sha256)));
    assert!(with(&|s| proof(s, &|p| p.template.push(Part::Secret))));
    // No place, no algorithm, too many of either.
    assert!(with(&|s| proof(s, &|p| p.sources.clear())));
    assert!(with(&|s| proof(s, &|p| p.algorithms.clear())));
    assert!(with(&|s| proof(s, &|p| p.sources = vec![p.sources[0].clone(); 5])));
    assert!(with(&|s| proof(s, &|p| p.template = vec![Part::Body; 25])));
    // Two algorithms that share their entries.
    assert!(with(&|s| proof(s, &|p| {
        let mut other = p.algorithms[0].clone();
        other.algorithm = Algorithm::HmacSha1;
        p.algorithms.push(other);
    })));
    // A URL in no spelling, and spellings of no URL.
    assert!(with(&|s| proof(s, &|p| p.template.push(Part::Url))));
    assert!(!with(&|_| ()));
}

#[test]
fn keys_are_read_as_the_scheme_says_and_never_guessed() {
    let key = |name: &str, text: &str| {
        Verifier::new(preset(name).unwrap().scheme.clone()).unwrap().key(text)
    };
    // Not base64, empty or short after decoding: forgeable if it were let through.
    for text in ["whsec_!!!!", "whsec_", "whsec_AAAA", ""] {
        assert!(key("standard-webhooks", text).is_err(), "{text}");
    }
    assert!(matches!(key("adyen", "not hex"), Err(SchemeKeyError::Encoding(_))));
    assert!(matches!(key("discord", &"00".repeat(32)), Err(SchemeKeyError::PublicKey(_))));
    assert!(matches!(key("sendgrid", "AAAA"), Err(SchemeKeyError::PublicKey(_))));
    assert_eq!(key("github", &"a".repeat(9000)).err(), Some(SchemeKeyError::TooLong));
    assert_eq!(key("aws-sns", "x").err(), Some(SchemeKeyError::NotFromKeyRing));
    // Unpadded, with other trailing bits, with the tag in front, with a line end: all in use.
    let fingerprint = |text: &str| key("standard-webhooks", text).unwrap().fingerprint().to_owned();
    let plain = fingerprint("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    assert_eq!(fingerprint("v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), plain);
    assert_eq!(fingerprint("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), plain);
    // The same text is another key where it is used as text.
    assert_ne!(
        key("stripe", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap().fingerprint(),
        plain
    );
}

#[test]
fn every_mac_is_the_one_it_is_called() {
    // RFC 4231, test case 2.
    for (algorithm, mac) in [
        (
            "hmac-sha384",
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e\
             8e2240ca5e69e2c78b3239ecfab21649",
        ),
        (
            "hmac-sha512",
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
             9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
        ),
    ] {
        let text = format!(
            r#"
[signature]
at = ["header:x-signature"]
encoding = "hex"
template = "{{body}}"
[[signature.algorithms]]
algorithm = "{algorithm}"
"#
        );
        let verifier = Verifier::new(Scheme::from_toml(&text).unwrap()).unwrap();
        let keys = [verifier.key("Jefe").unwrap()];
        let sample = Sample::of("github", "").header("x-signature", mac);
        let right = sample.clone().body("what do ya want for nothing?");
        assert!(right.verify_under(&verifier, &keys).is_ok(), "{algorithm}");
        let wrong = sample.body("what do ya want for nothing!");
        assert!(wrong.verify_under(&verifier, &keys).is_err(), "{algorithm}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_reader_panic(text in r#"[\[\]{}":.*?|$\\a-c0-9 é=\n#,]{0,60}"#) {
        use turnbuckle_signing::scheme::{Condition, JsonPath, Locator, Piece};
        if let Ok(path) = JsonPath::parse(&text) {
            prop_assert_eq!(JsonPath::parse(&path.to_string()), Ok(path));
        }
        if let Ok(place) = format!("json:{text}").parse::<Locator>() {
            prop_assert_eq!(place.to_string().parse::<Locator>(), Ok(place));
        }
        let _read = Part::parse_template(&text).is_ok()
            | Piece::parse_answer(&text).is_ok()
            | text.parse::<Condition>().is_ok()
            | Scheme::from_toml(&text).is_ok()
            | Scheme::from_toml(&CUSTOM.replace("{method}", &text)).is_ok();
    }
}
