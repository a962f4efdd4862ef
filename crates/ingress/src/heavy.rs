//! Long work on the processor: not more at once than there are processors, and never in the way of the
//! tasks that wait for the network.

use std::thread::available_parallelism;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
    task::block_in_place,
};

/// Bodies up to this size are hashed where they arrive, which takes less than a tenth of a millisecond
/// for each key. Of larger ones a stranger can have a second's worth at once.
const INLINE_BYTES: usize = 64 * 1024;

/// Bounds what is worked on.
pub(crate) struct Heavy(Semaphore);

impl Default for Heavy {
    fn default() -> Self {
        // One processor stays with everybody else, where there are several.
        let all = available_parallelism().map_or(1, usize::from);
        Self(Semaphore::new(all.saturating_sub(1).max(1)))
    }
}

impl Heavy {
    /// Does what takes as long as so many bytes.
    pub(crate) async fn run<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        if bytes <= INLINE_BYTES {
            return work();
        }
        let turn = self.0.acquire().await;
        let done = match Handle::current().runtime_flavor() {
            RuntimeFlavor::MultiThread => block_in_place(work),
            _ => work(),
        };
        drop(turn);
        done
    }
}
