use super::*;
use crate::auth::tests::{Fixed, at};
use async_trait::async_trait;
use turnbuckle_domain::SeededRandom;

/// A clock that tests move.
#[derive(Default)]
struct Moved(Mutex<Timestamp>);

impl Moved {
    fn to(&self, seconds: i64) {
        *self.0.lock().unwrap() = at(seconds);
    }
}

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// Keeps what it is told, unless it is told to fail.
#[derive(Default)]
struct Kept {
    entries: Mutex<Vec<Denial>>,
    failure: Mutex<Option<Error>>,
}

#[async_trait]
impl DenialLog for Kept {
    async fn record_denials(&self, denials: &[Denial]) -> Result<(), Error> {
        if let Some(error) = self.failure.lock().unwrap().take() {
            return Err(error);
        }
        self.entries.lock().unwrap().extend_from_slice(denials);
        Ok(())
    }
}

impl Kept {
    fn taken(&self) -> Vec<(String, u64)> {
        let entries = std::mem::take(&mut *self.entries.lock().unwrap());
        entries.into_iter().map(|entry| (entry.method, entry.count)).collect()
    }
}

fn denials() -> (Arc<Moved>, Denials) {
    let clock = Arc::new(Moved::default());
    clock.to(1_000);
    let ids = IdGenerator::new(Arc::new(Fixed(at(1))), Arc::new(SeededRandom::from_number(1)));
    (Arc::clone(&clock), Denials::new(clock, ids))
}

fn caller(subject: &str, tenant: Option<&str>) -> Caller {
    let tenant = tenant.map(|tenant| ResourceId::new(tenant).unwrap());
    Caller { issuer: String::new(), subject: subject.to_owned(), role: Role::Viewer, tenant }
}

fn one(method: &str, count: u64) -> (String, u64) {
    (method.to_owned(), count)
}

#[tokio::test]
async fn the_first_is_told_at_once_and_what_follows_once_a_minute() {
    let (clock, denials) = denials();
    let (log, alice) = (Kept::default(), caller("alice", None));
    for _ in 0..3 {
        denials.note(&alice, "S/M", DenialReason::Role);
    }
    denials.write(&log, false).await;
    assert_eq!(log.taken(), [one("S/M", 3)]);
    for second in 1..50 {
        clock.to(1_000 + second);
        denials.note(&alice, "S/M", DenialReason::Role);
        denials.write(&log, false).await;
    }
    assert_eq!(log.taken(), []);
    clock.to(1_060);
    denials.write(&log, false).await;
    let folded = log.entries.lock().unwrap().remove(0);
    assert_eq!((folded.count, folded.first_at, folded.last_at), (49, at(1_001), at(1_049)));
    // Quiet for a minute: forgotten, and told at once when it begins again.
    clock.to(1_120);
    denials.write(&log, false).await;
    assert!(denials.folds().by_kind.is_empty() && denials.folds().per_trail.is_empty());
    denials.note(&alice, "S/M", DenialReason::Role);
    denials.write(&log, false).await;
    assert_eq!(log.taken(), [one("S/M", 1)]);
}

#[tokio::test]
async fn callers_methods_and_reasons_are_told_apart() {
    let (_, denials) = denials();
    let log = Kept::default();
    for tenant in [None, Some("shop"), Some("acme")] {
        for method in ["S/M", "S/N"] {
            for reason in [DenialReason::Role, DenialReason::Reach] {
                denials.note(&caller("alice", tenant), method, reason);
            }
        }
    }
    denials.note(&caller("bob", None), "S/M", DenialReason::Role);
    denials.write(&log, false).await;
    assert_eq!(log.taken().len(), 3 * 2 * 2 + 1);
}

#[tokio::test]
async fn what_is_left_at_the_end_is_written() {
    let (_, denials) = denials();
    let log = Kept::default();
    denials.note(&caller("alice", None), "S/M", DenialReason::Role);
    denials.write(&log, false).await;
    denials.note(&caller("alice", None), "S/M", DenialReason::Role);
    denials.write(&log, true).await;
    assert_eq!(log.taken(), [one("S/M", 1), one("S/M", 1)]);
}

#[tokio::test]
async fn a_store_that_does_not_answer_gets_them_later_and_one_that_refuses_does_not() {
    let (_, denials) = denials();
    let log = Kept::default();
    let alice = caller("alice", None);
    denials.note(&alice, "S/M", DenialReason::Role);
    let unavailable = Error::Unavailable { retry_after: Duration::ZERO, cause: None };
    *log.failure.lock().unwrap() = Some(unavailable);
    denials.write(&log, false).await;
    denials.note(&alice, "S/M", DenialReason::Role);
    denials.write(&log, false).await;
    assert_eq!(log.taken(), [one("S/M", 2)]);
    denials.note(&caller("bob", None), "S/M", DenialReason::Role);
    *log.failure.lock().unwrap() = Some(Error::internal("refused"));
    denials.write(&log, false).await;
    denials.write(&log, true).await;
    assert_eq!(log.taken(), []);
}

#[tokio::test]
async fn nobody_fills_the_memory_or_keeps_others_out() {
    let (_, denials) = denials();
    let log = Kept::default();
    for number in 0..2 * KINDS {
        denials.note(&caller(&format!("s{number}"), Some("loud")), "S/M", DenialReason::Role);
    }
    denials.note(&caller("quiet", Some("shop")), "S/M", DenialReason::Role);
    denials.write(&log, false).await;
    assert_eq!(log.taken().len(), KINDS_PER_TRAIL + 1);
    for number in 0..2 * KINDS {
        let tenant = format!("t{number}");
        denials.note(&caller("s", Some(&tenant)), "S/M", DenialReason::Role);
    }
    assert_eq!(denials.folds().by_kind.len(), KINDS);
}
