//! Calls that were denied to known callers, for the audit record.
//!
//! A denial belongs to the record of the tenant that the caller is bound to; for callers that are bound
//! to none, and for those whose tenant never was, to the platform's own. The same call by the same
//! caller is counted instead of recorded again, so that nobody can fill a record.

use crate::{AuditId, Error, FieldChange, ResourceId, Role, TenantId, Timestamp};
use async_trait::async_trait;
use uuid::Uuid;

/// Whose record holds what belongs to no tenant. No tenant has this id: those of tenants carry a time.
pub const PLATFORM: TenantId = TenantId::from_uuid(Uuid::nil());

/// Why a known caller was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DenialReason {
    /// Its role does not allow the method.
    Role,
    /// The method is allowed, but not on what it was called for: another tenant, or more rights
    /// than its own.
    Reach,
}

impl DenialReason {
    /// The text recorded.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Role => "the role does not allow the method",
            Self::Reach => "another tenant, or more rights than the caller's own",
        }
    }
}

/// The same call, denied to the same caller once or several times within a minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// Names the entry.
    pub id: AuditId,
    /// Subject of the caller.
    pub subject: String,
    /// The caller's role.
    pub role: Role,
    /// The tenant that the caller is bound to.
    pub tenant: Option<ResourceId>,
    /// The method called, such as `turnbuckle.v1.Endpoints/UpdateEndpoint`.
    pub method: String,
    /// Why.
    pub reason: DenialReason,
    /// How often.
    pub count: u64,
    /// The first of them.
    pub first_at: Timestamp,
    /// The last of them.
    pub last_at: Timestamp,
}

impl Denial {
    /// Count and times, as the entry shows them.
    #[must_use]
    pub fn changes(&self) -> Vec<FieldChange> {
        let shown = [
            ("denied.count", self.count.to_string()),
            ("denied.first_time", format!("{}us", self.first_at.micros())),
            ("denied.last_time", format!("{}us", self.last_at.micros())),
        ];
        let change = |(field, value): (&str, String)| FieldChange {
            field: field.to_owned(),
            before: None,
            after: Some(value),
        };
        shown.into_iter().map(change).collect()
    }

    /// What the entry is about: the caller's tenant, or the platform.
    #[must_use]
    pub fn resource(&self) -> String {
        self.tenant.as_ref().map_or_else(|| "platform".to_owned(), |slug| format!("tenants/{slug}"))
    }
}

/// Records denials.
#[async_trait]
pub trait DenialLog: Send + Sync + 'static {
    /// Appends one entry for each, in one transaction. Makes no revision. Entries follow in the
    /// chain of their record like all others.
    async fn record_denials(&self, denials: &[Denial]) -> Result<(), Error>;
}
