//! The domain's port of configuration, fed by the stream.

use crate::{
    LastKnownGood, Usable,
    file::Content,
    link, metrics,
    replica::Replica,
    state::{Effect, Fault, State},
};
use async_trait::async_trait;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;
use turnbuckle_client::Client;
use turnbuckle_domain::{
    Clock, ConfigDelta, ConfigPosition, ConfigSource, Epoch, HeldSnapshot, NodeId, Random,
    RefusedResource, Revision, SourcePosition, StoreError, Timestamp,
};
use turnbuckle_proto::v1::{GetRevisionRequest, watch_response::Message};
use turnbuckle_runtime::admin::Readiness;
use uuid::Uuid;

/// Longest wait for the proof that nothing newer is committed. Without it the node goes on with what
/// it has, so that this only bounds how late something deleted is noticed.
const PROOF_WAIT: Duration = Duration::from_secs(2);
/// Writes of the file are at least this far apart: a busy configuration must not keep a disk busy.
const FILE_EVERY: Duration = Duration::from_secs(5);
/// Without a change the file is written again this often, so that it tells how old it is.
const FILE_REFRESH: Duration = Duration::from_secs(600);
/// How often the age of the configuration is told.
const GAUGE_EVERY: Duration = Duration::from_secs(1);

/// Nothing is known yet: there was no file, and no control plane has answered.
#[derive(Debug, thiserror::Error)]
#[error("no configuration yet: there is no last-known-good file and no control plane has answered")]
struct NothingYet;

/// What a stream needs.
pub struct StreamParts {
    /// Reaches the control plane.
    pub client: Client,
    /// Who asks.
    pub node: NodeId,
    /// Where the last good state is kept.
    pub file: LastKnownGood,
    /// Decides which resources can be used here.
    pub usable: Usable,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Spreads reconnects.
    pub random: Arc<dyn Random>,
}

/// Configuration as the control plane streams it. Clones share everything.
#[derive(Clone)]
pub struct StreamSource(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) node: NodeId,
    pub(crate) random: Arc<dyn Random>,
    clock: Arc<dyn Clock>,
    file: LastKnownGood,
    state: Mutex<State>,
    is_connected: AtomicBool,
    /// Wakes the plane that follows.
    changed: Notify,
    /// Wakes the writer of the file.
    dirty: Notify,
    level: watch::Sender<Level>,
}

/// How far a node is, for those who wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    at: Option<ConfigPosition>,
    readiness: Readiness,
}

/// What a node says of its configuration besides its revision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) refused: Vec<RefusedResource>,
    pub(crate) held: Option<HeldSnapshot>,
    pub(crate) staleness: Duration,
}

impl StreamSource {
    /// Begins with the file, if there is a good one.
    #[must_use]
    pub fn open(parts: StreamParts) -> Self {
        metrics::describe();
        let StreamParts { client, node, file, usable, clock, random } = parts;
        let restored = file.load(&usable);
        if let Some((replica, proven_at)) = &restored {
            let age = proven_at.map_or(Duration::ZERO, |at| clock.now().since(at));
            tracing::info!(
                config.revision = replica.at().revision.0,
                age_seconds = age.as_secs(),
                "begins with the last-known-good configuration"
            );
        }
        let state = match restored {
            Some((replica, proven_at)) => State::restore(replica, proven_at),
            None => State::new(usable),
        };
        let level = watch::Sender::new(level_of(&state));
        Self(Arc::new(Shared {
            client,
            node,
            random,
            clock,
            file,
            state: Mutex::new(state),
            is_connected: AtomicBool::new(false),
            changed: Notify::new(),
            dirty: Notify::new(),
            level,
        }))
    }

    /// Follows the control plane until cancelled, and keeps the file.
    pub async fn run(self, stop: CancellationToken) {
        let following = async {
            tokio::join!(link::run(&self.0), self.0.keep_file(), self.0.keep_gauges());
        };
        stop.run_until_cancelled(following).await;
        self.0.save().await;
    }

    /// Waits until there is any configuration.
    pub async fn loaded(&self) {
        let mut level = self.0.level.subscribe();
        if level.wait_for(|level| level.at.is_some()).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether there is any configuration to work by.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.0.level.borrow().readiness
    }

    /// The state that can be handed out.
    #[must_use]
    pub fn at(&self) -> Option<ConfigPosition> {
        self.0.level.borrow().at
    }

    /// The node that this is.
    #[must_use]
    pub fn node(&self) -> &NodeId {
        &self.0.node
    }

    /// Waits until there is another state than this one.
    pub async fn moved_from(&self, known: Option<ConfigPosition>) {
        let mut level = self.0.level.subscribe();
        if level.wait_for(|level| level.at != known).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// How long ago it was last proved that nothing newer is committed.
    #[must_use]
    pub fn staleness(&self) -> Duration {
        self.0.age(self.0.state().proven_at())
    }

    /// Whether the control plane is heard.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.0.is_connected.load(Ordering::SeqCst)
    }

    pub(crate) fn condition(&self) -> Condition {
        let state = self.0.state();
        Condition {
            refused: state.refused(),
            held: state.held(),
            staleness: self.0.age(state.proven_at()),
        }
    }

    /// An operator lets this snapshot through.
    pub(crate) fn accept(&self, snapshot: ConfigPosition) {
        let effect = self.0.state().accept(snapshot);
        if effect == Effect::Changed {
            tracing::warn!(
                config.revision = snapshot.revision.0,
                "the snapshot that was held back is accepted and in use"
            );
        }
        self.0.after(effect);
    }
}

fn level_of(state: &State) -> Level {
    let at = state.present().map(Replica::at);
    let readiness = if at.is_some() { Readiness::Ready } else { Readiness::NotReady };
    Level { at, readiness }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every method of the state leaves it whole or is at its end.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn age(&self, proven_at: Option<Timestamp>) -> Duration {
        proven_at.map_or(Duration::ZERO, |at| self.clock.now().since(at))
    }

    /// What a new stream begins with.
    pub(crate) fn begin(&self) -> Option<ConfigPosition> {
        self.state().begin()
    }

    pub(crate) fn connected(&self, is_connected: bool) {
        self.is_connected.store(is_connected, Ordering::SeqCst);
        metrics::connected(is_connected);
    }

    pub(crate) fn apply(&self, message: Message) -> Result<(), Fault> {
        let now = self.clock.now();
        let was_held = self.state().held().is_some();
        let effect = self.state().apply(message, now)?;
        if effect == Effect::Held && !was_held {
            self.warn_held();
        }
        self.after(effect);
        Ok(())
    }

    fn warn_held(&self) {
        if let Some(held) = self.state().held() {
            tracing::error!(
                config.revision = held.at.revision.0,
                config.epoch = %held.at.epoch,
                resources = held.present,
                would_go = held.removed,
                "a snapshot would take away more than half of the configuration; the one before stays \
                 in use until an operator says `turnbuckle node accept {}`",
                self.node
            );
        }
    }

    fn after(&self, effect: Effect) {
        if effect == Effect::None {
            return;
        }
        let (level, refused, held) = {
            let state = self.state();
            (level_of(&state), state.refused().len(), state.held().is_some())
        };
        metrics::refused(refused);
        metrics::held(held);
        if effect == Effect::Changed {
            self.level.send_replace(level);
            self.changed.notify_one();
            self.dirty.notify_one();
        }
    }

    async fn keep_gauges(&self) {
        let mut ticks = tokio::time::interval(GAUGE_EVERY);
        loop {
            ticks.tick().await;
            let proven_at = self.state().proven_at();
            metrics::staleness(self.age(proven_at));
        }
    }

    async fn keep_file(&self) {
        loop {
            // Either way the file is written anew.
            drop(timeout(FILE_REFRESH, self.dirty.notified()).await);
            let next = Instant::now() + FILE_EVERY;
            self.save().await;
            sleep_until(next).await;
        }
    }

    /// Writes the file. What fails now is tried again with the next change.
    async fn save(&self) {
        let content = {
            let state = self.state();
            let Some(present) = state.present() else { return };
            Content::new(present, state.proven_at())
        };
        let file = self.file.clone();
        let written = tokio::task::spawn_blocking(move || file.write(&content)).await;
        match written {
            Ok(Ok(())) => metrics::file_written("written"),
            Ok(Err(error)) => {
                metrics::file_written("failed");
                tracing::error!(%error, "the last-known-good configuration is not kept");
            }
            Err(_) => metrics::file_written("failed"),
        }
    }

    /// Whether everything that is committed now has come here. Only the control plane can tell, and
    /// only about a read of the store that begins after it was asked.
    async fn is_proven(&self) -> bool {
        if !self.is_connected.load(Ordering::SeqCst) {
            return false;
        }
        let mut configuration = self.client.configuration();
        let asked = configuration.get_revision(GetRevisionRequest {
            node: self.node.name.to_string(),
            role: crate::wire::wire_role(self.node.role).into(),
        });
        let Ok(Ok(answer)) = timeout(PROOF_WAIT, asked).await else { return false };
        let answer = answer.into_inner();
        let epoch = Uuid::parse_str(&answer.epoch).map(Epoch::from_uuid).ok();
        let state = self.state();
        let at = state.present().map(Replica::at);
        at.is_some_and(|at| {
            Some(at.epoch) == epoch
                && at.revision >= Revision(answer.revision)
                && state.is_complete()
        })
    }
}

#[async_trait]
impl ConfigSource for StreamSource {
    async fn revision(&self) -> Result<Revision, StoreError> {
        Ok(self.position().await?.at.revision)
    }

    async fn changes_since(&self, known: Revision) -> Result<ConfigDelta, StoreError> {
        let mut state = self.0.state();
        let present = state.present_mut().ok_or_else(nothing_yet)?;
        Ok(present.changes_since(known))
    }

    async fn position(&self) -> Result<SourcePosition, StoreError> {
        // The proof first: what it proves is in whatever is handed out after it.
        let is_proven = self.0.is_proven().await;
        let at = self.at().ok_or_else(nothing_yet)?;
        Ok(SourcePosition { at, is_proven })
    }

    async fn changed(&self) {
        self.0.changed.notified().await;
    }
}

fn nothing_yet() -> StoreError {
    StoreError::Unavailable(NothingYet.into())
}
