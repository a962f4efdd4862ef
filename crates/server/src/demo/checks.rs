//! The promises, each checked against both ends.

use super::{
    history::Told,
    ledger::{FLAKY, HEALTHY, Ledger, Seen},
    receiver::RETRY_AFTER_SECONDS,
    setup::{FIRST_DELAY, MAX_DELAY, NEW_KEY, OLD_KEY},
};
use serde_json::value::RawValue;
use std::time::Duration;
use turnbuckle_proto::v1::{Attempt, DeliveryState};

/// How much earlier a retry may come than its delay: the two ends read the clock at different
/// moments, and timers tick in milliseconds.
const EARLY: Duration = Duration::from_millis(20);
/// How much later a retry may come on a busy machine.
const LATE: Duration = Duration::from_secs(2);
/// Faults named in one line; the count says how many there are.
const FAULTS_SHOWN: usize = 3;

/// One promise and what speaks against it.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) name: &'static str,
    faults: Vec<String>,
}

impl Check {
    pub(super) const fn passed(&self) -> bool {
        self.faults.is_empty()
    }

    /// The first faults in one line.
    pub(super) fn detail(&self) -> String {
        let mut shown: Vec<String> = self.faults.iter().take(FAULTS_SHOWN).cloned().collect();
        if let Some(more) = self.faults.len().checked_sub(FAULTS_SHOWN).filter(|more| *more > 0) {
            shown.push(format!("and {more} more"));
        }
        shown.join("; ")
    }
}

/// All checks, in the order of the story.
pub(super) fn all(ledger: &Ledger, history: &[Told]) -> Vec<Check> {
    let check = |name, faults| Check { name, faults };
    vec![
        check("every event took effect exactly once at each endpoint", one_effect(ledger)),
        check("data arrived byte for byte as published", same_bytes(ledger)),
        check("every attempt carried the same id and body", same_request(ledger)),
        check("the repeated event was flagged and not sent again", repeated(ledger)),
        check("failures were answered with numbered retries", numbered(ledger)),
        check("retries waited as the policy and Retry-After say", delays(ledger, history)),
        check("both keys signed during the overlap, the old one before", signatures(ledger)),
        check("ListDeliveries says delivered for each", deliveries(ledger, history)),
        check("ListAttempts agrees with what the receivers saw", attempts(ledger, history)),
    ]
}

fn one_effect(ledger: &Ledger) -> Vec<String> {
    let lanes = ledger.lanes();
    let mut faults = Vec::new();
    for (event, endpoint) in ledger.expected() {
        let id = event.planned.event_id.as_str();
        let effects = lanes
            .get(&(id, endpoint))
            .map_or(0, |seen| seen.iter().filter(|seen| seen.status == 200).count());
        if effects != 1 {
            faults.push(format!("{id} took effect {effects} times at {endpoint}"));
        }
    }
    for (id, endpoint) in lanes.keys() {
        if !ledger.expected().any(|(event, to)| event.planned.event_id == *id && to == *endpoint) {
            faults.push(format!("{endpoint} got {id:?}, which it does not want"));
        }
    }
    faults
}

fn same_bytes(ledger: &Ledger) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Envelope<'b> {
        event_type: &'b str,
        #[serde(borrow)]
        data: &'b RawValue,
    }
    let mut faults = Vec::new();
    for seen in &ledger.seen {
        let Some(event) =
            ledger.published.iter().find(|event| event.planned.event_id == seen.event_id)
        else {
            continue;
        };
        match serde_json::from_slice::<Envelope<'_>>(&seen.body) {
            Ok(envelope)
                if envelope.data.get().as_bytes() == event.planned.data
                    && envelope.event_type == event.planned.event_type => {}
            Ok(_) => faults
                .push(format!("{} has other data or type at {}", seen.event_id, seen.endpoint)),
            Err(error) => faults.push(format!("{} is no envelope: {error}", seen.event_id)),
        }
    }
    faults
}

fn same_request(ledger: &Ledger) -> Vec<String> {
    let mut faults = Vec::new();
    for ((id, endpoint), seen) in ledger.lanes() {
        let same = |pair: &[&Seen]| {
            pair[0].body == pair[1].body && pair[0].webhook_id == pair[1].webhook_id
        };
        if !seen.windows(2).all(same) || seen.iter().any(|seen| seen.webhook_id.is_empty()) {
            faults.push(format!("{id} at {endpoint}"));
        }
    }
    faults
}

fn repeated(ledger: &Ledger) -> Vec<String> {
    let Some((id, answer)) = &ledger.repeated else {
        return vec!["nothing was repeated".to_owned()];
    };
    let first = ledger.published.iter().find(|event| event.planned.event_id == *id);
    let mut faults = Vec::new();
    if !answer.duplicate {
        faults.push(format!("{id} was not flagged as duplicate"));
    }
    if answer.deliveries != 0 {
        faults.push(format!("{id} made {} deliveries again", answer.deliveries));
    }
    if first.is_none_or(|first| first.answer.name != answer.name || first.answer.duplicate) {
        faults.push(format!("{id} got another answer than the first time"));
    }
    faults
}

fn numbered(ledger: &Ledger) -> Vec<String> {
    let mut faults = Vec::new();
    for ((id, endpoint), seen) in ledger.lanes() {
        let found: Vec<(i32, i32)> = seen.iter().map(|seen| (seen.number, seen.status)).collect();
        let expected: &[(i32, i32)] =
            if endpoint == FLAKY { &[(1, 503), (2, 503), (3, 429), (4, 200)] } else { &[(1, 200)] };
        if found != expected {
            faults.push(format!("{id} at {endpoint}: (attempt, status) {found:?}"));
        }
    }
    faults
}

/// Each wait must lie in what the policy allows, and the next attempt must come after it.
fn delays(ledger: &Ledger, history: &[Told]) -> Vec<String> {
    let lanes = ledger.lanes();
    let mut faults = Vec::new();
    for told in history.iter().filter(|told| told.endpoint() == FLAKY) {
        let id = told.delivery.event_id.as_str();
        let Some(seen) = lanes.get(&(id, FLAKY)) else {
            continue;
        };
        for pair in seen.windows(2) {
            let attempt = told.attempts.iter().find(|attempt| attempt.number == pair[0].number);
            let waited = pair[1].arrived.saturating_duration_since(pair[0].answered);
            let fault = match attempt {
                Some(attempt) => delay_fault(attempt, waited),
                None => Some("is not in ListAttempts".to_owned()),
            };
            if let Some(fault) = fault {
                faults.push(format!("{id} attempt {}: {fault}", pair[0].number));
            }
        }
    }
    faults
}

fn delay_fault(attempt: &Attempt, waited: Duration) -> Option<String> {
    let delay = attempt.retry_delay.and_then(|delay| Duration::try_from(delay).ok())?;
    let doublings = u32::try_from(attempt.number.clamp(1, 16) - 1).unwrap_or(0);
    let own = FIRST_DELAY.saturating_mul(1 << doublings).min(MAX_DELAY);
    let asked = match attempt.http_status {
        429 => Duration::from_secs(RETRY_AFTER_SECONDS.into()),
        _ => Duration::ZERO,
    };
    // The receiver can only slow a retry down: the longer one of both waits counts.
    let (least, most) = ((own / 2).max(asked), own.max(asked));
    if delay < least || delay > most {
        return Some(format!("delay {delay:?} is not within {least:?} and {most:?}"));
    }
    if attempt.retry_after_honoured && delay != asked {
        return Some("its wait does not follow Retry-After, as recorded".to_owned());
    }
    if waited + EARLY < delay || waited > delay + LATE {
        return Some(format!("waited {waited:?} instead of {delay:?}"));
    }
    None
}

fn signatures(ledger: &Ledger) -> Vec<String> {
    let mut faults = Vec::new();
    for seen in &ledger.seen {
        if seen.signatures.len() != seen.verified_by.len() || seen.verified_by.is_empty() {
            faults.push(format!(
                "{} at {}: {} of {} signatures verify",
                seen.event_id,
                seen.endpoint,
                seen.verified_by.len(),
                seen.signatures.len()
            ));
        }
    }
    let healthy: Vec<&Seen> = ledger.seen.iter().filter(|seen| seen.endpoint == HEALTHY).collect();
    let both = |seen: &Seen| seen.verified_by == [OLD_KEY, NEW_KEY];
    let rotated = healthy.iter().position(|seen| both(seen)).unwrap_or(healthy.len());
    if rotated == healthy.len() {
        faults.push("no attempt carried both signatures".to_owned());
    }
    if healthy.iter().take(rotated).any(|seen| seen.verified_by != [OLD_KEY]) {
        faults
            .push("an attempt before the rotation was not signed by the old key alone".to_owned());
    }
    if healthy.iter().skip(rotated).any(|seen| !both(seen)) {
        faults.push("an attempt after the rotation lacks one signature".to_owned());
    }
    faults
}

fn deliveries(ledger: &Ledger, history: &[Told]) -> Vec<String> {
    let mut faults = Vec::new();
    for (event, endpoint) in ledger.expected() {
        let id = &event.planned.event_id;
        let states: Vec<DeliveryState> = history
            .iter()
            .filter(|told| told.delivery.event_id == *id && told.endpoint() == endpoint)
            .map(|told| told.delivery.state())
            .collect();
        if states != [DeliveryState::Delivered] {
            faults.push(format!("{id} at {endpoint}: {states:?}"));
        }
    }
    let expected = ledger.expected().count();
    if history.len() != expected {
        faults.push(format!("{} deliveries instead of {expected}", history.len()));
    }
    faults
}

fn attempts(ledger: &Ledger, history: &[Told]) -> Vec<String> {
    let lanes = ledger.lanes();
    let mut faults = Vec::new();
    for told in history {
        let id = told.delivery.event_id.as_str();
        let seen: Vec<(i32, i32)> = lanes
            .iter()
            .filter(|((event, endpoint), _)| *event == id && *endpoint == told.endpoint())
            .flat_map(|(_, seen)| seen.iter().map(|seen| (seen.number, seen.status)))
            .collect();
        let recorded: Vec<(i32, i32)> =
            told.attempts.iter().map(|attempt| (attempt.number, attempt.http_status)).collect();
        let count = usize::try_from(told.delivery.attempts).unwrap_or(0);
        if seen != recorded || count != recorded.len() {
            faults.push(format!("{id} at {}: {recorded:?}, seen {seen:?}", told.endpoint()));
        }
    }
    faults
}

#[cfg(test)]
mod tests;
