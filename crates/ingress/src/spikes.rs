//! Many requests to one source that are not believed: a sender with the wrong key, or somebody who tries.
//! Told to the tenant as an operational event.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use turnbuckle_domain::{OperationKind, OperationalEvent, Source, SourceId, Timestamp};

/// Failures that are a spike, when they come within the time below: far above what a scanner that finds
/// a path by chance, or one retried request of a mistaken sender, makes.
const FAILURES: u32 = 20;
/// Time in which they count.
const WITHIN: Duration = Duration::from_secs(60);

/// Failures of one source, since when.
#[derive(Clone, Copy)]
struct Count {
    since: Timestamp,
    failures: u32,
}

/// Failures of every source: at most one count for each.
#[derive(Default)]
pub(crate) struct Spikes(Mutex<HashMap<SourceId, Count>>);

impl Spikes {
    /// Notes a failure; the event to be told when it makes a spike.
    pub(crate) fn note(
        &self,
        source: &Source,
        kind: &'static str,
        now: Timestamp,
    ) -> Option<OperationalEvent> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Count { since: now, failures: 0 };
        let count = counts.entry(source.id).or_insert(fresh);
        if now.since(count.since) >= WITHIN || now < count.since {
            *count = fresh;
        }
        count.failures = count.failures.saturating_add(1);
        if count.failures != FAILURES {
            return None;
        }
        drop(counts);
        Some(OperationalEvent {
            tenant: source.tenant,
            kind: OperationKind::VerificationFailures,
            subject: format!("sources/{}", source.slug),
            data: serde_json::json!({
                "source": source.slug.as_str(),
                "failures": FAILURES,
                "within_seconds": WITHIN.as_secs(),
                "last_reason": kind,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::tests::source;
    use turnbuckle_domain::SourceSettings;

    #[test]
    fn many_failures_within_a_minute_are_told_once() {
        let (spikes, source) = (Spikes::default(), source(SourceSettings::default()));
        let start = Timestamp::from_micros(1_800_000_000_000_000);
        let note = |at: Timestamp| spikes.note(&source, "mismatch", at).is_some();
        let told = (0..100).filter(|_| note(start)).count();
        assert_eq!(told, 1);
        let told = (0..100).filter(|_| note(start + WITHIN)).count();
        assert_eq!(told, 1);
    }

    #[test]
    fn a_few_now_and_then_are_no_spike() {
        let (spikes, source) = (Spikes::default(), source(SourceSettings::default()));
        let start = Timestamp::from_micros(1_800_000_000_000_000);
        for minute in 0..20 {
            for _ in 1..FAILURES {
                assert!(spikes.note(&source, "mismatch", start + WITHIN * minute).is_none());
            }
        }
    }
}
