//! Requests that a JSON Web Token vouches for.

use p256::ecdsa::signature::Signer;
use sha2::Digest;
use turnbuckle_signing::scheme::{Refusal, Role, Scheme, SchemeKey, Verifier, WantedKey};

use crate::sample::{Sample, hmac_sha256};
use crate::vectors::named;

const SECRET: &str = "36efdd1aace2e26cd490f0d951138253bef2f7c6d34d18981da781555cc4cebb";
const NOW: i64 = 1_625_479_200;

fn base64url(bytes: &[u8]) -> String {
    data_encoding::BASE64URL_NOPAD.encode(bytes)
}

fn signed(header: &str, claims: &str, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let text = format!("{}.{}", base64url(header.as_bytes()), base64url(claims.as_bytes()));
    let signature = sign(text.as_bytes());
    format!("{text}.{}", base64url(&signature))
}

fn bird_with(header: &str, claims: &str) -> Result<(), Refusal> {
    let token = signed(header, claims, |text| hmac_sha256(SECRET.as_bytes(), text));
    let mut sample = named("bird");
    sample.headers[0].1 = token.into_bytes();
    sample.verify().map(|_| ())
}

const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
/// SHA-256 of `https://example.com/`.
const URL_HASH: &str = "0f115db062b7c0dd030b16878c99dea5c354b49dc37b38eb8846179c7783e9d7";

fn claims(times: &str) -> String {
    format!(r#"{{"iss":"MessageBird","jti":"1","url_hash":"{URL_HASH}"{times}}}"#)
}

/// messagebird/python-rest-api, tests of its request validator: tokens that must be refused.
#[test]
fn published_tokens_that_are_wrong_are_refused() {
    let mut early = named("bird");
    early.now_ms = (NOW - 3600) * 1000;
    assert_eq!(early.verify(), Err(Refusal::TokenNotYet));
    let mut late = named("bird");
    late.now_ms = (NOW + 60) * 1000;
    assert_eq!(late.verify(), Err(Refusal::TokenExpired));
    let mut elsewhere = named("bird-query");
    elsewhere.url = "https://example.com/path?foo=1&bar=2".into();
    assert_eq!(elsewhere.verify(), Err(Refusal::TokenUrl));
    let mut with_body = named("bird");
    with_body.body = b"Hello, World!".to_vec();
    assert_eq!(with_body.verify(), Err(Refusal::TokenBody));
    let mut without_body = named("bird-body");
    without_body.body.clear();
    assert_eq!(without_body.verify(), Err(Refusal::TokenBody));
    let mut none = named("bird");
    let claims = String::from_utf8(none.headers[0].1.clone()).unwrap();
    let claims = claims.split('.').nth(1).unwrap();
    none.headers[0].1 =
        format!("{}.{claims}.", base64url(br#"{"alg":"none","typ":"JWT"}"#)).into_bytes();
    assert_eq!(none.verify(), Err(Refusal::TokenAlgorithm));
}

#[test]
fn times_of_the_wrong_kind_never_count_as_absent() {
    let fine = claims(&format!(r#","nbf":{NOW},"exp":{}"#, NOW + 60));
    assert_eq!(bird_with(HEADER, &fine), Ok(()));
    for times in [
        r#","nbf":1625479200,"exp":"99999999999""#,
        r#","nbf":1625479200,"exp":null"#,
        r#","nbf":1625479200,"exp":-1"#,
        r#","nbf":1625479200,"exp":1e400"#,
        r#","nbf":"1625479200","exp":1625479260"#,
        r#","iat":[1],"exp":1625479260"#,
        r#","iat":true"#,
    ] {
        let refused = Err(Refusal::Malformed(Role::Signature));
        assert_eq!(bird_with(HEADER, &claims(times)), refused, "{times}");
    }
    for (times, why) in [
        ("", Refusal::TokenWithoutTime),
        (r#","exp":99999999999"#, Refusal::TokenWithoutTime),
        (r#","iat":1625475600"#, Refusal::TooOld { age_ms: 3_600_000 }),
        (r#","iat":1625482800"#, Refusal::TooNew { ahead_ms: 3_600_000 }),
    ] {
        assert_eq!(bird_with(HEADER, &claims(times)), Err(why), "{times}");
    }
}

#[test]
fn the_ends_of_time_are_no_trouble() {
    for now_ms in [i64::MIN, -1, 0, i64::MAX] {
        for name in ["bird", "made-vonage", "made-livekit"] {
            let sample = Sample { now_ms, ..named(name) };
            assert!(sample.verify().is_err(), "{name} at {now_ms}");
        }
    }
}

#[test]
fn headers_choose_nothing() {
    let fine = claims(&format!(r#","nbf":{NOW},"exp":{}"#, NOW + 60));
    for (header, why) in [
        (r#"{"alg":"HS512"}"#, Refusal::TokenAlgorithm),
        (r#"{"alg":"none"}"#, Refusal::TokenAlgorithm),
        (r#"{"alg":"hs256"}"#, Refusal::TokenAlgorithm),
        (r#"{"alg":["HS256"]}"#, Refusal::TokenAlgorithm),
        ("{}", Refusal::TokenAlgorithm),
        (r#"{"alg":"HS256","crit":["exp"]}"#, Refusal::Malformed(Role::Signature)),
        (r#"{"alg":"HS256","b64":false}"#, Refusal::Malformed(Role::Signature)),
        ("[]", Refusal::Malformed(Role::Signature)),
    ] {
        assert_eq!(bird_with(header, &fine), Err(why), "{header}");
    }
    // A key that the token brings along is not looked at.
    assert_eq!(bird_with(r#"{"alg":"HS256","jwk":{"kty":"oct","k":"AA"}}"#, &fine), Ok(()));
    let other = fine.replace("MessageBird", "Someone");
    assert_eq!(bird_with(HEADER, &other), Err(Refusal::TokenIssuer));
    let long = "a".repeat(9000);
    let mut sample = named("bird");
    sample.headers[0].1 = long.into_bytes();
    assert_eq!(sample.verify(), Err(Refusal::TooLong(Role::Signature)));
    for text in ["", ".", "..", "a.b", "a.b.c.d", "a.b.c", "é.é.é"] {
        sample.headers[0].1 = text.as_bytes().to_vec();
        assert_eq!(sample.verify(), Err(Refusal::Malformed(Role::Signature)), "{text}");
    }
}

const WITH_KEY_SET: &str = r#"
key_set = "https://keys.example/jwks.json"
settings = ["audience"]

[jwt]
at = "authorization:Bearer"
algorithm = "ES256"
key = { encoding = "pem" }
issuer = "https://keys.example"
audience = "{setting:audience}"
max_age_seconds = 300
max_future_seconds = 60

[jwt.body_hash]
claim = "sha256"
encoding = "hex"
"#;

fn key_pair() -> (p256::ecdsa::SigningKey, String) {
    let key = p256::ecdsa::SigningKey::from_slice(&[7; 32]).unwrap();
    let point = key.verifying_key().to_sec1_point(false);
    let (x, y) = (base64url(point.x().unwrap()), base64url(point.y().unwrap()));
    let set = format!(
        r#"{{"keys":[{{"kty":"RSA","kid":"k1","n":"AQAB","e":"AQAB"}},
            {{"kty":"EC","crv":"P-256","kid":"k1","use":"enc","x":"{x}","y":"{y}"}},
            {{"kty":"EC","crv":"P-256","kid":"k1","alg":"ES256","x":"{x}","y":"{y}"}}]}}"#
    );
    (key, set)
}

fn with_key_set(audience: &str) -> (Sample, String) {
    let (key, set) = key_pair();
    let body = "{}";
    let hash_of_body = crate::sample::hex(&sha2::Sha256::digest(body.as_bytes()));
    let claims = format!(
        r#"{{"iss":"https://keys.example","aud":["x","{audience}"],"iat":{NOW},"sha256":"{hash_of_body}"}}"#
    );
    let token = signed(r#"{"alg":"ES256","kid":"k1"}"#, &claims, |text| {
        let signature: p256::ecdsa::Signature = key.sign(text);
        signature.to_bytes().to_vec()
    });
    let mut sample = Sample::of("github", "")
        .header("Authorization", &format!("bearer {token}"))
        .setting("audience", "hooks")
        .body(body);
    sample.now_ms = NOW * 1000;
    (sample, set)
}

#[test]
fn keys_of_a_set_are_looked_up_by_name() {
    let verifier = Verifier::new(Scheme::from_toml(WITH_KEY_SET).unwrap()).unwrap();
    let (sample, set) = with_key_set("hooks");
    let wanted = sample.judged(|request, _| verifier.wanted_key(request)).unwrap().unwrap();
    let expected =
        WantedKey::KeySet { url: "https://keys.example/jwks.json".into(), key_id: "k1".into() };
    assert_eq!(wanted, expected);
    let key = verifier.key_from_set(&wanted, set.as_bytes()).unwrap();
    assert_eq!(sample.verify_under(&verifier, std::slice::from_ref(&key)).unwrap().key_index, 0);
    let (other, _) = with_key_set("someone-else");
    let keys = [key];
    assert_eq!(other.verify_under(&verifier, &keys), Err(Refusal::TokenAudience));
    let mut changed = sample.clone();
    changed.body = b"[]".to_vec();
    assert_eq!(changed.verify_under(&verifier, &keys), Err(Refusal::TokenBody));
    let unknown = WantedKey::KeySet { url: String::new(), key_id: "k2".into() };
    let unknown = verifier.key_from_set(&unknown, set.as_bytes()).map(|_| ());
    assert_eq!(unknown, Err(Refusal::UnknownKey));
    for hostile in ["", "{}", r#"{"keys":1}"#, r#"{"keys":[{"kid":"k1","kty":1}]}"#] {
        let found = verifier.key_from_set(&wanted, hostile.as_bytes()).map(|_| ());
        assert_eq!(found, Err(Refusal::UnknownKey), "{hostile}");
    }
    // A scheme that fetches its keys takes none as text.
    assert!(verifier.key("secret").is_err());
    let none: [SchemeKey; 0] = [];
    assert_eq!(sample.verify_under(&verifier, &none), Err(Refusal::NoKeys));
}
