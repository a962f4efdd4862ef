//! Large batches on their way to the store: cut into parts, one part at a time.
//!
//! Each event of an ingress stands for itself, so a batch needs no transaction of its own. One of
//! thousands of rows would keep a committer busy for seconds, and everybody else's events with it.

use super::{CommitQueue, commit::GROUP_ROWS};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use turnbuckle_domain::{Append, AppendResult, Error, Reserved};

/// Parts of large batches that wait for a commit at once: one committer is left to everybody else.
const PARTS_AT_ONCE: usize = 1;

/// The way of an ingress to the commits.
#[derive(Clone)]
pub(super) struct Parts {
    turn: Arc<Semaphore>,
    /// Each holds the commit queue open, so the committers wait for them when the process stops.
    under_way: TaskTracker,
}

impl Parts {
    pub(super) fn new() -> Self {
        Self { turn: Arc::new(Semaphore::new(PARTS_AT_ONCE)), under_way: TaskTracker::new() }
    }

    /// Commits events, in parts of at most [`GROUP_ROWS`] rows. What was begun goes on when the caller
    /// stops waiting, with the room set aside for it: the sender's repeat finds it done.
    pub(super) async fn commit(
        &self,
        queue: CommitQueue,
        appends: Vec<Append>,
        room: Reserved,
    ) -> Result<Vec<AppendResult>, Error> {
        let parts = self.clone();
        let committing = self.under_way.spawn(async move {
            let committed = parts.each(&queue, appends).await;
            drop(room);
            committed
        });
        committing.await.map_err(Error::internal)?
    }

    async fn each(
        &self,
        queue: &CommitQueue,
        appends: Vec<Append>,
    ) -> Result<Vec<AppendResult>, Error> {
        let mut parts = cut(appends, |append| 1 + append.deliveries.len());
        if parts.len() <= 1 {
            return queue.commit(parts.pop().unwrap_or_default()).await;
        }
        let mut results = Vec::new();
        for part in parts {
            // In turn with the parts of other batches; the semaphore is never closed.
            let _turn = self.turn.acquire().await.map_err(Error::internal)?;
            results.extend(queue.commit(part).await?);
        }
        Ok(results)
    }
}

/// Cuts a list, in its order, into parts of at most [`GROUP_ROWS`] rows: one that has more by itself is
/// one part.
fn cut<T>(list: Vec<T>, rows_of: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let mut parts: Vec<Vec<T>> = Vec::new();
    let mut rows = 0;
    for one in list {
        let own = rows_of(&one);
        match parts.last_mut().filter(|_| rows + own <= GROUP_ROWS) {
            Some(part) => {
                rows += own;
                part.push(one);
            }
            None => {
                rows = own;
                parts.push(vec![one]);
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_bounded_in_order_and_whole() {
        let sizes = |list: &[usize]| {
            let parts = cut(list.to_vec(), |rows| *rows);
            assert_eq!(parts.concat(), list);
            parts.iter().map(|part| part.iter().sum()).collect::<Vec<usize>>()
        };
        assert_eq!(sizes(&[]), Vec::<usize>::new());
        assert_eq!(sizes(&[1, 2]), [3]);
        assert_eq!(sizes(&[GROUP_ROWS - 1, 1, 1]), [GROUP_ROWS, 1]);
        // More endpoints than rows: an event is not cut.
        assert_eq!(sizes(&[1, 5 * GROUP_ROWS, 1]), [1, 5 * GROUP_ROWS, 1]);
        assert_eq!(sizes(&vec![1; 10_000]), [GROUP_ROWS; 10]);
    }
}
