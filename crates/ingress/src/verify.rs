//! Whether a request is theirs: handshake, signature, time. Nothing here waits.

use crate::{
    config::SourceEntry,
    keys::{OpenKey, Opener},
};
use tokio::time::Instant;
use turnbuckle_domain::{HandshakeChoice, KeyId, KeyState, SecretSealer, Timestamp};
use turnbuckle_signing::scheme::{
    Context, Handshake, HandshakeReply, Refusal, Request, SchemeKey, Verifier,
};

/// Microseconds of a millisecond.
const MILLISECOND: i64 = 1_000;

/// What a request is.
pub(crate) enum Judged {
    /// A question, with its answer.
    Handshake { name: String, reply: HandshakeReply, signer: Option<Signer> },
    /// A question that brings the secret of all later requests.
    Offer { name: String, reply: HandshakeReply },
    /// A verified request for an address to be fetched.
    Confirmation { url: String, signer: Signer },
    /// An event of theirs.
    Theirs { signer: Signer, message_id: Option<MessageId> },
    /// It cannot be judged: something of ours is missing, and a sender takes a refusal as the last word.
    Unready { reason: &'static str },
    /// Not to be believed.
    Refused { kind: &'static str, reason: String, signer: Option<Signer> },
}

/// The id that a scheme reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageId {
    pub(crate) text: String,
    /// Whether the signature covers it.
    pub(crate) signed: bool,
}

/// Which key verified, and how far the clocks are apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signer {
    /// None for a key that was fetched.
    pub(crate) key: Option<KeyId>,
    pub(crate) state: KeyState,
    pub(crate) skew_ms: Option<i64>,
}

/// A key that a request may be signed with.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    id: Option<KeyId>,
    state: KeyState,
    material: &'a SchemeKey,
}

/// Judges a request by the keys and the time of now. A key that was fetched for it stands in place of
/// the ring.
pub(crate) fn judge(
    entry: &SourceEntry,
    request: &Request<'_>,
    fetched: Option<&SchemeKey>,
    sealer: &dyn SecretSealer,
    now: Timestamp,
) -> Judged {
    let (source, verifier) = (entry.source(), &entry.compiled.verifier);
    let opener = Opener { tenant: source.tenant, source: source.id, verifier, sealer };
    let keys = candidates(entry, &opener, fetched, now);
    let materials: Vec<&SchemeKey> = keys.iter().map(|key| key.material).collect();
    let texts = source.scheme_settings.iter();
    let settings: Vec<_> = texts.map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let now_unix_ms = now.micros().div_euclid(MILLISECOND);
    let context = Context { now_unix_ms, settings: &settings };
    let handshakes = source.settings.handshake == HandshakeChoice::AsScheme;
    let asks = handshakes.then(|| verifier.handshake(request, &materials, &context)).flatten();
    if let Some(handshake) = asks.filter(|handshake| !handshake.signed) {
        return answered(verifier, handshake, request, &materials, &context, None);
    }
    let verified = match verifier.verify(request, &materials, &context) {
        Ok(verified) => verified,
        Err(refusal) => return refused(entry, request, &opener, &context, refusal, now),
    };
    let Some(key) = keys.get(verified.key_index) else {
        // Unreachable: a verified request names its key.
        return Judged::Refused { kind: "misconfigured", reason: String::new(), signer: None };
    };
    let skew_ms = verified.signed_at_ms.map(|at| now_unix_ms.saturating_sub(at));
    let signer = Signer { key: key.id, state: key.state, skew_ms };
    if let Some(handshake) = asks {
        // With the key that it is signed with: its sender may know no other.
        return answered(verifier, handshake, request, &[key.material], &context, Some(signer));
    }
    match verifier.confirmation_url(request) {
        Ok(Some(url)) if handshakes => Judged::Confirmation { url, signer },
        Err(refusal) if handshakes => Judged::Refused {
            kind: refusal.kind(),
            reason: refusal.to_string(),
            signer: Some(signer),
        },
        _ => {
            let signed = verified.message_id_signed;
            let message_id = verified.message_id.map(|text| MessageId { text, signed });
            Judged::Theirs { signer, message_id }
        }
    }
}

/// The keys that are taken now.
fn candidates<'a>(
    entry: &'a SourceEntry,
    opener: &Opener<'_>,
    fetched: Option<&'a SchemeKey>,
    now: Timestamp,
) -> Vec<Candidate<'a>> {
    match fetched {
        Some(material) => vec![Candidate { id: None, state: KeyState::Active, material }],
        None => {
            let open = entry.keys.accepting(opener, now).into_iter();
            open.map(|open| Candidate {
                id: Some(open.key.id),
                state: open.key.state_at(now),
                material: open.material,
            })
            .collect()
        }
    }
}

/// The answer to a question.
fn answered(
    verifier: &Verifier,
    handshake: &Handshake,
    request: &Request<'_>,
    keys: &[&SchemeKey],
    context: &Context<'_>,
    signer: Option<Signer>,
) -> Judged {
    let name = handshake.name.clone();
    match verifier.answer(handshake, request, keys, context) {
        Ok(reply) if reply.learned_secret.is_some() => Judged::Offer { name, reply },
        Ok(reply) => Judged::Handshake { name, reply, signer },
        Err(error) => Judged::Refused { kind: "handshake", reason: error.to_string(), signer },
    }
}

/// Finds out whether a key that is not taken any more explains the refusal.
fn refused(
    entry: &SourceEntry,
    request: &Request<'_>,
    opener: &Opener<'_>,
    context: &Context<'_>,
    refusal: Refusal,
    now: Timestamp,
) -> Judged {
    let generic = |refusal: Refusal| Judged::Refused {
        kind: refusal.kind(),
        reason: refusal.to_string(),
        signer: None,
    };
    if refusal == Refusal::MissingSetting {
        return Judged::Unready { reason: "a setting that its scheme needs is missing" };
    }
    if !matches!(refusal, Refusal::Mismatch | Refusal::NoKeys) {
        return generic(refusal);
    }
    if let Some(reason) = entry.keys.unready(opener, now) {
        return Judged::Unready { reason };
    }
    if !entry.load.may_explain(Instant::now()) {
        return generic(refusal);
    }
    let keys = entry.keys.refusing(opener, now);
    let verifier = opener.verifier;
    let signs = |open: &&OpenKey<'_>| {
        let judged = verifier.verify(request, &[open.material], context);
        matches!(judged, Ok(_) | Err(Refusal::TooOld { .. } | Refusal::TooNew { .. }))
    };
    let Some(open) = keys.iter().find(signs) else { return generic(refusal) };
    let state = open.key.state_at(now);
    let signer = Some(Signer { key: Some(open.key.id), state, skew_ms: None });
    let (kind, reason) = match state {
        KeyState::Revoked => ("revoked-key", "it is signed with a revoked key"),
        _ => ("retired-key", "it is signed with a retired key: its sender missed the rotation"),
    };
    Judged::Refused { kind, reason: reason.to_owned(), signer }
}
