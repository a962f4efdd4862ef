//! Entries of the audit record.

use crate::config::cell::{self, Malformed};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{
    AuditEntry, AuditId, AuditOutcome, FieldChange, Revision, TenantId, Timestamp,
};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "audit_event")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub sequence: i64,
    pub id: Uuid,
    pub at_us: i64,
    pub subject: String,
    pub role: String,
    pub method: String,
    pub resource: String,
    pub request_id: String,
    pub reason: String,
    pub revision: i64,
    pub outcome: String,
    pub changes: String,
    pub hash: Vec<u8>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

pub(in crate::config) fn encode(entry: &AuditEntry) -> Result<ActiveModel, Malformed> {
    let changes = serde_json::to_string(&entry.changes).ok();
    Ok(ActiveModel {
        tenant_id: Set(entry.tenant.uuid()),
        sequence: Set(entry.sequence),
        id: Set(entry.id.uuid()),
        at_us: Set(entry.at.micros()),
        subject: Set(entry.subject.clone()),
        role: Set(entry.role.clone()),
        method: Set(entry.method.clone()),
        resource: Set(entry.resource.clone()),
        request_id: Set(entry.request_id.clone()),
        reason: Set(entry.reason.clone()),
        revision: Set(entry.revision.0),
        outcome: Set(entry.outcome.as_str().to_owned()),
        changes: Set(cell::expect("changes", changes)?),
        hash: Set(entry.hash.to_vec()),
    })
}

pub(in crate::config) fn decode(row: Model) -> Result<AuditEntry, Malformed> {
    let changes: Option<Vec<FieldChange>> = serde_json::from_str(&row.changes).ok();
    Ok(AuditEntry {
        id: AuditId::from_uuid(row.id),
        tenant: TenantId::from_uuid(row.tenant_id),
        sequence: row.sequence,
        at: Timestamp::from_micros(row.at_us),
        subject: row.subject,
        role: row.role,
        method: row.method,
        resource: row.resource,
        request_id: row.request_id,
        reason: row.reason,
        revision: Revision(row.revision),
        outcome: cell::expect("outcome", AuditOutcome::parse(&row.outcome))?,
        changes: cell::expect("changes", changes)?,
        hash: cell::hash(row.hash)?,
    })
}
