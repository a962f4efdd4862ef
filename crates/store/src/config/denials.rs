//! Denied calls in the audit record.

use super::{ConfigDb, record, write::lock_revision};
use crate::{config::write::write_options, error::store_error};
use async_trait::async_trait;
use sea_orm::{DatabaseTransaction, TransactionTrait as _};
use turnbuckle_domain::{
    AuditEntry, AuditOutcome, AuditTrail as _, Denial, DenialLog, Error, PLATFORM, Revision,
    TenantId,
};

#[async_trait]
impl DenialLog for ConfigDb {
    async fn record_denials(&self, denials: &[Denial]) -> Result<(), Error> {
        if denials.is_empty() {
            return Ok(());
        }
        // Tenants are looked up first: their ids never change, and the lock below is everybody's.
        let mut trails = Vec::with_capacity(denials.len());
        for denial in denials {
            trails.push(self.trail(denial).await?);
        }
        let options = write_options(self.db.get_database_backend());
        let transaction = self.db.begin_with_options(options).await.map_err(store_error)?;
        lock_revision(&transaction).await?;
        for (denial, trail) in denials.iter().zip(trails) {
            append(&transaction, trail, denial).await?;
        }
        Ok(transaction.commit().await.map_err(store_error)?)
    }
}

impl ConfigDb {
    /// Whose record an entry goes to. A token may be bound to a tenant that was never made.
    async fn trail(&self, denial: &Denial) -> Result<TenantId, Error> {
        let Some(slug) = &denial.tenant else {
            return Ok(PLATFORM);
        };
        Ok(self.audited_tenant(slug).await?.map_or(PLATFORM, |tenant| tenant.id))
    }
}

async fn append(
    transaction: &DatabaseTransaction,
    tenant: TenantId,
    denial: &Denial,
) -> Result<(), Error> {
    let entry = AuditEntry {
        id: denial.id,
        tenant,
        sequence: 0,
        at: denial.first_at,
        subject: denial.subject.clone(),
        role: denial.role.as_str().to_owned(),
        method: denial.method.clone(),
        resource: denial.resource(),
        // Calls that are counted together have an id each; the entry has its own.
        request_id: denial.id.to_string(),
        reason: denial.reason.as_str().to_owned(),
        revision: Revision::ZERO,
        outcome: AuditOutcome::Denied,
        changes: denial.changes(),
        hash: [0; 32],
    };
    record::append(transaction, entry).await
}
