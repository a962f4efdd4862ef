//! Whether a request is theirs: handshake, signature, time. Nothing here waits.

use crate::{
    config::SourceEntry,
    keys::{OpenKey, Opener},
};
use tokio::time::Instant;
use turnbuckle_domain::{HandshakeChoice, KeyId, KeyState, SecretSealer, Timestamp};
use turnbuckle_signing::scheme::{Context, HandshakeReply, Refusal, Request, SchemeKey, Verified};

/// Microseconds of a millisecond.
const MILLISECOND: i64 = 1_000;

/// What a request is.
pub(crate) enum Judged {
    /// A question, with its answer.
    Handshake { name: String, reply: HandshakeReply, signer: Option<Signer> },
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
    pub(crate) key: KeyId,
    pub(crate) state: KeyState,
    pub(crate) skew_ms: Option<i64>,
}

/// Judges a request by the keys and the time of now.
pub(crate) fn judge(
    entry: &SourceEntry,
    request: &Request<'_>,
    sealer: &dyn SecretSealer,
    now: Timestamp,
) -> Judged {
    let (source, verifier) = (entry.source(), &entry.compiled.verifier);
    let opener = Opener { tenant: source.tenant, source: source.id, verifier, sealer };
    let keys = entry.keys.accepting(&opener, now);
    let materials: Vec<&SchemeKey> = keys.iter().map(|open| open.material).collect();
    let texts = source.scheme_settings.iter();
    let settings: Vec<_> = texts.map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let now_unix_ms = now.micros().div_euclid(MILLISECOND);
    let context = Context { now_unix_ms, settings: &settings };
    let verify = || {
        verifier.verify(request, &materials, &context).map(|verified| {
            let signer = signer(&keys, &verified, now, now_unix_ms);
            let signed = verified.message_id_signed;
            (signer, verified.message_id.map(|text| MessageId { text, signed }))
        })
    };
    let asks = match source.settings.handshake {
        HandshakeChoice::AsScheme => verifier.handshake(request, &materials, &context),
        HandshakeChoice::Off => None,
    };
    let proven = match asks {
        Some(handshake) if !handshake.signed => Ok((None, None)),
        Some(_) | None => verify(),
    };
    let (signer, message_id) = match proven {
        Ok(proven) => proven,
        Err(refusal) => return refused(entry, request, &opener, &context, refusal, now),
    };
    match (asks, signer) {
        (Some(handshake), signer) => {
            match verifier.answer(handshake, request, &materials, &context) {
                Ok(reply) if reply.learned_secret.is_some() => Judged::Refused {
                    kind: "handshake",
                    reason:
                        "the sender offers a secret, which is not taken over HTTP: set it as a key \
                         of the source"
                            .to_owned(),
                    signer,
                },
                Ok(reply) => Judged::Handshake { name: handshake.name.clone(), reply, signer },
                Err(error) => {
                    Judged::Refused { kind: "handshake", reason: error.to_string(), signer }
                }
            }
        }
        (None, Some(signer)) => Judged::Theirs { signer, message_id },
        // Unreachable: a verified request names its key.
        (None, None) => {
            Judged::Refused { kind: "misconfigured", reason: String::new(), signer: None }
        }
    }
}

fn signer(
    keys: &[OpenKey<'_>],
    verified: &Verified,
    now: Timestamp,
    now_unix_ms: i64,
) -> Option<Signer> {
    keys.get(verified.key_index).map(|open| Signer {
        key: open.key.id,
        state: open.key.state_at(now),
        skew_ms: verified.signed_at_ms.map(|at| now_unix_ms.saturating_sub(at)),
    })
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
    let signer = Some(Signer { key: open.key.id, state, skew_ms: None });
    let (kind, reason) = match state {
        KeyState::Revoked => ("revoked-key", "it is signed with a revoked key"),
        _ => ("retired-key", "it is signed with a retired key: its sender missed the rotation"),
    };
    Judged::Refused { kind, reason: reason.to_owned(), signer }
}
