//! Schemes as they go out.

use crate::convert::wire_name::WireName as _;
use turnbuckle_proto::v1;
use turnbuckle_signing::scheme::{
    Claim, ClaimValue, Condition, Encoding, Expected, Handshake, JwtProof, KeyRule, KeySource,
    Locator, Part, Piece, Proof, Reply, Scheme, SignatureProof, SignatureSyntax, TimestampRule,
    TokenClaim, WhenAbsent,
};

pub(in crate::convert) fn wire_scheme(scheme: &Scheme) -> v1::VerificationScheme {
    use v1::verification_scheme::Proof as Wire;
    v1::VerificationScheme {
        proof: Some(match &scheme.proof {
            Proof::Signature(proof) => Wire::Signature(signature(proof)),
            Proof::Jwt(proof) => Wire::Jwt(jwt(proof)),
        }),
        key_source: key_source(&scheme.key_source),
        timestamp: scheme.timestamp.as_ref().map(timestamp),
        message_id: scheme.message_id.iter().map(locator).collect(),
        claims: scheme.claims.iter().map(claim).collect(),
        body_form: scheme.body_form.map_or(0, |form| form.number()),
        items: scheme.items.as_ref().map(ToString::to_string).unwrap_or_default(),
        settings: scheme.settings.clone(),
        handshakes: scheme.handshakes.iter().map(handshake).collect(),
    }
}

fn locator(at: &Locator) -> v1::Locator {
    use v1::locator::At as Wire;
    let at = match at {
        Locator::Header(name) => Wire::Header(name.clone()),
        Locator::NumberedHeader { prefix, last } => Wire::NumberedHeader(v1::NumberedHeader {
            prefix: prefix.clone(),
            last: i32::from(*last),
        }),
        Locator::Authorization(name) => Wire::Authorization(name.clone()),
        Locator::Query(name) => Wire::Query(name.clone()),
        Locator::Form(name) => Wire::Form(name.clone()),
        Locator::Json(path) => Wire::Json(path.to_string()),
        Locator::SignatureField(tag) => Wire::SignatureField(tag.clone()),
    };
    v1::Locator { at: Some(at) }
}

fn signature(proof: &SignatureProof) -> v1::SignatureProof {
    let algorithms = proof.algorithms.iter().map(|rule| v1::AlgorithmRule {
        algorithm: rule.algorithm.number(),
        tags: rule.tags.clone(),
        key: Some(key_rule(&rule.key)),
    });
    v1::SignatureProof {
        sources: proof.sources.iter().map(locator).collect(),
        syntax: Some(syntax(&proof.syntax)),
        encoding: proof.encoding.number(),
        algorithms: algorithms.collect(),
        template: proof.template.iter().map(part).collect(),
        url_variants: proof.url_variants.iter().map(|variant| variant.number()).collect(),
    }
}

fn syntax(syntax: &SignatureSyntax) -> v1::SignatureSyntax {
    let text = |character: Option<char>| character.map(String::from).unwrap_or_default();
    v1::SignatureSyntax {
        item_separator: text(syntax.item_separator),
        key_separator: text(syntax.key_separator),
        prefix: syntax.prefix.clone(),
        trim: syntax.trim,
    }
}

fn key_rule(rule: &KeyRule) -> v1::KeyRule {
    v1::KeyRule {
        encoding: rule.encoding.number(),
        prefixes: rule.prefixes.clone(),
        min_bytes: i32::from(rule.min_bytes),
        digest: rule.digest.map_or(0, |digest| digest.number()),
    }
}

fn part(part: &Part) -> v1::TemplatePart {
    use v1::{TemplateToken as Token, template_part::Part as Wire};
    let token = |token: Token| Wire::Token(token.into());
    let part = match part {
        Part::Literal(text) => Wire::Literal(text.clone()),
        Part::Setting(name) => Wire::Setting(name.clone()),
        Part::Value { at, when_absent, before, after } => Wire::Value(v1::TemplateValue {
            at: Some(locator(at)),
            optional: *when_absent == WhenAbsent::Empty,
            before: before.clone(),
            after: after.clone(),
        }),
        Part::Body => token(Token::Body),
        Part::Timestamp => token(Token::Timestamp),
        Part::MessageId => token(Token::MessageId),
        Part::Method => token(Token::Method),
        Part::Url => token(Token::Url),
        Part::Secret => token(Token::Secret),
        Part::SortedForm => token(Token::SortedForm),
        Part::BodyCrc32 => token(Token::BodyCrc32),
        Part::BodySha256Hex => token(Token::BodySha256Hex),
    };
    v1::TemplatePart { part: Some(part) }
}

fn jwt(proof: &JwtProof) -> v1::JwtProof {
    let hash = |claim: &str, encoding: Encoding, absent_when_empty| v1::HashClaim {
        claim: claim.to_owned(),
        encoding: encoding.number(),
        absent_when_empty,
    };
    let body_hash = proof.body_hash.as_ref();
    let url_hash = proof.url_hash.as_ref();
    v1::JwtProof {
        source: Some(locator(&proof.source)),
        algorithm: proof.algorithm.number(),
        key: Some(key_rule(&proof.key)),
        issuer: proof.issuer.as_ref().map(expected),
        audience: proof.audience.as_ref().map(expected),
        body_hash: body_hash.map(|of| hash(&of.claim, of.encoding, of.absent_when_empty)),
        url_hash: url_hash.map(|of| hash(&of.claim, of.encoding, false)),
        max_age_seconds: number(proof.max_age_seconds),
        max_future_seconds: number(proof.max_future_seconds),
        id_claim: proof.id_claim.clone().unwrap_or_default(),
        claims: proof.claims.iter().map(token_claim).collect(),
        timeless: proof.timeless,
    }
}

fn token_claim(rule: &TokenClaim) -> v1::TokenClaim {
    v1::TokenClaim { claim: rule.claim.clone(), expected: Some(expected(&rule.expected)) }
}

fn number(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn expected(value: &Expected) -> v1::ExpectedValue {
    use v1::expected_value::Value as Wire;
    let value = match value {
        Expected::Text(text) => Wire::Text(text.clone()),
        Expected::Setting(name) => Wire::Setting(name.clone()),
        Expected::Key => Wire::Key(true),
    };
    v1::ExpectedValue { value: Some(value) }
}

fn key_source(source: &KeySource) -> Option<v1::verification_scheme::KeySource> {
    use v1::verification_scheme::KeySource as Wire;
    match source {
        KeySource::KeyRing => None,
        KeySource::Certificate { url, hosts, path_suffix, subject, leaf_alone } => {
            Some(Wire::Certificate(v1::CertificateKeySource {
                url: Some(locator(url)),
                hosts: hosts.clone(),
                path_suffix: path_suffix.clone(),
                subject: subject.clone().unwrap_or_default(),
                leaf_alone: *leaf_alone,
            }))
        }
        KeySource::KeySet { url } => Some(Wire::KeySet(v1::KeySetKeySource { url: url.clone() })),
    }
}

fn timestamp(rule: &TimestampRule) -> v1::TimestampRule {
    v1::TimestampRule {
        at: Some(locator(&rule.at)),
        unit: rule.unit.number(),
        max_age_seconds: number(rule.max_age_seconds),
        max_future_seconds: number(rule.max_future_seconds),
    }
}

fn claim(claim: &Claim) -> v1::VerificationClaim {
    use v1::verification_claim::Equals as Wire;
    v1::VerificationClaim {
        at: Some(locator(&claim.at)),
        equals: Some(match &claim.equals {
            ClaimValue::Text(text) => Wire::Text(text.clone()),
            ClaimValue::Setting(name) => Wire::Setting(name.clone()),
            ClaimValue::BodySha256Hex => Wire::BodySha256Hex(true),
        }),
    }
}

fn handshake(handshake: &Handshake) -> v1::Handshake {
    v1::Handshake {
        name: handshake.name.clone(),
        when: handshake.when.iter().map(condition).collect(),
        signed: handshake.signed,
        reply: Some(reply(&handshake.reply)),
        learns_secret: handshake.learns_secret.as_ref().map(locator),
    }
}

fn condition(condition: &Condition) -> v1::HandshakeCondition {
    use v1::handshake_condition::Condition as Wire;
    let condition = match condition {
        Condition::Method(method) => Wire::Method(method.clone()),
        Condition::Present(at) => Wire::Present(locator(at)),
        Condition::Equals { at, expected: value } => Wire::Equals(v1::HandshakeEquality {
            at: Some(locator(at)),
            expected: Some(expected(value)),
        }),
        Condition::EmptyArray(path) => Wire::EmptyArray(path.to_string()),
    };
    v1::HandshakeCondition { condition: Some(condition) }
}

fn reply(reply: &Reply) -> v1::HandshakeReply {
    let headers = reply.headers.iter().map(|(name, value)| v1::HandshakeHeader {
        name: name.clone(),
        value: value.iter().map(piece).collect(),
    });
    v1::HandshakeReply {
        status: i32::from(reply.status),
        content_type: reply.content_type.clone(),
        headers: headers.collect(),
        body: reply.body.iter().map(piece).collect(),
    }
}

fn piece(piece: &Piece) -> v1::ReplyPiece {
    use v1::reply_piece::Piece as Wire;
    let piece = match piece {
        Piece::Literal(text) => Wire::Literal(text.clone()),
        Piece::Setting(name) => Wire::Setting(name.clone()),
        Piece::Echo { at, escape } => {
            Wire::Echo(v1::ReplyEcho { at: Some(locator(at)), escape: escape.number() })
        }
        Piece::Hmac { of, encoding } => {
            Wire::Hmac(v1::ReplyHmac { of: Some(locator(of)), encoding: encoding.number() })
        }
    };
    v1::ReplyPiece { piece: Some(piece) }
}
