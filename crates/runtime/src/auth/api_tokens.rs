//! API tokens as this process takes them: all that are valid, in memory, by their hash.
//!
//! ```text
//!  ConfigSource ─► ObservedConfig ─► whoever follows the configuration (the delivery plane, or
//!                       │            ApiTokenFollower where there is none)
//!                       └─ tokens ─► ApiTokens ◄── hash of a presented token ── Authenticator
//!                                        └─ last uses ─► ApiTokenUses ─► store, once a minute
//! ```
//!
//! # Invariants
//! - A call reads no store, waits for no lock, and compares hashes only: how long a look-up takes
//!   tells nothing about any token.
//! - Tokens are in use no later than the configuration that came with them, so a revocation is
//!   answered after this process refuses the token.
//! - Expiry is judged by the clock, whatever the store says or whether it answers.

mod follower;
mod uses;

pub use follower::{ApiTokenFollower, ApiTokenPropagation, ObservedConfig};
pub use uses::ApiTokenUses;

use super::refusal::Refusal;
use arc_swap::ArcSwap;
use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use turnbuckle_domain::{
    ApiToken, ApiTokenHash, ApiTokenId, ApiTokenSecret, Caller, ConfigDelta, ResourceId,
    ResourceKind, Revision, TenantId, Timestamp, UnreadableResource,
};

/// Uses of one token closer together than this are noted as one: a busy token is not a cache line
/// that every call writes.
const USE_GRAIN: Duration = Duration::from_secs(1);

/// How long an expired token is kept: a clock that was put forward and back again must not lose
/// tokens that are valid.
const FORGET_AFTER: Duration = Duration::from_secs(24 * 3600);

/// No use yet.
const NEVER: i64 = 0;

/// The tokens that are taken. Clones share them.
#[derive(Clone, Default)]
pub struct ApiTokens(Arc<Shared>);

#[derive(Default)]
struct Shared {
    index: ArcSwap<Index>,
    /// Held while an index is built from the one before.
    building: Mutex<()>,
}

/// Tokens at one revision.
#[derive(Clone, Default)]
struct Index {
    revision: Revision,
    /// Names of tenants, which callers are bound to by name.
    tenants: HashMap<TenantId, ResourceId>,
    by_hash: HashMap<ApiTokenHash, Arc<Entry>>,
    hashes: HashMap<ApiTokenId, ApiTokenHash>,
}

/// One token that is taken.
struct Entry {
    id: ApiTokenId,
    tenant: Option<TenantId>,
    caller: Caller,
    expires_at: Timestamp,
    /// Microseconds of the last use. Shared with the entry that replaces this one.
    used: Arc<AtomicI64>,
}

impl ApiTokens {
    /// The caller that a token proves.
    pub(super) fn check(&self, token: &str, now: Timestamp) -> Result<Caller, Refusal> {
        let hash = ApiTokenSecret::hash_of(token).ok_or(Refusal::ApiToken)?;
        let index = self.0.index.load();
        let entry = index.by_hash.get(&hash).ok_or(Refusal::ApiToken)?;
        if now >= entry.expires_at {
            return Err(Refusal::Expired);
        }
        let last = Timestamp::from_micros(entry.used.load(Ordering::Relaxed));
        if now.since(last) >= USE_GRAIN {
            entry.used.store(now.micros(), Ordering::Relaxed);
        }
        Ok(entry.caller.clone())
    }

    /// Takes what changed after `known`; everything, when nothing was known. What is older than what is
    /// in use changes nothing (I14), unless everything was read anew: then the store went back.
    pub(super) fn apply(&self, known: Revision, delta: &ConfigDelta, now: Timestamp) {
        let _alone = self.0.building.lock().unwrap_or_else(PoisonError::into_inner);
        let present = self.0.index.load_full();
        let anew = known == Revision::ZERO;
        if !anew && delta.revision < present.revision {
            return;
        }
        let is_gone = |one: &&UnreadableResource| one.deleted;
        let mut gone = delta.unreadable.iter().filter(is_gone).peekable();
        if !anew && delta.tenants.is_empty() && delta.api_tokens.is_empty() && gone.peek().is_none()
        {
            return;
        }
        let mut next = if anew { Index::default() } else { Index::clone(&present) };
        next.revision = delta.revision;
        for tenant in &delta.tenants {
            next.apply_tenant(tenant.value.id, &tenant.value.slug, tenant.deleted);
        }
        for token in &delta.api_tokens {
            next.apply_token(token, &present);
        }
        for gone in gone {
            next.forget_unreadable(gone);
        }
        next.forget(|entry| now >= entry.expires_at + FORGET_AFTER);
        metrics::gauge!("turnbuckle_api_tokens").set(next.by_hash.len() as f64);
        self.0.index.store(Arc::new(next));
    }

    /// When tokens were last used here; those that were not are left out.
    fn uses(&self) -> Vec<(ApiTokenId, Timestamp)> {
        let index = self.0.index.load();
        let uses =
            index.by_hash.values().map(|entry| (entry.id, entry.used.load(Ordering::Relaxed)));
        uses.filter(|(_, used)| *used != NEVER)
            .map(|(id, used)| (id, Timestamp::from_micros(used)))
            .collect()
    }
}

impl Index {
    fn apply_tenant(&mut self, id: TenantId, slug: &ResourceId, deleted: bool) {
        if !deleted {
            self.tenants.insert(id, slug.clone());
            return;
        }
        self.tenants.remove(&id);
        self.forget(|entry| entry.tenant == Some(id));
    }

    /// Takes out what is revoked or deleted, though nobody can read what it was.
    fn forget_unreadable(&mut self, gone: &UnreadableResource) {
        match gone.kind {
            ResourceKind::ApiToken => self.forget(|entry| entry.id.uuid() == gone.id),
            ResourceKind::Tenant => {
                self.tenants.remove(&TenantId::from_uuid(gone.id));
                self.forget(|entry| entry.tenant.map(TenantId::uuid) == Some(gone.id));
            }
            _ => {}
        }
    }

    fn forget(&mut self, gone: impl Fn(&Entry) -> bool) {
        self.by_hash.retain(|_, entry| !gone(entry));
        let by_hash = &self.by_hash;
        self.hashes.retain(|_, hash| by_hash.contains_key(hash));
    }

    fn apply_token(&mut self, token: &ApiToken, before: &Self) {
        if let Some(hash) = self.hashes.remove(&token.id) {
            self.by_hash.remove(&hash);
        }
        if token.revoked.is_some() {
            return;
        }
        let tenant = match token.tenant {
            None => None,
            Some(id) => match self.tenants.get(&id) {
                Some(slug) => Some(slug),
                // The tenant is gone, and its tokens with it.
                None => return,
            },
        };
        let last = before.by_hash.get(&token.hash).map(|entry| Arc::clone(&entry.used));
        let entry = Entry {
            id: token.id,
            tenant: token.tenant,
            caller: Caller {
                issuer: String::new(),
                subject: ApiToken::name(tenant, &token.slug),
                role: token.role,
                tenant: tenant.cloned(),
            },
            expires_at: token.expires_at,
            used: last.unwrap_or_default(),
        };
        self.hashes.insert(token.id, token.hash);
        self.by_hash.insert(token.hash, Arc::new(entry));
    }
}

impl fmt::Debug for ApiTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiTokens({})", self.0.index.load().by_hash.len())
    }
}
