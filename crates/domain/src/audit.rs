//! The record of configuration changes: who changed what, from what to what, and a chain of hashes
//! that shows when somebody touched the record afterwards.
//!
//! ```text
//!  change ─► Audited::fields before, after ─► diff ─┐
//!  ChangeContext (who, why) ────────────────────────┴─► AuditEntry ─► chain_hash(previous, entry)
//! ```
//!
//! # Invariants
//! - An entry is written in the transaction of its change: there is no change without its entry, and
//!   no entry of a change that did not happen.
//! - Entries of a tenant are numbered from 1 without gaps, those of changes in the order of their
//!   revisions.
//! - Denied calls are in the same chain, without a revision. See [`Denial`](crate::Denial).
//! - No entry holds a secret: keys appear by fingerprint and state, header values and the parts of a
//!   URL that may be credentials as fingerprints (I7).

mod chain;
mod diff;
mod source;

pub use chain::{ChainCheck, ChainFault, Fault, chain_hash, verify_chain};
pub use diff::{Audited, FieldChange, Fields, diff};

use crate::{AuditId, Error, RequestKey, ResourceId, Revision, Role, Tenant, TenantId, Timestamp};
use async_trait::async_trait;

/// Bounds of the record, each with its reason.
pub mod audit_limits {
    /// Longest request id taken from a caller: twice a UUID with a prefix; longer ones are replaced.
    pub const REQUEST_ID_CHARS: usize = 128;
}

/// Who makes a change, and why. Goes to every write of configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeContext {
    /// Names the entry.
    pub id: AuditId,
    /// When it was asked for.
    pub at: Timestamp,
    /// Subject of the caller's token.
    pub subject: String,
    /// The caller's role.
    pub role: Role,
    /// The method called, such as `turnbuckle.v1.Endpoints/UpdateEndpoint`.
    pub method: String,
    /// The caller's id of the request, or one made here.
    pub request_id: String,
    /// Why, where the request says it.
    pub reason: String,
    /// Check everything and change nothing: the store answers what would be, and leaves no trace.
    pub validate_only: bool,
    /// The request itself, where a repeat of it must make nothing again.
    pub request: Option<RequestKey>,
}

/// What became of a recorded request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuditOutcome {
    /// The change was made.
    Applied,
    /// The caller may not do this: nothing was changed.
    Denied,
}

impl AuditOutcome {
    /// The name stored and hashed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Denied => "denied",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Applied, Self::Denied].into_iter().find(|outcome| outcome.as_str() == text)
    }
}

/// One recorded change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id.
    pub id: AuditId,
    /// Whose record it is in.
    pub tenant: TenantId,
    /// Its place in the tenant's record, from 1.
    pub sequence: i64,
    /// When the change was asked for.
    pub at: Timestamp,
    /// Who asked for it.
    pub subject: String,
    /// In which role. Text, so that entries outlive roles.
    pub role: String,
    /// The method called.
    pub method: String,
    /// Name of the changed resource.
    pub resource: String,
    /// Id of the request.
    pub request_id: String,
    /// Why; may be empty.
    pub reason: String,
    /// The configuration revision that the change made; zero where nothing was changed.
    pub revision: Revision,
    /// What became of it.
    pub outcome: AuditOutcome,
    /// The changed fields, by name.
    pub changes: Vec<FieldChange>,
    /// SHA-256 over the hash of the entry before and everything above.
    pub hash: [u8; 32],
}

/// The newest entry of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditHead {
    /// Its id.
    pub id: AuditId,
    /// Its place: how many entries there are.
    pub sequence: i64,
    /// Its hash, which stands for all entries before it too.
    pub hash: [u8; 32],
}

/// Which entries to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only of this resource and what is below it.
    pub resource: Option<String>,
    /// Only by this subject.
    pub subject: Option<String>,
    /// Only from this time on.
    pub from: Option<Timestamp>,
    /// Only before this time.
    pub until: Option<Timestamp>,
    /// Only what became of it like this.
    pub outcome: Option<AuditOutcome>,
}

/// Reads of the record. It is written by the configuration store only, with each change, and by
/// [`DenialLog`](crate::DenialLog).
#[async_trait]
pub trait AuditTrail: Send + Sync + 'static {
    /// The tenant of this name, also a deleted one, whose record stays readable.
    async fn audited_tenant(&self, slug: &ResourceId) -> Result<Option<Tenant>, Error>;

    /// Entries newest first, below this sequence number.
    async fn audit_entries(
        &self,
        tenant: TenantId,
        filter: &AuditFilter,
        below: Option<i64>,
        limit: u16,
    ) -> Result<Vec<AuditEntry>, Error>;

    /// The newest entry, as it was noted beside the record when it was written; none before the
    /// first.
    async fn audit_head(&self, tenant: TenantId) -> Result<Option<AuditHead>, Error>;
}
