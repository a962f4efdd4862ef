//! The proof by JSON Web Token.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::entry;
use super::handshake::Expected;
use super::hash::MacKind;
use super::key::{Purpose, SchemeKey};
use super::limits::{MAX_NAME_BYTES, MAX_TOKEN_BYTES};
use super::proof::{Encoding, JwtAlgorithm, JwtProof};
use super::refusal::{Refusal, Role};
use super::request::{Context, View};
use super::verifier::{Proven, check_window, id_text};

const MALFORMED: Refusal = Refusal::Malformed(Role::Signature);

/// What keys of a token algorithm are made of.
pub(super) fn purpose(algorithm: JwtAlgorithm) -> Purpose {
    match algorithm {
        JwtAlgorithm::Hs256 => Purpose::Mac(MacKind::Sha256),
        JwtAlgorithm::Hs384 => Purpose::Mac(MacKind::Sha384),
        JwtAlgorithm::Hs512 => Purpose::Mac(MacKind::Sha512),
        JwtAlgorithm::Es256 => Purpose::P256,
        JwtAlgorithm::Rs256 => Purpose::Rsa,
        JwtAlgorithm::EdDsa => Purpose::Ed25519,
    }
}

/// A token taken apart; nothing in it is believed yet.
struct Token {
    header: Map<String, Value>,
    /// Header and claims as they are signed.
    signed: Vec<u8>,
    claims: Vec<u8>,
    signature: Vec<u8>,
}

pub(super) fn prove(
    proof: &JwtProof,
    view: &View<'_>,
    keys: &[&SchemeKey],
    context: &Context<'_>,
) -> Result<Proven, Refusal> {
    let token = read(proof, view)?;
    check_header(&token.header, proof.algorithm)?;
    let mut found = None;
    for (index, key) in keys.iter().enumerate() {
        let matched = bool::from(key.matches_token(&token.signed, &token.signature));
        if matched && found.is_none() {
            found = Some(index);
        }
    }
    let key_index = found.ok_or(Refusal::Mismatch)?;
    let claims: Map<String, Value> = object(&token.claims)?;
    let signed_at_ms = check_times(proof, &claims, context.now_unix_ms)?;
    check_parties(proof, &claims, context)?;
    check_claims(proof, &claims, context)?;
    check_body(proof, &claims, view)?;
    check_url(proof, &claims, view)?;
    let message_id = match &proof.id_claim {
        Some(name) => match claims.get(name) {
            Some(Value::String(id)) => {
                Some(id_text(id.as_bytes()).ok_or(Refusal::Malformed(Role::MessageId))?)
            }
            Some(_) => return Err(Refusal::Malformed(Role::MessageId)),
            None => None,
        },
        None => None,
    };
    Ok(Proven { key_index, signed_at_ms, message_id })
}

/// The name of the key that a token wants to be checked with: a look-up in a set, nothing more.
pub(super) fn key_id(proof: &JwtProof, view: &View<'_>) -> Result<String, Refusal> {
    let token = read(proof, view)?;
    check_header(&token.header, proof.algorithm)?;
    match token.header.get("kid") {
        Some(Value::String(id)) if !id.is_empty() && id.len() <= MAX_NAME_BYTES => Ok(id.clone()),
        Some(_) => Err(Refusal::Malformed(Role::Key)),
        None => Err(Refusal::Missing(Role::Key)),
    }
}

fn read(proof: &JwtProof, view: &View<'_>) -> Result<Token, Refusal> {
    let text = view.need(&proof.source, Role::Signature, MAX_TOKEN_BYTES)?;
    let mut parts = text.split(|byte| *byte == b'.');
    let (Some(header), Some(claims), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(MALFORMED);
    };
    let decode = |part: &[u8]| URL_SAFE_NO_PAD.decode(part).map_err(|_| MALFORMED);
    Ok(Token {
        header: object(&decode(header)?)?,
        signed: text[..header.len() + 1 + claims.len()].to_vec(),
        claims: decode(claims)?,
        signature: decode(signature)?,
    })
}

fn object(json: &[u8]) -> Result<Map<String, Value>, Refusal> {
    serde_json::from_slice(json).map_err(|_| MALFORMED)
}

/// The algorithm is the configured one; the token may only agree. Keys that it brings or points
/// to (`jwk`, `jku`, `x5c`, `x5u`) are never looked at.
fn check_header(header: &Map<String, Value>, algorithm: JwtAlgorithm) -> Result<(), Refusal> {
    if header.get("alg").and_then(Value::as_str) != Some(algorithm.as_str()) {
        return Err(Refusal::TokenAlgorithm);
    }
    // It lists extensions that must be understood, and none is.
    if header.contains_key("crit") || header.contains_key("b64") {
        return Err(MALFORMED);
    }
    Ok(())
}

/// A time in milliseconds. One of the wrong type is refused: taken as absent, it would never
/// expire.
fn time_claim(claims: &Map<String, Value>, name: &str) -> Result<Option<i64>, Refusal> {
    /// Far beyond any clock, and safe to multiply.
    const MAX_SECONDS: f64 = 1e12;
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds));
    let seconds = seconds.ok_or(MALFORMED)?;
    // In bounds, so the conversion is exact to the millisecond.
    #[expect(clippy::cast_possible_truncation, reason = "bounded just above")]
    Ok(Some((seconds * 1000.0) as i64))
}

/// The time of signing, where the token has it.
fn check_times(
    proof: &JwtProof,
    claims: &Map<String, Value>,
    now_ms: i64,
) -> Result<Option<i64>, Refusal> {
    let latest_start = now_ms.saturating_add(i64::from(proof.max_future_seconds) * 1000);
    let issued = time_claim(claims, "iat")?;
    let expires = time_claim(claims, "exp")?;
    if time_claim(claims, "nbf")?.is_some_and(|from| from > latest_start) {
        return Err(Refusal::TokenNotYet);
    }
    if expires.is_some_and(|until| until <= now_ms) {
        return Err(Refusal::TokenExpired);
    }
    let from = issued.or(time_claim(claims, "nbf")?);
    match from {
        Some(at) => check_window(at, proof.max_age_seconds, proof.max_future_seconds, now_ms)?,
        // Without a beginning, only an end within the same bound keeps a token from living on.
        None if proof.timeless && expires.is_none() => {}
        None => {
            let latest = now_ms.saturating_add(i64::from(proof.max_age_seconds) * 1000);
            let bounded = expires.ok_or(Refusal::TokenWithoutTime)? <= latest;
            if !bounded {
                return Err(Refusal::TokenWithoutTime);
            }
        }
    }
    Ok(from)
}

fn check_parties(
    proof: &JwtProof,
    claims: &Map<String, Value>,
    context: &Context<'_>,
) -> Result<(), Refusal> {
    if let Some(expected) = &proof.issuer {
        let issuer = claims.get("iss").and_then(Value::as_str);
        if issuer != Some(text(expected, context)?) {
            return Err(Refusal::TokenIssuer);
        }
    }
    if let Some(expected) = &proof.audience {
        let expected = text(expected, context)?;
        let fits = match claims.get("aud") {
            Some(Value::String(audience)) => audience == expected,
            Some(Value::Array(list)) => list.iter().any(|one| one.as_str() == Some(expected)),
            _ => false,
        };
        if !fits {
            return Err(Refusal::TokenAudience);
        }
    }
    Ok(())
}

fn check_claims(
    proof: &JwtProof,
    claims: &Map<String, Value>,
    context: &Context<'_>,
) -> Result<(), Refusal> {
    for (index, rule) in proof.claims.iter().enumerate() {
        let expected = text(&rule.expected, context)?;
        let fits = match claims.get(&rule.claim) {
            Some(Value::String(text)) => text == expected,
            Some(Value::Bool(value)) => expected == if *value { "true" } else { "false" },
            _ => false,
        };
        if !fits {
            return Err(Refusal::ClaimMismatch(index));
        }
    }
    Ok(())
}

fn text<'a>(expected: &'a Expected, context: &Context<'a>) -> Result<&'a str, Refusal> {
    match expected {
        Expected::Text(text) => Ok(text),
        Expected::Setting(name) => context.setting(name),
        Expected::Key => Err(Refusal::MissingSetting),
    }
}

fn check_body(
    proof: &JwtProof,
    claims: &Map<String, Value>,
    view: &View<'_>,
) -> Result<(), Refusal> {
    let Some(rule) = &proof.body_hash else { return Ok(()) };
    let body = view.request.body;
    let fits = match claims.get(&rule.claim) {
        None => rule.absent_when_empty && body.is_empty(),
        Some(_) if rule.absent_when_empty && body.is_empty() => false,
        Some(claim) => is_hash(claim, rule.encoding, body),
    };
    if fits { Ok(()) } else { Err(Refusal::TokenBody) }
}

fn check_url(
    proof: &JwtProof,
    claims: &Map<String, Value>,
    view: &View<'_>,
) -> Result<(), Refusal> {
    let Some(rule) = &proof.url_hash else { return Ok(()) };
    let url = view.url()?.as_bytes();
    let fits = claims.get(&rule.claim).is_some_and(|claim| is_hash(claim, rule.encoding, url));
    if fits { Ok(()) } else { Err(Refusal::TokenUrl) }
}

fn is_hash(claim: &Value, encoding: Encoding, bytes: &[u8]) -> bool {
    let claimed = claim.as_str().and_then(|text| entry::decode_text(text.as_bytes(), encoding));
    claimed.is_some_and(|claimed| bool::from(Sha256::digest(bytes).as_slice().ct_eq(&claimed)))
}
