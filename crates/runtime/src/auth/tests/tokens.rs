use super::*;
use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};
use turnbuckle_domain::{Caller, Error, ResourceId, Role};

const HOUR: Duration = Duration::from_secs(3600);

fn claims() -> Value {
    json!({
        "iss": "turnbuckle", "aud": "turnbuckle-api", "sub": "alice", "role": "viewer",
        "exp": NOW + 3600,
    })
}

/// The claims with one of them changed; `null` cannot be set this way but removes it.
fn with(name: &str, value: Value) -> Value {
    let mut changed = claims();
    changed[name] = value;
    changed
}

fn without(name: &str) -> Value {
    let mut changed = claims();
    changed.as_object_mut().unwrap().remove(name);
    changed
}

fn sign(claims: &Value) -> String {
    encode(&Header::new(Algorithm::HS256), claims, key().signing()).unwrap()
}

/// Signs a header and a body given as text.
fn sign_text(header: &str, body: &str) -> String {
    let message = format!(
        "{}.{}",
        BASE64URL_NOPAD.encode(header.as_bytes()),
        BASE64URL_NOPAD.encode(body.as_bytes())
    );
    let signature =
        jsonwebtoken::crypto::sign(message.as_bytes(), key().signing(), Algorithm::HS256).unwrap();
    format!("{message}.{signature}")
}

fn check(token: &str) -> Result<Caller, Error> {
    authenticate(&authenticator(), &bearer(token))
}

#[track_caller]
fn refused(token: &str) {
    match check(token) {
        Err(Error::Unauthenticated { message }) => assert!(message.contains("Bearer"), "{message}"),
        other => panic!("{token}: {other:?}"),
    }
}

#[test]
fn an_issued_token_proves_its_caller() {
    let shop = ResourceId::new("shop").unwrap();
    for role in Role::ALL {
        for tenant in [None, Some(shop.clone())] {
            let token = key().issue("alice", role, tenant.clone(), HOUR, at(NOW)).unwrap();
            let issuer = ISSUER.to_owned();
            let expected = Caller { issuer, subject: "alice".to_owned(), role, tenant };
            assert_eq!(check(&token).unwrap(), expected);
        }
    }
}

#[test]
fn subjects_must_be_readable() {
    for subject in ["", "a\nb", &"x".repeat(257)] {
        assert!(key().issue(subject, Role::Viewer, None, HOUR, at(NOW)).is_err());
        refused(&sign(&with("sub", json!(subject))));
    }
}

#[test]
fn tokens_expire_by_the_clock_with_ten_seconds_of_leeway() {
    let token = key().issue("alice", Role::Viewer, None, HOUR, at(NOW)).unwrap();
    for (now, valid) in
        [(-3600, true), (0, true), (3600, true), (3609, true), (3610, false), (9999, false)]
    {
        let outcome = authenticate(&authenticator_at(NOW + now), &bearer(&token));
        assert_eq!(outcome.is_ok(), valid, "{now}");
    }
}

#[test]
fn a_start_in_the_future_is_honoured() {
    assert!(check(&sign(&with("nbf", json!(NOW + 10)))).is_ok());
    refused(&sign(&with("nbf", json!(NOW + 11))));
    for odd in [json!("0"), json!(1.5), json!(null), json!(-1)] {
        refused(&sign(&with("nbf", odd)));
    }
}

#[test]
fn every_required_claim_is_required() {
    assert!(check(&sign(&claims())).is_ok());
    for name in ["iss", "aud", "sub", "exp", "role"] {
        refused(&sign(&without(name)));
        refused(&sign(&with(name, json!(null))));
        refused(&sign(&with(name, json!({}))));
        refused(&sign(&with(name, json!(""))));
    }
}

#[test]
fn expiry_must_be_a_sensible_integer() {
    let odd = [
        json!("1900000000"),
        json!(1_900_000_000.0),
        json!(1_900_000_000.5),
        json!(-1),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(253_402_300_800_i64),
        json!([1_900_000_000]),
        json!(true),
    ];
    for exp in odd {
        refused(&sign(&with("exp", exp)));
    }
    let header = r#"{"alg":"HS256"}"#;
    let body = claims().to_string();
    assert!(check(&sign_text(header, &body)).is_ok());
    let expiry = (NOW + 3600).to_string();
    for exp in ["1.9e9", "1900000000.0", "99999999999999999999999999", "1e400", "-0"] {
        refused(&sign_text(header, &body.replace(&expiry, exp)));
    }
}

#[test]
fn claims_of_another_issuer_audience_or_role_are_refused() {
    refused(&sign(&with("iss", json!("other"))));
    refused(&sign(&with("iss", json!(["turnbuckle", "other"]))));
    refused(&sign(&with("aud", json!("other"))));
    refused(&sign(&with("aud", json!([]))));
    assert!(check(&sign(&with("aud", json!(["turnbuckle-api", "other"])))).is_ok());
    for role in ["Admin", "root", "admin "] {
        refused(&sign(&with("role", json!(role))));
    }
}

#[test]
fn a_tenant_that_is_unclear_is_not_every_tenant() {
    for tenant in [json!(null), json!(""), json!("-"), json!("A"), json!(7), json!(["shop"])] {
        refused(&sign(&with("tenant", tenant)));
    }
    let body = claims().to_string();
    let twice = body.replacen('{', r#"{"tenant":"shop","tenant":"bank","#, 1);
    refused(&sign_text(r#"{"alg":"HS256"}"#, &twice));
    let twice = body.replacen('{', r#"{"role":"admin","#, 1);
    refused(&sign_text(r#"{"alg":"HS256"}"#, &twice));
}

#[test]
fn the_algorithm_and_header_are_not_the_tokens_choice() {
    let body = BASE64URL_NOPAD.encode(claims().to_string().as_bytes());
    for alg in ["none", "None", "HS384", "RS256", "EdDSA", ""] {
        let header = BASE64URL_NOPAD.encode(format!(r#"{{"alg":"{alg}"}}"#).as_bytes());
        refused(&format!("{header}.{body}."));
        refused(&sign_text(&format!(r#"{{"alg":"{alg}"}}"#), &claims().to_string()));
    }
    let stronger = encode(&Header::new(Algorithm::HS512), &claims(), key().signing()).unwrap();
    refused(&stronger);
    for header in [
        r#"{"alg":"HS256","typ":"logout+jwt"}"#,
        r#"{"alg":"HS256","crit":["b64"],"b64":true}"#,
        r#"{"alg":"HS256","crit":["other"],"other":1}"#,
        r#"{"alg":"HS256","b64":false}"#,
    ] {
        refused(&sign_text(header, &claims().to_string()));
    }
}

#[test]
fn another_key_or_a_changed_token_is_refused() {
    let foreign = EncodingKey::from_secret(&[8; 32]).unwrap();
    refused(&encode(&Header::new(Algorithm::HS256), &claims(), &foreign).unwrap());
    let token = sign(&claims());
    for position in 0..token.len() {
        let mut changed = token.clone().into_bytes();
        changed[position] = if changed[position] == b'A' { b'B' } else { b'A' };
        refused(&String::from_utf8(changed).unwrap());
    }
    for garbage in ["", ".", "..", "a.b.c", "a.b.c.d", &format!("{token}."), &format!(" {token}")] {
        refused(garbage);
    }
}

#[test]
fn only_the_bearer_scheme_is_known() {
    let token = sign(&claims());
    let outcome =
        |text: String| authenticate(&authenticator(), &HeaderValue::from_str(&text).unwrap());
    for scheme in ["Bearer", "bearer", "BEARER"] {
        assert!(outcome(format!("{scheme} {token}")).is_ok());
    }
    for text in
        [token.clone(), format!("Basic {token}"), format!("Bearer{token}"), "Bearer".to_owned()]
    {
        assert!(outcome(text).is_err());
    }
    assert!(
        authenticate(&authenticator(), &HeaderValue::from_bytes(b"Bearer \xff").unwrap()).is_err()
    );
}

#[test]
fn overlong_tokens_are_not_looked_at() {
    let token = sign(&with("note", json!("x".repeat(8000))));
    assert!(token.len() > 8 * 1024);
    refused(&token);
    assert!(check(&sign(&with("note", json!("x".repeat(4000))))).is_ok());
}

#[test]
fn a_key_file_round_trips_and_is_private() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token.key");
    let token =
        TokenKey::create(&path).unwrap().issue("alice", Role::Viewer, None, HOUR, at(NOW)).unwrap();
    let loaded = Authenticator::new(TokenKey::load(&path).unwrap(), Arc::new(Fixed(at(NOW))));
    assert!(authenticate(&loaded, &bearer(&token)).is_ok());
    assert!(TokenKey::create(&path).is_err());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(TokenKey::load(&path).is_err());
}

#[test]
fn key_files_hold_base64_or_raw_bytes_of_enough_length() {
    let directory = tempfile::tempdir().unwrap();
    let load = |name: &str, content: &[u8]| {
        let path = directory.path().join(name);
        crate::secret_file::create(&path, content).unwrap();
        TokenKey::load(&path)
    };
    let encoded = data_encoding::BASE64.encode(&[7; 32]);
    let from_text = load("text", format!("{encoded}\n").as_bytes()).unwrap();
    let from_bytes = load("raw", &[7; 32]).unwrap();
    let token = from_text.issue("alice", Role::Viewer, None, HOUR, at(NOW)).unwrap();
    let reader = Authenticator::new(from_bytes, Arc::new(Fixed(at(NOW))));
    assert!(authenticate(&reader, &bearer(&token)).is_ok());
    assert!(matches!(load("short", &[7; 31]), Err(TokenKeyError::TooShort(31))));
    // Forty characters of base64 are thirty bytes, not forty.
    let short = data_encoding::BASE64.encode(&[7; 30]);
    assert!(matches!(load("short64", short.as_bytes()), Err(TokenKeyError::TooShort(30))));
}

#[test]
fn debug_shows_no_key() {
    assert_eq!(
        format!("{:?} {:?}", key(), authenticator()),
        "TokenKey(…) Authenticator([\"turnbuckle\"])"
    );
    assert!(TokenKey::generate_in_memory().is_ok());
}
