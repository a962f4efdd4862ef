//! The proof by signature.

use std::borrow::Cow;

use subtle::Choice;

use super::entry::{self, Candidate};
use super::form;
use super::hash::{Chunk, crc32};
use super::json;
use super::key::SchemeKey;
use super::limits::{MAX_ITEMS, MAX_SIGNED_VALUE_BYTES, MAX_VALUE_BYTES};
use super::model::{Scheme, TimestampRule, UrlVariant};
use super::proof::SignatureProof;
use super::refusal::{Refusal, Role};
use super::request::{Context, View};
use super::template::{Part, WhenAbsent};
use super::verifier::{Proven, check_window, message_id};
use super::{time, url};

/// What the template's parts stand for in one request.
pub(super) struct Values<'a> {
    pub(super) timestamp: Option<Cow<'a, [u8]>>,
    pub(super) id: Option<String>,
}

/// Tries every key on every signature, in every spelling of the URL.
pub(super) fn prove(
    scheme: &Scheme,
    proof: &SignatureProof,
    view: &View<'_>,
    keys: &[&SchemeKey],
    context: &Context<'_>,
) -> Result<Proven, Refusal> {
    if let Some(path) = &scheme.items {
        return prove_items(scheme, proof, path, view, keys, context);
    }
    let candidates = entry::candidates(view, proof)?;
    let stamp = match &scheme.timestamp {
        Some(rule) => Some(read_timestamp(rule, view)?),
        None => None,
    };
    let signs_id = proof.template.contains(&Part::MessageId);
    let id = if signs_id { Some(signed_id(scheme, proof, view)?) } else { None };
    let (timestamp, signed_at_ms) = stamp.map_or((None, None), |(text, at)| (Some(text), Some(at)));
    let values = Values { timestamp, id };
    let key_index = find_key(proof, view, &values, &candidates, keys, context)?;
    if let (Some(rule), Some(at)) = (&scheme.timestamp, signed_at_ms) {
        check_window(at, rule.max_age_seconds, rule.max_future_seconds, context.now_unix_ms)?;
    }
    Ok(Proven { key_index, signed_at_ms, message_id: values.id })
}

/// Every item must verify, and every item is looked at.
fn prove_items(
    scheme: &Scheme,
    proof: &SignatureProof,
    path: &super::JsonPath,
    view: &View<'_>,
    keys: &[&SchemeKey],
    context: &Context<'_>,
) -> Result<Proven, Refusal> {
    let items = json::values(view.document, path, MAX_ITEMS).map_err(|fault| match fault {
        json::JsonFault::TooMany => Refusal::TooManyItems,
        json::JsonFault::Repeated => Refusal::Repeated(Role::SignedPart),
        _ => Refusal::MalformedBody,
    })?;
    if items.is_empty() {
        return Err(Refusal::NoItems);
    }
    let signs_id = proof.template.contains(&Part::MessageId);
    let id = if signs_id { Some(signed_id(scheme, proof, view)?) } else { None };
    let values = Values { timestamp: None, id };
    let mut outcome = Ok(0);
    for document in items {
        let item = View { document, ..*view };
        let proven = entry::candidates(&item, proof)
            .and_then(|found| find_key(proof, &item, &values, &found, keys, context));
        // The key that is reported is the last one in the ring's order that was needed.
        outcome = match (outcome, proven) {
            (Ok(so_far), Ok(index)) => Ok(usize::max(so_far, index)),
            (Err(first), _) => Err(first),
            (Ok(_), Err(refusal)) => Err(refusal),
        };
    }
    Ok(Proven { key_index: outcome?, signed_at_ms: None, message_id: values.id })
}

fn find_key(
    proof: &SignatureProof,
    view: &View<'_>,
    values: &Values<'_>,
    candidates: &[Candidate],
    keys: &[&SchemeKey],
    context: &Context<'_>,
) -> Result<usize, Refusal> {
    let mut found = None;
    let once = [UrlVariant::AsIs];
    let variants =
        if proof.url_variants.is_empty() { &once } else { proof.url_variants.as_slice() };
    let mut spelled = Vec::new();
    for variant in variants {
        // Most URLs are written alike in every spelling: the body is not hashed again for them.
        if variants.len() > 1 {
            let url = url::spell(view.url()?, *variant);
            if spelled.contains(&url) {
                continue;
            }
            spelled.push(url);
        }
        let chunks = render(proof, view, values, *variant, context)?;
        for (index, key) in keys.iter().enumerate() {
            // Evaluated before looking at `found`: an early match must not save the later work.
            let matched = bool::from(matches(proof, key, &chunks, candidates));
            if matched && found.is_none() {
                found = Some(index);
            }
        }
    }
    found.ok_or(Refusal::Mismatch)
}

fn matches(
    proof: &SignatureProof,
    key: &SchemeKey,
    chunks: &[Chunk<'_>],
    candidates: &[Candidate],
) -> Choice {
    let Some(rule) = proof.algorithms.get(key.rule) else {
        return Choice::from(0);
    };
    let signatures = candidates
        .iter()
        .filter(|candidate| candidate.rule == key.rule)
        .map(|candidate| candidate.bytes.as_slice());
    key.matches(rule.algorithm, chunks, signatures)
}

pub(super) fn read_timestamp<'a>(
    rule: &TimestampRule,
    view: &View<'a>,
) -> Result<(Cow<'a, [u8]>, i64), Refusal> {
    let text = view.need(&rule.at, Role::Timestamp, MAX_VALUE_BYTES)?;
    let at = time::parse(&text, rule.unit).ok_or(Refusal::Malformed(Role::Timestamp))?;
    Ok((text, at))
}

/// The id, which must not reach over the border to what follows it.
pub(super) fn signed_id(
    scheme: &Scheme,
    proof: &SignatureProof,
    view: &View<'_>,
) -> Result<String, Refusal> {
    let id = message_id(scheme, view)?.ok_or(Refusal::Missing(Role::MessageId))?;
    let position = proof.template.iter().position(|part| *part == Part::MessageId);
    let border = match position.and_then(|at| proof.template.get(at + 1)) {
        Some(Part::Literal(text)) => text.chars().next(),
        _ => None,
    };
    if border.is_some_and(|border| id.contains(border)) {
        return Err(Refusal::Malformed(Role::MessageId));
    }
    Ok(id)
}

/// The signed bytes, as parts.
pub(super) fn render<'a>(
    proof: &'a SignatureProof,
    view: &View<'a>,
    values: &'a Values<'a>,
    variant: UrlVariant,
    context: &Context<'a>,
) -> Result<Vec<Chunk<'a>>, Refusal> {
    let mut chunks = Vec::with_capacity(proof.template.len());
    for part in &proof.template {
        let bytes: Cow<'a, [u8]> = match part {
            Part::Literal(text) => text.as_bytes().into(),
            Part::Body => view.request.body.into(),
            Part::Timestamp => match &values.timestamp {
                Some(text) => text.as_ref().into(),
                None => return Err(Refusal::Missing(Role::Timestamp)),
            },
            Part::MessageId => match &values.id {
                Some(id) => id.as_bytes().into(),
                None => return Err(Refusal::Missing(Role::MessageId)),
            },
            Part::Method => view.request.method.as_bytes().into(),
            Part::Url => match url::spell(view.url()?, variant) {
                Some(Cow::Borrowed(spelled)) => spelled.as_bytes().into(),
                Some(Cow::Owned(spelled)) => spelled.into_bytes().into(),
                None => return Err(Refusal::Malformed(Role::SignedPart)),
            },
            Part::Setting(name) => context.setting(name)?.as_bytes().into(),
            Part::Secret => {
                chunks.push(Chunk::Secret);
                continue;
            }
            Part::SortedForm => {
                let fields = form::sorted(view.request.body).ok_or(Refusal::TooManyFields)?;
                chunks.extend(fields.into_iter().map(Chunk::Bytes));
                continue;
            }
            Part::BodyCrc32 => crc32(view.request.body).to_string().into_bytes().into(),
            Part::BodySha256Hex => body_sha256_hex(view.request.body).into_bytes().into(),
            Part::Value { .. } => {
                push_value(&mut chunks, part, view)?;
                continue;
            }
        };
        chunks.push(Chunk::Bytes(bytes));
    }
    Ok(chunks)
}

fn push_value<'a>(
    chunks: &mut Vec<Chunk<'a>>,
    part: &'a Part,
    view: &View<'a>,
) -> Result<(), Refusal> {
    let Part::Value { at, when_absent, before, after } = part else {
        return Ok(());
    };
    match (view.find(at, Role::SignedPart, MAX_SIGNED_VALUE_BYTES)?, when_absent) {
        (Some(value), _) => {
            let texts = [before.as_bytes().into(), value, after.as_bytes().into()];
            chunks.extend(texts.into_iter().map(Chunk::Bytes));
            Ok(())
        }
        (None, WhenAbsent::Empty) => Ok(()),
        (None, WhenAbsent::Refuse) => Err(Refusal::Missing(Role::SignedPart)),
    }
}

pub(super) fn body_sha256_hex(body: &[u8]) -> String {
    use sha2::Digest;
    data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(body))
}
