//! Schemes there and back, and what is refused.

use super::*;
use turnbuckle_signing::scheme::{
    Algorithm, Condition, Escape, Handshake, JwtAlgorithm, KeyDigest, Piece, Reply, TimeUnit,
    TokenClaim, UrlVariant,
};

fn key(encoding: KeyEncoding) -> KeyRule {
    KeyRule {
        encoding,
        prefixes: vec!["whsec_".to_owned()],
        min_bytes: 16,
        digest: Some(KeyDigest::Sha1),
    }
}

fn header(name: &str) -> Locator {
    Locator::Header(name.to_owned())
}

fn json(text: &str) -> Locator {
    Locator::Json(JsonPath::parse(text).unwrap())
}

/// A scheme in which every kind of thing occurs; not one that any sender has.
fn everything() -> Scheme {
    let templates = [
        Part::Literal("v0:".to_owned()),
        Part::Body,
        Part::Timestamp,
        Part::MessageId,
        Part::Method,
        Part::Url,
        Part::Secret,
        Part::SortedForm,
        Part::BodyCrc32,
        Part::BodySha256Hex,
        Part::Setting("webhook_id".to_owned()),
        Part::Value {
            at: Locator::Query("q".to_owned()),
            when_absent: WhenAbsent::Empty,
            before: "a=".to_owned(),
            after: ":".to_owned(),
        },
    ];
    let proof = SignatureProof {
        sources: vec![
            header("x-signature"),
            Locator::NumberedHeader { prefix: "x-s-".to_owned(), last: 100 },
            Locator::Authorization("Bearer".to_owned()),
            json("signature"),
        ],
        syntax: SignatureSyntax {
            item_separator: Some(','),
            key_separator: Some('='),
            prefix: "sha256=".to_owned(),
            trim: true,
        },
        encoding: Encoding::Base64Url,
        algorithms: vec![AlgorithmRule {
            algorithm: Algorithm::EcdsaP256Sha256,
            tags: vec!["v1".to_owned()],
            key: key(KeyEncoding::SpkiBase64),
        }],
        template: templates.to_vec(),
        url_variants: vec![UrlVariant::AsIs, UrlVariant::QuoteEscaped],
    };
    Scheme {
        proof: Proof::Signature(proof),
        key_source: KeySource::Certificate {
            url: header("x-cert-url"),
            hosts: vec!["*.example.com".to_owned()],
            path_suffix: ".pem".to_owned(),
            subject: Some("sns.example.com".to_owned()),
            leaf_alone: true,
        },
        timestamp: Some(TimestampRule {
            at: Locator::SignatureField("t".to_owned()),
            unit: TimeUnit::Milliseconds,
            max_age_seconds: 300,
            max_future_seconds: 0,
        }),
        message_id: vec![header("x-id"), Locator::Form("id".to_owned())],
        claims: vec![
            Claim { at: json("a"), equals: ClaimValue::Text("b".to_owned()) },
            Claim { at: json("a[0]"), equals: ClaimValue::Setting("webhook_id".to_owned()) },
            Claim { at: Locator::Query("h".to_owned()), equals: ClaimValue::BodySha256Hex },
        ],
        body_form: Some(turnbuckle_signing::scheme::BodyForm::Decoded),
        items: Some(JsonPath::parse("items[*]").unwrap()),
        settings: vec!["webhook_id".to_owned()],
        handshakes: vec![handshake()],
    }
}

fn handshake() -> Handshake {
    Handshake {
        name: "url-verification".to_owned(),
        when: vec![
            Condition::Method("GET".to_owned()),
            Condition::Present(Locator::Query("challenge".to_owned())),
            Condition::Equals { at: json("type"), expected: Expected::Text("ping".to_owned()) },
            Condition::Equals { at: json("t"), expected: Expected::Key },
            Condition::EmptyArray(JsonPath::parse("events").unwrap()),
        ],
        signed: true,
        reply: Reply {
            status: 204,
            content_type: "application/json".to_owned(),
            headers: vec![("x-hook".to_owned(), vec![Piece::Setting("webhook_id".to_owned())])],
            body: vec![
                Piece::Literal("{".to_owned()),
                Piece::Echo { at: json("challenge"), escape: Escape::Json },
                Piece::Hmac { of: json("token"), encoding: Encoding::Hex },
            ],
        },
        learns_secret: Some(header("x-hook-secret")),
    }
}

fn token() -> Scheme {
    let proof = JwtProof {
        source: Locator::Authorization("Bearer".to_owned()),
        algorithm: JwtAlgorithm::EdDsa,
        key: key(KeyEncoding::Pem),
        issuer: Some(Expected::Text("https://issuer.example".to_owned())),
        audience: Some(Expected::Setting("webhook_id".to_owned())),
        body_hash: Some(BodyHashClaim {
            claim: "body".to_owned(),
            encoding: Encoding::Hex,
            absent_when_empty: true,
        }),
        url_hash: Some(UrlHashClaim { claim: "url".to_owned(), encoding: Encoding::Base64 }),
        max_age_seconds: 60,
        max_future_seconds: 5,
        id_claim: Some("jti".to_owned()),
        claims: vec![TokenClaim {
            claim: "email".to_owned(),
            expected: Expected::Setting("webhook_id".to_owned()),
        }],
        timeless: true,
    };
    let key_source = KeySource::KeySet { url: "https://issuer.example/keys".to_owned() };
    Scheme { proof: Proof::Jwt(proof), key_source, timestamp: None, ..everything() }
}

fn back(wire: v1::VerificationScheme) -> Result<Scheme, String> {
    let mut violations = Violations::new();
    let mut at = At { field: FIELD.to_owned(), violations: &mut violations };
    let scheme = read(&mut at, wire);
    match violations.finish() {
        Ok(()) => Ok(scheme.unwrap()),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn every_field_of_a_scheme_goes_out_and_comes_back() {
    for scheme in [everything(), token()] {
        assert_eq!(back(wire_scheme(&scheme)).unwrap(), scheme);
        let document = serde_json::to_string(&scheme).unwrap();
        assert_eq!(serde_json::from_str::<Scheme>(&document).unwrap(), scheme, "{document}");
    }
}

#[test]
fn a_document_with_something_unknown_is_no_scheme() {
    let mut document = serde_json::to_value(everything()).unwrap();
    document["later"] = true.into();
    assert!(serde_json::from_value::<Scheme>(document).is_err());
}

#[test]
fn what_is_missing_is_named_all_at_once() {
    let text = back(v1::VerificationScheme::default()).unwrap_err();
    assert!(text.contains("source.scheme: has no proof"), "{text}");
    let wire = v1::VerificationScheme {
        proof: Some(v1::verification_scheme::Proof::Signature(v1::SignatureProof {
            sources: vec![v1::Locator::default()],
            syntax: Some(v1::SignatureSyntax {
                item_separator: "ab".to_owned(),
                ..Default::default()
            }),
            algorithms: vec![v1::AlgorithmRule { algorithm: 99, ..Default::default() }],
            template: vec![v1::TemplatePart::default()],
            url_variants: vec![0],
            ..Default::default()
        })),
        timestamp: Some(v1::TimestampRule { max_age_seconds: -1, ..Default::default() }),
        message_id: vec![v1::Locator { at: Some(v1::locator::At::Json("a..b".to_owned())) }],
        claims: vec![v1::VerificationClaim::default()],
        handshakes: vec![v1::Handshake::default()],
        ..Default::default()
    };
    let text = back(wire).unwrap_err();
    for field in [
        "signature.sources[0]: is required",
        "signature.syntax.item_separator: has more than one",
        "signature.encoding: is required: name the encoding",
        "signature.algorithms[0].algorithm: is 99, which names no algorithm",
        "signature.algorithms[0].key: is required",
        "signature.template[0]: is required",
        "signature.url_variants[0]: is 0",
        "timestamp.at: is required",
        "timestamp.unit: is required",
        "timestamp.max_age_seconds: is -1",
        "message_id[0].json",
        "claims[0].at: is required",
        "handshakes[0].reply: is required",
    ] {
        assert!(text.contains(&format!("source.scheme.{field}")), "{field} is not in {text}");
    }
}

#[test]
fn the_rules_of_schemes_are_told_at_their_fields() {
    let mut violations = Violations::new();
    assert_eq!(scheme(&mut violations, wire_scheme(&everything())), None);
    let text = violations.into_error().to_string();
    assert!(text.contains("source.scheme.timestamp: "), "{text}");
    assert!(!text.contains("proof."), "{text}");
}
