//! What goes by itself after its time: deleted resources, the material of revoked keys, expired tokens
//! and remembered requests.

use crate::Dependencies;
use std::sync::Arc;
use turnbuckle_domain::{
    AuditId, ChangeContext, Clock, ConfigStore, Error, IdGenerator, KEPT_DELETED, Role,
    api_token_limits, incoming_limits, request_limits,
};

/// Most resources purged at once. Each is a change of its own that writers wait for, so a large
/// tenant goes in many small turns.
const PURGES: u32 = 100;

/// Most rings at once whose revoked keys lose their material, for the same reason.
const DESTROYS: u32 = 100;

/// Most expired tokens ended at once, for the same reason.
const ENDS: u32 = 100;

/// Requests forgotten by one statement: some milliseconds.
const REQUESTS_AT_ONCE: u32 = 1_000;

/// Statements of one run: more than a store takes changes in a minute.
const REQUEST_TURNS: u32 = 60;

/// Who purges, in the record.
const SUBJECT: &str = "turnbuckle";

/// What the record names as the method.
const METHOD: &str = "purge";

/// Sweeps up behind the control plane. Run it every minute or so; replicas may run it together.
pub struct Sweeper {
    store: Arc<dyn ConfigStore>,
    clock: Arc<dyn Clock>,
    ids: IdGenerator,
}

/// What one run took away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Deleted resources.
    pub purged: u32,
    /// Remembered requests.
    pub forgotten: u64,
    /// Expired API tokens.
    pub ended: u32,
    /// Rings of sources whose revoked keys lost their material.
    pub destroyed: u32,
}

impl Sweeper {
    /// Sweeps on the ports of a control plane.
    #[must_use]
    pub fn new(on: &Dependencies) -> Self {
        Self { store: Arc::clone(&on.store), clock: Arc::clone(&on.clock), ids: on.ids.clone() }
    }

    /// Takes away what is due, up to a bound. What is left is for the next run.
    ///
    /// # Errors
    /// When the store does not answer; the next run makes up for it.
    pub async fn run(&self) -> Result<Swept, Error> {
        // One must not wait for the other.
        let (purged, forgotten) = (self.purge().await, self.forget().await);
        let (ended, destroyed) = (self.end().await, self.destroy().await);
        let (purged, forgotten) = (purged?, forgotten?);
        Ok(Swept { purged, forgotten, ended: ended?, destroyed: destroyed? })
    }

    async fn purge(&self) -> Result<u32, Error> {
        let old = self.clock.now() - KEPT_DELETED;
        for purged in 0..PURGES {
            match self.store.purge_one(old, &self.by("deleted 30 days ago")).await? {
                Some(resource) => tracing::info!(resource, "purged what was deleted 30 days ago"),
                None => return Ok(purged),
            }
        }
        Ok(PURGES)
    }

    async fn destroy(&self) -> Result<u32, Error> {
        let old = self.clock.now() - incoming_limits::ALARM_WINDOW;
        for destroyed in 0..DESTROYS {
            match self.store.destroy_revoked(old, &self.by("revoked 30 days ago")).await? {
                Some(ring) => tracing::info!(ring, "destroyed keys that were revoked 30 days ago"),
                None => return Ok(destroyed),
            }
        }
        Ok(DESTROYS)
    }

    async fn end(&self) -> Result<u32, Error> {
        let old = self.clock.now() - api_token_limits::ENDED_AFTER;
        for ended in 0..ENDS {
            if self
                .store
                .end_expired_api_token(old, &self.by("expired 7 days ago"))
                .await?
                .is_none()
            {
                return Ok(ended);
            }
        }
        Ok(ENDS)
    }

    async fn forget(&self) -> Result<u64, Error> {
        let old = self.clock.now() - request_limits::KEPT;
        let mut all = 0;
        for _ in 0..REQUEST_TURNS {
            let forgotten = self.store.forget_requests(old, REQUESTS_AT_ONCE).await?;
            all += forgotten;
            if forgotten < u64::from(REQUESTS_AT_ONCE) {
                break;
            }
        }
        Ok(all)
    }

    fn by(&self, reason: &str) -> ChangeContext {
        ChangeContext {
            id: AuditId::from_uuid(self.ids.uuid()),
            at: self.clock.now(),
            subject: SUBJECT.to_owned(),
            role: Role::Admin,
            method: METHOD.to_owned(),
            request_id: self.ids.uuid().to_string(),
            reason: reason.to_owned(),
            validate_only: false,
            request: None,
        }
    }
}
