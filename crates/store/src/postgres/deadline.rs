//! An end to every wait for the database, on our side of the wire.
//!
//! The server's own statement timeout ends what it works on. It says nothing when the server, or the
//! way to it, stands still: without this, a loop would hang until the operating system gives up on
//! the connection, a quarter of an hour later, although a fresh connection may work at once.

use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    Append, AppendResult, Claimed, ConfigDelta, ConfigSource, ConfigStore, DeliveryQueue,
    EndpointId, EventLog, Heartbeat, LaneClaim, LeaseExtension, Leased, PendingLane, PullClaim,
    PullQueue, PullSettlement, Revision, Settled, Settlement, Shard, ShardLease, SourcePosition,
    StoreError, Timestamp, WakeHint, WorkerId,
};

/// Longest wait for an answer. A publish may wait for the group before its own and still be answered
/// within its call. A statement given up on may have worked: every one of them can be repeated.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A port whose every answer comes in time, or is an error that passes.
pub(crate) struct Deadline<T>(pub(crate) T);

#[derive(Debug, thiserror::Error)]
#[error("the database did not answer within {} s", ANSWER_TIMEOUT.as_secs())]
struct NoAnswer;

async fn in_time<T>(
    work: impl Future<Output = Result<T, StoreError>> + Send,
) -> Result<T, StoreError> {
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, work).await;
    answer.unwrap_or_else(|_| Err(StoreError::Unavailable(NoAnswer.into())))
}

#[async_trait]
impl<T: EventLog> EventLog for Deadline<T> {
    async fn append(&self, batch: &[Append]) -> Result<Vec<AppendResult>, StoreError> {
        in_time(self.0.append(batch)).await
    }

    async fn prune_dedup(
        &self,
        now: Timestamp,
        oldest_anomaly: Timestamp,
    ) -> Result<u64, StoreError> {
        in_time(self.0.prune_dedup(now, oldest_anomaly)).await
    }
}

#[async_trait]
impl<T: DeliveryQueue> DeliveryQueue for Deadline<T> {
    async fn heartbeat(&self, worker: WorkerId, ttl: Duration) -> Result<Heartbeat, StoreError> {
        in_time(self.0.heartbeat(worker, ttl)).await
    }

    async fn acquire(
        &self,
        worker: WorkerId,
        count: usize,
        ttl: Duration,
    ) -> Result<Vec<ShardLease>, StoreError> {
        in_time(self.0.acquire(worker, count, ttl)).await
    }

    async fn release(&self, worker: WorkerId, shards: Option<&[Shard]>) -> Result<(), StoreError> {
        in_time(self.0.release(worker, shards)).await
    }

    async fn pending(&self, shards: &[Shard]) -> Result<Vec<PendingLane>, StoreError> {
        in_time(self.0.pending(shards)).await
    }

    async fn claim(&self, lanes: &[LaneClaim], now: Timestamp) -> Result<Vec<Claimed>, StoreError> {
        in_time(self.0.claim(lanes, now)).await
    }

    async fn hint(&self, endpoints: &[EndpointId]) -> Result<(), StoreError> {
        in_time(self.0.hint(endpoints)).await
    }

    /// Silence is no fault here: hints may be rare.
    async fn listen(&self, to: Arc<dyn WakeHint>) -> Result<(), StoreError> {
        self.0.listen(to).await
    }

    async fn settle(
        &self,
        worker: WorkerId,
        batch: &[Settlement],
    ) -> Result<Vec<Settled>, StoreError> {
        in_time(self.0.settle(worker, batch)).await
    }
}

#[async_trait]
impl<T: PullQueue> PullQueue for Deadline<T> {
    async fn claim(&self, claim: &PullClaim) -> Result<Vec<Leased>, StoreError> {
        in_time(self.0.claim(claim)).await
    }

    async fn settle(&self, batch: &[PullSettlement]) -> Result<Vec<Settled>, StoreError> {
        in_time(self.0.settle(batch)).await
    }

    async fn extend(&self, batch: &[LeaseExtension]) -> Result<Vec<Settled>, StoreError> {
        in_time(self.0.extend(batch)).await
    }
}

#[async_trait]
impl ConfigSource for Deadline<Arc<dyn ConfigStore>> {
    async fn revision(&self) -> Result<Revision, StoreError> {
        in_time(self.0.revision()).await
    }

    async fn changes_since(&self, known: Revision) -> Result<ConfigDelta, StoreError> {
        in_time(self.0.changes_since(known)).await
    }

    async fn position(&self) -> Result<SourcePosition, StoreError> {
        in_time(self.0.position()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Frozen;

    #[async_trait]
    impl EventLog for Frozen {
        async fn append(&self, _: &[Append]) -> Result<Vec<AppendResult>, StoreError> {
            std::future::pending().await
        }

        async fn prune_dedup(&self, _: Timestamp, _: Timestamp) -> Result<u64, StoreError> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_database_that_says_nothing_is_unavailable_in_the_end() {
        let error = Deadline(Frozen).append(&[]).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    }
}
