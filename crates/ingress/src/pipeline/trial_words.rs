//! The steps of a trial in plain words. Nothing here holds a signature, a key or a payload.

use super::{
    Received,
    encoding::Encoding,
    taking::words as fault_words,
    trial::{Trial, TrialOutcome},
};
use crate::{
    config::SourceEntry,
    event::{Mapped, NoEvent},
    verify::Signer,
};
use turnbuckle_domain::{HandshakeChoice, IntakeLimits, Key, KeyId, KeyState, Timestamp};
use turnbuckle_runtime::grpc::timestamp;
use turnbuckle_signing::scheme::{Proof, Sample, SampleError};

/// Ids told of one batch: the rest is counted.
const IDS_TOLD: usize = 5;

const CONFIRMATION: &str =
    "it asks for a subscription to be confirmed: its address is fetched through the egress guard";
pub(super) const DISABLED: &str = "the source is disabled: every request is told to come again, before \
     anything of it is read, until it is enabled";
pub(super) const DELIVERED: &str =
    "it was taken as if its sender had sent it: see the receipt, and the deliveries of its event";

pub(super) fn sample(sample: &Sample, key: &Key, at: Timestamp) -> String {
    format!(
        "a POST of {} bytes and {} headers was signed with the {} key {}, as its sender would",
        sample.body.len(),
        sample.headers.len(),
        key.state_at(at).as_str(),
        key.id,
    )
}

pub(super) fn no_key(wanted: Option<KeyId>) -> String {
    match wanted {
        Some(id) => format!("the source has no key {id} that could sign"),
        None => {
            "the source has no key yet: every request is refused. Stage one with key stage, or \
                 let its sender's handshake bring one"
                .to_owned()
        }
    }
}

pub(super) fn cannot_sign(error: SampleError) -> String {
    match error {
        SampleError::PublicKey | SampleError::FetchedKey => format!(
            "no sample can be signed here: {error}. Give a request that was captured from the \
             sender instead"
        ),
        other => format!("no sample can be made: {other}. Give a captured request instead"),
    }
}

pub(super) fn no_sample(trial: &Trial) -> String {
    let last = trial.steps.last().map_or("", |step| step.detail.as_str());
    format!("Nothing was tried: {last}.")
}

pub(super) fn too_large(bytes: usize, most: usize) -> String {
    format!("its body has {bytes} bytes, and the source takes {most}: raise limits.max_body_bytes")
}

pub(super) fn limits(received: &Received, limits: &IntakeLimits) -> String {
    format!(
        "body {} of {} bytes, {} of {} headers, {}; rates are not counted here",
        received.body.bytes.len(),
        limits.body_bytes,
        received.parts.headers.len(),
        limits.headers,
        match received.door.encoding {
            Encoding::Gzip => "gzip",
            _ => "no content encoding",
        },
    )
}

pub(super) fn source(entry: &SourceEntry, at: Timestamp) -> String {
    let previous = entry.source().path.tokens_at(at).count() > 1;
    let paths = if previous { "its path and the one before it" } else { "its path" };
    format!("the source is in use here, under {paths}")
}

pub(super) fn offer(name: &str) -> String {
    format!(
        "it is the handshake {name} and brings the sender's secret: the secret is kept as the \
         source's first key when the request comes in earnest"
    )
}

pub(super) fn handshake(
    trial: &mut Trial,
    received: &Received,
    name: &str,
    signer: Option<Signer>,
) {
    trial.passed("handshake", format!("it is the handshake {name}: answered, and no event"));
    match signer {
        Some(signer) => proven(trial, received, signer),
        None => trial.skipped("signature", "the handshake is answered without one"),
    }
}

/// What judging found for a request for a confirmation.
pub(super) fn confirmation(trial: &mut Trial, received: &Received, signer: Signer) {
    trial.passed("handshake", CONFIRMATION);
    proven(trial, received, signer);
}

/// What judging found for a request that is theirs.
pub(super) fn verified(trial: &mut Trial, received: &Received, signer: Signer) {
    no_handshake(trial, received);
    proven(trial, received, signer);
}

fn proven(trial: &mut Trial, received: &Received, signer: Signer) {
    trial.key = signer.key;
    trial.passed("signature", signed_by(signer));
    time(trial, received, signer);
    claims(trial, received, true, "");
}

fn no_handshake(trial: &mut Trial, received: &Received) {
    let source = received.entry.source();
    let handshakes = &received.entry.compiled.verifier.scheme().handshakes;
    let detail = match (source.settings.handshake, handshakes.is_empty()) {
        (HandshakeChoice::Off, _) => "handshakes are off for this source",
        (HandshakeChoice::AsScheme, true) => "the scheme has none",
        (HandshakeChoice::AsScheme, false) => "it is none of the questions that the scheme knows",
    };
    trial.skipped("handshake", detail);
}

fn signed_by(signer: Signer) -> String {
    let Some(key) = signer.key else {
        return "the fetched key of the sender verifies it".to_owned();
    };
    let more = match signer.state {
        KeyState::Staged => ": accepted already, so the sender may switch to it",
        KeyState::Retiring => ": accepted until its time is over; the sender should switch",
        _ => "",
    };
    format!("the {} key {key} verifies it{more}", signer.state.as_str())
}

fn time(trial: &mut Trial, received: &Received, signer: Signer) {
    let window = window(received);
    match (signer.skew_ms, window) {
        (Some(skew), Some((past, future))) => {
            let side = if skew >= 0 { "behind" } else { "ahead of" };
            trial.passed(
                "time",
                format!(
                    "the signed time is {} ms {side} our clock; {past} s behind and {future} s \
                     ahead are allowed",
                    skew.unsigned_abs()
                ),
            );
        }
        (None, Some(_)) => trial.skipped("time", "the request carries no time of its signing"),
        (_, None) => trial.skipped(
            "time",
            "the scheme signs no time: only deduplication tells a request that is sent again",
        ),
    }
}

/// Seconds behind and ahead.
fn window(received: &Received) -> Option<(u32, u32)> {
    let scheme = received.entry.compiled.verifier.scheme();
    match (&scheme.proof, &scheme.timestamp) {
        (Proof::Jwt(proof), _) if proof.timeless => None,
        (Proof::Jwt(proof), _) => Some((proof.max_age_seconds, proof.max_future_seconds)),
        (Proof::Signature(_), Some(rule)) => Some((rule.max_age_seconds, rule.max_future_seconds)),
        (Proof::Signature(_), None) => None,
    }
}

fn claims(trial: &mut Trial, received: &Received, hold: bool, reason: &str) {
    let count = received.entry.compiled.verifier.scheme().claims.len();
    match (hold, count) {
        (false, _) => trial.failed("claims", reason),
        (true, 0) => {}
        (true, count) => {
            trial.passed("claims", format!("{count} further values are as they must be"))
        }
    }
}

/// Tells at which step judging ended.
pub(super) fn refused(
    trial: &mut Trial,
    received: &Received,
    kind: &str,
    reason: &str,
    signer: Option<Signer>,
) {
    match kind {
        "handshake" => trial.failed("handshake", reason),
        "too-old" | "too-new" => {
            no_handshake(trial, received);
            trial.passed("signature", "a key of the source verifies it");
            let allowed = window(received).map_or(String::new(), |(past, future)| {
                format!(": {past} s behind and {future} s ahead of our clock are allowed")
            });
            trial.failed("time", format!("{reason}{allowed}"));
        }
        "claim-mismatch" => {
            no_handshake(trial, received);
            trial.passed("signature", "a key of the source verifies it");
            claims(trial, received, false, reason);
        }
        _ => {
            no_handshake(trial, received);
            let key = signer.and_then(|signer| signer.key);
            let key = key.map_or(String::new(), |key| format!(" ({key})"));
            trial.failed("signature", format!("{reason}{key}"));
        }
    }
}

pub(super) fn media_type(received: &Received) -> String {
    let shown: String = received.content_type().chars().take(100).collect();
    let taken = &received.entry.source().settings.limits.content_types;
    match taken.is_empty() {
        true => format!("it is {shown:?}; the source takes every media type"),
        false => format!("it is {shown:?}; the source takes {}", taken.join(", ")),
    }
}

pub(super) fn fault(received: &Received, fault: NoEvent) -> String {
    let settings = &received.entry.source().settings;
    let places = match settings.event.event_type.is_empty() {
        true => "the fields event_type and type",
        false => "the places in event.event_type",
    };
    format!("{}; the type is looked for at {places}", fault_words(fault))
}

pub(super) fn events(good: &[&Mapped], faults: &[NoEvent]) -> String {
    let Some(first) = good.first() else { return "it holds no events".to_owned() };
    let draft = &first.event.draft;
    let mut found = vec![format!("type {}", draft.event_type)];
    found.push(match draft.event_id.as_str() {
        "" => "no id".to_owned(),
        id => format!("id {id}"),
    });
    if !draft.event_version.is_empty() {
        found.push(format!("version {}", draft.event_version));
    }
    if !draft.subject.is_empty() {
        found.push(format!("subject {}", draft.subject));
    }
    found.extend(draft.sequence.map(|sequence| format!("sequence {sequence}")));
    found.push(format!("{} bytes", draft.data.len()));
    let first = found.join(", ");
    match (good.len(), faults.first()) {
        (1, None) => first,
        (count, None) => format!("{count} events, the first one with {first}"),
        (count, Some(fault)) => format!(
            "{count} events, the first one with {first}; {} items are none: {}",
            faults.len(),
            fault_words(*fault)
        ),
    }
}

pub(super) fn dedup(events: usize, seen: &[Timestamp]) -> String {
    let shown = seen.iter().take(IDS_TOLD).map(|at| timestamp(*at).to_string());
    let shown: Vec<String> = shown.collect();
    match (events, seen.len()) {
        (_, 0) => "no event of this id was taken before".to_owned(),
        (1, _) => format!("an event of this id was taken at {}: it is a repeat", shown.join(", ")),
        (all, count) => format!("{count} of {all} were taken before, at {}", shown.join(", ")),
    }
}

pub(super) fn answer(status: u16, is_handshake: bool) -> String {
    let more = if is_handshake { " with what it asks for" } else { "" };
    format!("the sender is answered {status}{more}")
}

pub(super) fn summary(trial: &Trial) -> String {
    let failed = trial.steps.iter().find(|step| step.outcome == TrialOutcome::Failed);
    let repeats =
        trial.steps.iter().any(|step| step.step == "dedup" && step.detail.contains("repeat"));
    let stored = trial
        .steps
        .iter()
        .any(|step| step.step == "commit" && step.outcome == TrialOutcome::Passed);
    match failed {
        Some(step) => format!(
            "The request is not taken: {}: {}. Its sender is answered {} and is not told why.",
            step.step, step.detail, trial.status
        ),
        None if repeats => format!(
            "The request is a repeat: its sender is answered {}, and nothing new happens.",
            trial.status
        ),
        None if stored => format!("The request was taken and answered {}.", trial.status),
        None if trial.status == 0 => {
            "The request would be taken; what it asks for is done only in earnest.".to_owned()
        }
        None => {
            format!("The request would be taken and answered {}. Nothing was stored.", trial.status)
        }
    }
}
