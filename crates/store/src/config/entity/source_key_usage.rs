//! What each key of a source verified.

use crate::config::cell::{self, Malformed};
use sea_orm::entity::prelude::*;
use turnbuckle_domain::{KeyId, KeyTraffic, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "source_key_usage")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub key_id: Uuid,
    pub tenant_id: Uuid,
    pub source_id: Uuid,
    pub verified: i64,
    pub last_used_at_us: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

pub(in crate::config) fn decode(row: &Model) -> Result<KeyTraffic, Malformed> {
    Ok(KeyTraffic {
        key: KeyId::from_uuid(row.key_id),
        signatures: cell::expect("verified", row.verified.try_into().ok())?,
        last_used_at: Some(Timestamp::from_micros(row.last_used_at_us)),
        last_test: None,
    })
}
