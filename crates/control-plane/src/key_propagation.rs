//! Whether every live node has the present state of a ring, and a short wait until it has.

use std::time::Duration;
use tokio::time::{Instant, sleep};
use turnbuckle_domain::{AppliedRevisions, Clock, EndpointId, Revision, StoreError};

/// Longest wait for nodes, before the caller is told which one is behind: nodes that follow have a
/// change within a second, and report it at once.
pub(crate) const WAIT: Duration = Duration::from_secs(2);
/// Reports to another control plane ring no bell here, so the store is looked at this often too.
const LOOK: Duration = Duration::from_millis(500);

/// A node that does not have the ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Behind {
    pub(crate) node: String,
    /// Why it refuses the ring; none when it has only not come to it.
    pub(crate) refuses: Option<String>,
}

/// Waits until every live delivery node works by this state of a ring; else says which one does not. A
/// node that refuses the ring is not waited for: it goes on with the state before until something changes.
pub(crate) async fn wait(
    applied: &dyn AppliedRevisions,
    clock: &dyn Clock,
    (owner, revision): (EndpointId, Revision),
) -> Result<Option<Behind>, StoreError> {
    // Two clocks: a wall clock that is set back makes nobody wait longer, and one that stands still
    // in a test ends nothing.
    let (begun, until) = (clock.now(), Instant::now() + WAIT);
    loop {
        // Counted before the look, so that a report which comes meanwhile wakes at once.
        let heard = applied.reports_heard();
        let behind = look(applied, clock, owner, revision).await?;
        let is_over = clock.now().since(begun) >= WAIT || Instant::now() >= until;
        match behind {
            Some(Behind { refuses: None, .. }) if !is_over => {}
            answer => return Ok(answer),
        }
        let left = until.saturating_duration_since(Instant::now());
        tokio::select! {
            () = applied.heard_more_than(heard) => {}
            () = sleep(LOOK.min(left)) => {}
        }
    }
}

/// A live node that refuses the ring, else one that has not come to it.
async fn look(
    applied: &dyn AppliedRevisions,
    clock: &dyn Clock,
    owner: EndpointId,
    revision: Revision,
) -> Result<Option<Behind>, StoreError> {
    let now = clock.now();
    let nodes = applied.applied_revisions().await?;
    let live = || nodes.iter().filter(|node| node.is_alive(now));
    let refusing = live().find_map(|node| {
        let refuses = Some(node.refuses_ring(owner)?);
        Some(Behind { node: node.node.clone(), refuses })
    });
    let lagging = || {
        let node = live().find(|node| node.revision < revision)?;
        Some(Behind { node: node.node.clone(), refuses: None })
    };
    Ok(refusing.or_else(lagging))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tokio::sync::watch;
    use turnbuckle_domain::{NodeApplied, RefusedResource, ResourceKind, Timestamp, node_limits};
    use turnbuckle_testkit::clock::ManualClock;
    use uuid::Uuid;

    const START: Timestamp = Timestamp::from_micros(1_000_000_000_000);
    const WANTED: Revision = Revision(7);

    fn owner() -> EndpointId {
        EndpointId::from_uuid(Uuid::from_u128(1))
    }

    fn node(revision: i64, refused: Vec<RefusedResource>) -> NodeApplied {
        NodeApplied { node: "web-1".to_owned(), revision: Revision(revision), at: START, refused }
    }

    fn refusal(kind: ResourceKind, uid: u128) -> RefusedResource {
        RefusedResource {
            kind: kind.to_string(),
            uid: kind.uid(Uuid::from_u128(uid)),
            revision: WANTED,
            reason: "algorithm cannot be used by this version".to_owned(),
        }
    }

    /// What nodes said, and how often it was read.
    struct Told {
        nodes: Mutex<Vec<NodeApplied>>,
        looks: Mutex<u32>,
        bell: watch::Sender<u64>,
    }

    impl Told {
        fn new(node: NodeApplied) -> Arc<Self> {
            let bell = watch::Sender::new(0);
            Arc::new(Self { nodes: Mutex::new(vec![node]), looks: Mutex::new(0), bell })
        }

        fn report(&self, node: NodeApplied) {
            *self.nodes.lock().unwrap() = vec![node];
            self.bell.send_modify(|count| *count += 1);
        }

        fn looks(&self) -> u32 {
            *self.looks.lock().unwrap()
        }
    }

    #[async_trait::async_trait]
    impl AppliedRevisions for Told {
        async fn applied_revisions(&self) -> Result<Vec<NodeApplied>, StoreError> {
            *self.looks.lock().unwrap() += 1;
            Ok(self.nodes.lock().unwrap().clone())
        }

        fn reports_heard(&self) -> u64 {
            *self.bell.borrow()
        }

        async fn heard_more_than(&self, count: u64) {
            drop(self.bell.subscribe().wait_for(|heard| *heard > count).await);
        }
    }

    async fn behind(told: &Told, clock: &ManualClock) -> Option<Behind> {
        wait(told, clock, (owner(), WANTED)).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_ends_the_wait_at_once() {
        let (told, clock) = (Told::new(node(6, Vec::new())), ManualClock::new(START));
        let begun = Instant::now();
        let reporting = Arc::clone(&told);
        tokio::spawn(async move {
            sleep(Duration::from_millis(20)).await;
            reporting.report(node(6, Vec::new()));
            sleep(Duration::from_millis(20)).await;
            reporting.report(node(7, Vec::new()));
        });
        assert_eq!(behind(&told, &clock).await, None);
        assert_eq!(begun.elapsed(), Duration::from_millis(40));
        assert_eq!(told.looks(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_stays_behind_is_named_after_two_seconds_and_few_looks() {
        let (told, clock) = (Told::new(node(6, Vec::new())), ManualClock::new(START));
        let begun = Instant::now();
        let named = behind(&told, &clock).await.unwrap();
        assert_eq!((named.node.as_str(), named.refuses), ("web-1", None));
        assert_eq!(begun.elapsed(), WAIT);
        assert_eq!(told.looks(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_ends_with_the_clock_and_a_clock_that_is_set_back_does_not_lengthen_it() {
        let (told, clock) = (Told::new(node(6, Vec::new())), ManualClock::shared(START));
        let begun = Instant::now();
        let (reporting, moved) = (Arc::clone(&told), Arc::clone(&clock));
        tokio::spawn(async move {
            sleep(Duration::from_millis(10)).await;
            moved.advance(WAIT);
            reporting.report(node(6, Vec::new()));
        });
        assert!(behind(&told, &clock).await.is_some());
        assert_eq!(begun.elapsed(), Duration::from_millis(10));
        let begun = Instant::now();
        let moved = Arc::clone(&clock);
        tokio::spawn(async move {
            sleep(Duration::from_millis(10)).await;
            moved.step_back(Duration::from_secs(3600));
        });
        assert!(behind(&told, &clock).await.is_some());
        assert_eq!(begun.elapsed(), WAIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_refuses_the_ring_does_not_have_it_and_is_not_waited_for() {
        let clock = ManualClock::new(START);
        let begun = Instant::now();
        let told = Told::new(node(9, vec![refusal(ResourceKind::KeyRing, 1)]));
        let named = behind(&told, &clock).await.unwrap();
        assert_eq!(named.refuses.as_deref(), Some("algorithm cannot be used by this version"));
        // Another ring, or the endpoint of the same id, is no matter.
        for other in [refusal(ResourceKind::KeyRing, 2), refusal(ResourceKind::Endpoint, 1)] {
            assert_eq!(behind(&Told::new(node(9, vec![other])), &clock).await, None);
        }
        // A report that is full may have left it out.
        let many = (2..).take(node_limits::REFUSED_MAX);
        let full = many.map(|uid| refusal(ResourceKind::Endpoint, uid)).collect();
        let named = behind(&Told::new(node(9, full)), &clock).await.unwrap();
        assert!(named.refuses.unwrap().contains("more than a report holds"));
        // Nobody waits for a node that is gone.
        clock.advance(Duration::from_secs(600));
        assert_eq!(behind(&told, &clock).await, None);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
