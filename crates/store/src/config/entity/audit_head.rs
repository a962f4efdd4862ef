//! The newest entry of each audit record.

use crate::config::cell::{self, Malformed};
use sea_orm::entity::prelude::*;
use turnbuckle_domain::{AuditHead, AuditId};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "audit_head")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    pub sequence: i64,
    pub id: Uuid,
    pub hash: Vec<u8>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

pub(in crate::config) fn decode(row: Model) -> Result<AuditHead, Malformed> {
    Ok(AuditHead {
        id: AuditId::from_uuid(row.id),
        sequence: row.sequence,
        hash: cell::hash(row.hash)?,
    })
}
