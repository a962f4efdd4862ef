//! Publishers that keep a server busy and a ledger of what it promised.

use crate::Scene;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use tokio::{sync::watch, task::JoinSet};
use turnbuckle_testkit::ledger::Ledger;

/// Publishers at work. Each stops when it is told to, when the limit is reached, or when the server
/// does not acknowledge.
#[derive(Debug)]
pub struct Load {
    ledger: Arc<Ledger>,
    level: watch::Receiver<usize>,
    stop: Arc<AtomicBool>,
    publishers: JoinSet<()>,
}

impl Load {
    /// Starts this many publishers; together they publish at most `limit` events, whose ids begin
    /// with `prefix`.
    #[must_use]
    pub fn start(
        scene: &Scene,
        ledger: &Arc<Ledger>,
        prefix: &str,
        workers: usize,
        limit: usize,
    ) -> Self {
        let (counter, level) = watch::channel(0);
        let shared = Arc::new((counter, AtomicUsize::new(0)));
        let stop = Arc::new(AtomicBool::new(false));
        let mut publishers = JoinSet::new();
        for _ in 0..workers {
            let (scene, ledger, prefix) = (scene.clone(), Arc::clone(ledger), prefix.to_owned());
            let (shared, stop) = (Arc::clone(&shared), Arc::clone(&stop));
            publishers.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let number = shared.1.fetch_add(1, Ordering::Relaxed);
                    if number >= limit {
                        return;
                    }
                    let id = format!("{prefix}-{number}");
                    let body = format!("{{\"number\": {number}}}");
                    ledger.tries(&id, body.clone().into());
                    if scene.publish(&id, body).await.is_err() {
                        return;
                    }
                    ledger.acknowledged(&id);
                    shared.0.send_modify(|count| *count += 1);
                }
            });
        }
        Self { ledger: Arc::clone(ledger), level, stop, publishers }
    }

    /// What was promised.
    #[must_use]
    pub const fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Waits until this many events are acknowledged.
    ///
    /// # Errors
    /// When the publishers have all stopped before.
    pub async fn acknowledged(&mut self, count: usize) -> anyhow::Result<()> {
        let reached = self.level.wait_for(|now| *now >= count);
        match tokio::time::timeout(crate::PATIENCE, reached).await {
            Ok(Ok(_)) => Ok(()),
            _ => anyhow::bail!("{count} events were not acknowledged"),
        }
    }

    /// Tells the publishers to stop and waits for them.
    pub async fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.finish().await;
    }

    /// Waits until the publishers have stopped by themselves.
    pub async fn finish(&mut self) {
        while self.publishers.join_next().await.is_some() {}
    }
}
