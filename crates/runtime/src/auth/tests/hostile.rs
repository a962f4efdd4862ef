//! Tokens that somebody made to get in.

use super::{issuers::*, *};
use data_encoding::BASE64URL_NOPAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, jwk::Jwk};
use serde_json::{Value, json};
use turnbuckle_domain::{Caller, Error, ResourceId, Role};

fn outcome(authenticator: &Authenticator, token: &str) -> Result<Caller, Error> {
    authenticate(authenticator, &bearer(token))
}

#[track_caller]
fn refused(authenticator: &Authenticator, name: &str, token: &str) {
    match outcome(authenticator, token) {
        Err(Error::Unauthenticated { message }) => {
            assert!(message.starts_with("no valid credentials"), "{name}: {message}");
        }
        other => panic!("{name}: {other:?}"),
    }
}

fn part(text: &str) -> String {
    BASE64URL_NOPAD.encode(text.as_bytes())
}

/// Signs a body given as text.
fn sign_text(signer: &Signer, body: &str) -> String {
    let header = serde_json::to_string(&signer.header()).unwrap();
    let message = format!("{}.{}", part(&header), part(body));
    let signature =
        jsonwebtoken::crypto::sign(message.as_bytes(), &signer.key, signer.algorithm).unwrap();
    format!("{message}.{signature}")
}

#[test]
fn every_algorithm_proves_its_caller_and_takes_no_other() {
    for algorithm in ALGORITHMS {
        let signer = Signer::new(algorithm, "one");
        let taking = taking(algorithm, &[signer.public()], "");
        let tenant = Some(ResourceId::new("shop").unwrap());
        let issuer = claims()["iss"].as_str().unwrap().to_owned();
        let expected = Caller { issuer, subject: "alice".to_owned(), role: Role::Viewer, tenant };
        assert_eq!(outcome(&taking, &signer.sign(&claims())).unwrap(), expected, "{algorithm:?}");
        for other in ALGORITHMS.into_iter().filter(|other| *other != algorithm) {
            let other = Signer::new(other, "one");
            refused(&taking, "another algorithm", &other.sign(&claims()));
        }
        let token = signer.sign(&claims());
        let message = token.rsplit_once('.').unwrap().0;
        refused(&taking, "no signature", &format!("{message}."));
        refused(&taking, "zeros", &format!("{message}.{}", BASE64URL_NOPAD.encode(&[0; 64])));
        refused(&taking, "zeros", &format!("{message}.{}", BASE64URL_NOPAD.encode(&[0; 256])));
    }
}

#[test]
fn the_token_does_not_choose_its_algorithm_or_key() {
    let signer = Signer::new(Algorithm::RS256, "one");
    let taking = taking(Algorithm::RS256, &[signer.public()], "");
    let body = claims().to_string();
    for alg in ["none", "None", "NONE", ""] {
        let header = format!(r#"{{"alg":"{alg}","kid":"one"}}"#);
        refused(&taking, alg, &format!("{}.{}.", part(&header), part(&body)));
    }
    let public = signer.public();
    let modulus = BASE64URL_NOPAD.decode(public["n"].as_str().unwrap().as_bytes()).unwrap();
    for secret in [modulus, public["n"].to_string().into_bytes(), public.to_string().into_bytes()] {
        let header = Header { kid: Some("one".to_owned()), ..Header::new(Algorithm::HS256) };
        let secret = EncodingKey::from_secret(&secret).unwrap();
        refused(&taking, "public key as secret", &encode(&header, &claims(), &secret).unwrap());
    }
    for algorithm in [Algorithm::RS384, Algorithm::RS512, Algorithm::PS256] {
        let header = Header { alg: algorithm, ..signer.header() };
        refused(&taking, "same family", &encode(&header, &claims(), &signer.key).unwrap());
    }
    let own = encode(&Header::new(Algorithm::HS256), &claims(), key().signing()).unwrap();
    refused(&taking, "our key for a foreign issuer", &own);
}

#[test]
fn keys_and_addresses_in_a_token_are_not_looked_at() {
    let (signer, stranger) =
        (Signer::new(Algorithm::ES256, "one"), Signer::new(Algorithm::ES256, "one"));
    let taking = taking(Algorithm::ES256, &[signer.public()], "");
    let lure = |by: &Signer| Header {
        jku: Some("https://stranger.example/jwks".to_owned()),
        x5u: Some("https://stranger.example/cert".to_owned()),
        jwk: Some(Jwk::from_encoding_key(&stranger.key, Algorithm::ES256).unwrap()),
        ..by.header()
    };
    refused(&taking, "own key", &encode(&lure(&stranger), &claims(), &stranger.key).unwrap());
    assert!(outcome(&taking, &encode(&lure(&signer), &claims(), &signer.key).unwrap()).is_ok());
}

#[test]
fn the_key_id_is_a_look_up_and_nothing_else() {
    let signer = Signer::new(Algorithm::EdDSA, "one");
    let taking = taking(Algorithm::EdDSA, &[signer.public()], "");
    let huge = "x".repeat(300);
    for id in [None, Some(""), Some("two"), Some("../one"), Some("one' or 1=1"), Some(&huge)] {
        let header = Header { kid: id.map(str::to_owned), ..signer.header() };
        refused(&taking, "key id", &encode(&header, &claims(), &signer.key).unwrap());
    }
}

#[test]
fn published_keys_for_something_else_check_nothing() {
    let (good, odd) = (Signer::new(Algorithm::RS256, "good"), Signer::new(Algorithm::RS256, "odd"));
    let weak = Signer::rsa("odd", 1024);
    let strange = [
        ("for encryption", odd.public_with("use", json!("enc"))),
        ("for encrypting", odd.public_with("key_ops", json!(["encrypt"]))),
        ("for another algorithm", odd.public_with("alg", json!("RS512"))),
        ("a private key", odd.public_with("d", json!("AQAB"))),
        ("without an id", odd.public_with("kid", json!(null))),
        ("of another type", odd.public_with("kty", json!("EC"))),
        ("malformed", odd.public_with("n", json!("+/="))),
        ("with a huge exponent", odd.public_with("e", json!("AQAAAAAAAAAB"))),
        ("of no key at all", json!("odd")),
    ];
    for (name, key) in strange {
        let taking = taking(Algorithm::RS256, &[key, good.public()], "");
        refused(&taking, name, &odd.sign(&claims()));
        assert!(outcome(&taking, &good.sign(&claims())).is_ok(), "{name}");
    }
    let taking = taking(Algorithm::RS256, &[weak.public(), good.public()], "");
    refused(&taking, "too short", &weak.sign(&claims()));
}

#[test]
fn symmetric_and_short_published_keys_are_refused_without_harm() {
    let good = Signer::new(Algorithm::EdDSA, "good");
    let symmetric = json!({ "kty": "oct", "kid": "odd", "k": BASE64URL_NOPAD.encode(&[7; 32]) });
    let short = good.public_with("kid", json!("odd"));
    for length in [0, 1, 31, 33] {
        let mut short = short.clone();
        short["x"] = json!(BASE64URL_NOPAD.encode(&vec![1; length]));
        let taking = taking(Algorithm::EdDSA, &[short, symmetric.clone(), good.public()], "");
        let header = Header { kid: Some("odd".to_owned()), ..good.header() };
        refused(&taking, "short key", &encode(&header, &claims(), &good.key).unwrap());
        let header = Header { alg: Algorithm::HS256, ..header };
        refused(&taking, "symmetric", &encode(&header, &claims(), key().signing()).unwrap());
    }
}

#[test]
fn times_are_judged_with_the_configured_leeway() {
    let signer = Signer::new(Algorithm::EdDSA, "one");
    for (lines, leeway) in [("", 10), ("leeway = \"0s\"", 0), ("leeway = \"30s\"", 30)] {
        let taking = taking(Algorithm::EdDSA, &[signer.public()], lines);
        let passes = |claims: &Value| outcome(&taking, &signer.sign(claims)).is_ok();
        assert!(passes(&with("exp", json!(NOW - leeway + 1))), "{lines}");
        assert!(!passes(&with("exp", json!(NOW - leeway))), "{lines}");
        assert!(passes(&with("nbf", json!(NOW + leeway))), "{lines}");
        assert!(!passes(&with("nbf", json!(NOW + leeway + 1))), "{lines}");
        assert!(passes(&with("iat", json!(NOW + leeway))), "{lines}");
        assert!(!passes(&with("iat", json!(NOW + leeway + 1))), "{lines}");
    }
    let taking = taking(Algorithm::EdDSA, &[signer.public()], "max_token_age = \"1h\"");
    let passes = |claims: &Value| outcome(&taking, &signer.sign(claims)).is_ok();
    assert!(passes(&with("iat", json!(NOW - 3609))));
    assert!(!passes(&with("iat", json!(NOW - 3610))));
    assert!(!passes(&without("iat")));
}

#[test]
fn claims_of_the_wrong_kind_or_for_somebody_else_are_refused() {
    let signer = Signer::new(Algorithm::EdDSA, "one");
    let taking = taking(Algorithm::EdDSA, &[signer.public()], "");
    for name in ["iss", "aud", "sub", "exp", "iat", "role", "tenant"] {
        refused(&taking, name, &signer.sign(&without(name)));
        for odd in [json!(null), json!({}), json!(""), json!([]), json!(true)] {
            refused(&taking, name, &signer.sign(&with(name, odd)));
        }
    }
    for name in ["exp", "nbf", "iat"] {
        for odd in [json!("99999999999"), json!(1.9e9), json!(-1), json!(u64::MAX), json!(null)] {
            refused(&taking, name, &signer.sign(&with(name, odd)));
        }
    }
    for (name, odd) in [
        ("iss", json!("https://issuer.example/")),
        ("iss", json!([ISSUER_URL])),
        ("aud", json!("other")),
        ("aud", json!(["other", "else"])),
        ("sub", json!("a\nb")),
        ("sub", json!("x".repeat(257))),
        ("role", json!("root")),
        ("role", json!(["viewer"])),
        ("tenant", json!("Shop")),
        ("tenant", json!(["shop"])),
    ] {
        refused(&taking, name, &signer.sign(&with(name, odd)));
    }
    assert!(outcome(&taking, &signer.sign(&with("aud", json!(["other", "hooks"])))).is_ok());
}

#[test]
fn bodies_that_readers_would_read_differently_are_refused() {
    let signer = Signer::new(Algorithm::EdDSA, "one");
    let taking = taking(Algorithm::EdDSA, &[signer.public()], "");
    let body = claims().to_string();
    assert!(outcome(&taking, &sign_text(&signer, &body)).is_ok());
    let expiry = (NOW + 3600).to_string();
    for exp in ["1e400", "1.9e9", "99999999999999999999999999", "-0", "0x7fffffff"] {
        refused(&taking, exp, &sign_text(&signer, &body.replace(&expiry, exp)));
    }
    for twice in
        [r#""tenant":"bank""#, r#""role":"admin""#, r#""exp":1900000000"#, r#""x":1,"x":2"#]
    {
        let body = body.replacen('{', &format!("{{{twice},"), 1);
        refused(&taking, twice, &sign_text(&signer, &body));
    }
    for body in ["", "[]", "null", "{", "\"x\""] {
        refused(&taking, body, &sign_text(&signer, body));
    }
    for kind in ["logout+jwt", "dpop+jwt", "jwk"] {
        let header = Header { typ: Some(kind.to_owned()), ..signer.header() };
        refused(&taking, kind, &encode(&header, &claims(), &signer.key).unwrap());
    }
    let header = Header { typ: Some("at+JWT".to_owned()), ..signer.header() };
    assert!(outcome(&taking, &encode(&header, &claims(), &signer.key).unwrap()).is_ok());
    refused(&taking, "oversize", &signer.sign(&with("note", json!("x".repeat(9000)))));
}

#[test]
fn issuers_with_the_same_key_id_do_not_speak_for_each_other() {
    let (one, two) = (Signer::new(Algorithm::EdDSA, "k"), Signer::new(Algorithm::ES256, "k"));
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("one"), set(&[one.public()])).unwrap();
    std::fs::write(directory.path().join("two"), set(&[two.public()])).unwrap();
    let text = table("https://one", Algorithm::EdDSA, "jwks_file = \"one\"")
        + &table("https://two", Algorithm::ES256, "jwks_file = \"two\"");
    let both = from_files(&text, directory.path());
    let (by_one, by_two) = (with("iss", json!("https://one")), with("iss", json!("https://two")));
    assert!(outcome(&both, &one.sign(&by_one)).is_ok());
    assert!(outcome(&both, &two.sign(&by_two)).is_ok());
    refused(&both, "two as one", &two.sign(&by_one));
    refused(&both, "one as two", &one.sign(&by_two));
    refused(&both, "one as ourselves", &one.sign(&with("iss", json!("turnbuckle"))));
    refused(&both, "one as nobody", &one.sign(&with("iss", json!("https://three"))));
}

#[test]
fn subjects_of_the_configuration_need_no_claims_and_are_not_raised_by_them() {
    let signer = Signer::new(Algorithm::EdDSA, "one");
    let lines = "role_claim = \"https://hooks/role\"\ntenant_claim = \"org\"\n\
        [issuers.subjects]\n\
        \"system:serviceaccount:shop:checkout\" = { role = \"publisher\", tenant = \"shop\" }\n\
        \"system:serviceaccount:ops:deploy\" = { role = \"operator\", tenant = \"*\" }";
    let taking = taking(Algorithm::EdDSA, &[signer.public()], lines);
    let caller = |claims: &Value| outcome(&taking, &signer.sign(claims));
    let mut mapped = with("sub", json!("system:serviceaccount:shop:checkout"));
    mapped["https://hooks/role"] = json!("admin");
    mapped["org"] = json!("*");
    let caller_of_shop = caller(&mapped).unwrap();
    assert_eq!(caller_of_shop.role, Role::Publisher);
    assert_eq!(caller_of_shop.tenant.unwrap().as_str(), "shop");
    let everywhere = caller(&with("sub", json!("system:serviceaccount:ops:deploy"))).unwrap();
    assert_eq!((everywhere.role, everywhere.tenant), (Role::Operator, None));
    assert!(caller(&claims()).is_err(), "the default claims are not asked");
    mapped["sub"] = json!("carol");
    let by_claims = caller(&mapped).unwrap();
    assert_eq!((by_claims.role, by_claims.tenant), (Role::Admin, None));
}
