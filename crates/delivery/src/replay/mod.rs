//! Replays: the use case, and the task that does them.
//!
//! ```text
//!  CreateReplay ─► check ─► record ─► ReplayStore ◄─ claim ─ Runner ─► Turn: page ─► plan ─► step
//!                                                                        └── pace ◄── wake ◄──┘
//! ```
//!
//! # Invariants
//! - A row is looked at once by a replay: where it stands is written with what it opened (see
//!   [`turnbuckle_domain::ReplayStore`]).
//! - A process works at no more than [`runner::AT_ONCE`] replays, each for a bounded time before others
//!   have their turn.
//! - Nothing here runs on the engine's tasks; what is opened goes through the lanes like everything else.

mod pace;
mod plan;
mod runner;
mod turn;

pub(crate) use runner::Runner;

use crate::{config::ConfigHandle, plane::WakeHandle};
use std::sync::Arc;
use tokio::sync::Notify;
use turnbuckle_domain::{
    ChangeContext, Clock, ConfigStore, DeliveryQueue, Error, Fields, History, IdGenerator, Looked,
    Precondition, Replay, ReplayCounts, ReplayCreated, ReplayId, ReplayScope, ReplayState,
    ReplayStore, ReplayTurned, ResourceId, TenantId, WorkerId, replay_limits,
};

/// What replays work with.
pub(crate) struct ReplayParts {
    pub(crate) store: Arc<dyn ReplayStore>,
    /// Where replays are recorded.
    pub(crate) record: Arc<dyn ConfigStore>,
    pub(crate) history: Arc<dyn History>,
    pub(crate) queue: Arc<dyn DeliveryQueue>,
    pub(crate) config: ConfigHandle,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: IdGenerator,
    pub(crate) wake: WakeHandle,
    pub(crate) worker: WorkerId,
}

/// What a count before a replay found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) looked_at: u64,
    pub(crate) matched: u64,
    /// Whether everything was looked at.
    pub(crate) complete: bool,
}

/// What callers do with replays.
pub(crate) struct Replays {
    parts: Arc<ReplayParts>,
    nudge: Arc<Notify>,
}

impl Replays {
    /// The use case, and the task that does what it is told.
    pub(crate) fn new(parts: ReplayParts) -> (Self, Runner) {
        let (parts, nudge) = (Arc::new(parts), Arc::new(Notify::new()));
        let runner = Runner::new(Arc::clone(&parts), Arc::clone(&nudge));
        (Self { parts, nudge }, runner)
    }

    pub(crate) fn config(&self) -> &ConfigHandle {
        &self.parts.config
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.parts.clock.as_ref()
    }

    pub(crate) fn ids(&self) -> &IdGenerator {
        &self.parts.ids
    }

    /// Begins a replay, or answers the one that the same request made. It is recorded before it is kept:
    /// there is no replay without its entry.
    pub(crate) async fn create(
        &self,
        slug: &ResourceId,
        replay: Replay,
        change: &ChangeContext,
    ) -> Result<Replay, Error> {
        let (store, tenant, request) = (&self.parts.store, replay.tenant, change.request.as_ref());
        if let Some(request) = request
            && let Some(before) = store.replay_of_request(tenant, request).await?
        {
            return created(slug, replay, change, before);
        }
        if store.open_replays(tenant).await? >= replay_limits::OPEN_PER_TENANT {
            return Err(too_many(slug));
        }
        let what = Fields::from([
            ("scope".to_owned(), replay.scope.as_str().to_owned()),
            ("endpoint".to_owned(), replay.endpoint_slug.clone()),
            ("rate_per_second".to_owned(), replay.rate.to_string()),
        ]);
        self.record(slug, replay.id, tenant, what, change).await?;
        let made = store.create_replay(&replay, request).await?;
        self.nudge.notify_one();
        created(slug, replay, change, made)
    }

    async fn record(
        &self,
        slug: &ResourceId,
        id: ReplayId,
        tenant: TenantId,
        what: Fields,
        change: &ChangeContext,
    ) -> Result<(), Error> {
        // The request is remembered with the replay.
        let change = ChangeContext { request: None, ..change.clone() };
        self.parts.record.record_action(tenant, name(slug, id), what, &change).await
    }

    /// Counts what a replay would choose, within bounds.
    pub(crate) async fn preview(&self, replay: &Replay) -> Result<Counted, Error> {
        let (walk, mut after) = (replay.walk(), None);
        let mut counted = Counted { looked_at: 0, matched: 0, complete: false };
        for _ in 0..replay_limits::COUNTED_PAGES {
            let rows = self.parts.store.replay_page(&walk, after, replay_limits::PAGE).await?;
            let Some(last) = rows.last() else {
                counted.complete = true;
                break;
            };
            after = Some(last.position());
            counted.looked_at += rows.len() as u64;
            let chosen = rows.iter().filter(|row| replay.filter.look(row) == Looked::Chosen);
            counted.matched += chosen.count() as u64;
            if counted.matched >= u64::from(replay_limits::COUNTED) {
                break;
            }
        }
        Ok(counted)
    }

    pub(crate) async fn get(
        &self,
        slug: &ResourceId,
        tenant: TenantId,
        id: ReplayId,
    ) -> Result<Replay, Error> {
        let found = self.parts.store.replay(tenant, id).await?;
        found.ok_or_else(|| Error::NotFound { resource: name(slug, id) })
    }

    pub(crate) async fn list(
        &self,
        tenant: TenantId,
        state: Option<ReplayState>,
        after: Option<ReplayId>,
        limit: u16,
    ) -> Result<Vec<Replay>, Error> {
        Ok(self.parts.store.replays(tenant, state, after, limit).await?)
    }

    /// Pauses, resumes or cancels. Recorded when it changes something.
    pub(crate) async fn turn(
        &self,
        slug: &ResourceId,
        (tenant, id): (TenantId, ReplayId),
        to: ReplayState,
        change: &ChangeContext,
    ) -> Result<Replay, Error> {
        let now = self.parts.clock.now();
        match self.parts.store.turn_replay(tenant, id, to, now).await? {
            ReplayTurned::Turned(replay, true) => Ok(replay),
            ReplayTurned::Turned(replay, false) => {
                let what = Fields::from([("state".to_owned(), to.as_str().to_owned())]);
                self.record(slug, id, tenant, what, change).await?;
                self.nudge.notify_one();
                Ok(replay)
            }
            ReplayTurned::Refused(replay) => Err(Error::Precondition {
                kind: Precondition::ReplayFinished,
                subject: name(slug, id),
                message: format!(
                    "the replay is {}: make another for what it has not done",
                    replay.state.as_str()
                ),
            }),
            ReplayTurned::Missing => Err(Error::NotFound { resource: name(slug, id) }),
        }
    }
}

/// `tenants/{tenant}/replays/{replay}`.
pub(crate) fn name(slug: &ResourceId, id: ReplayId) -> String {
    format!("tenants/{slug}/replays/{id}")
}

fn created(
    slug: &ResourceId,
    replay: Replay,
    change: &ChangeContext,
    what: ReplayCreated,
) -> Result<Replay, Error> {
    match what {
        ReplayCreated::Made => Ok(replay),
        ReplayCreated::Again(before) => Ok(*before),
        ReplayCreated::RequestIdReused => {
            Err(Error::RequestIdReused { request_id: change.request_id.clone() })
        }
        ReplayCreated::TooMany => Err(too_many(slug)),
    }
}

fn too_many(slug: &ResourceId) -> Error {
    Error::Precondition {
        kind: Precondition::LimitReached,
        subject: format!("tenants/{slug}"),
        message: format!(
            "the tenant has {} unfinished replays, which is the most: wait for one to end, or cancel one",
            replay_limits::OPEN_PER_TENANT
        ),
    }
}

/// What is left alone, for metrics.
pub(crate) const fn skipped(counts: &ReplayCounts) -> u64 {
    counts.skipped_pending
        + counts.skipped_inactive
        + counts.skipped_gone
        + counts.skipped_finished
        + counts.skipped_unwanted
}

/// Whether deliveries that are not there yet are made.
pub(crate) const fn makes(scope: ReplayScope) -> bool {
    matches!(scope, ReplayScope::Events)
}
