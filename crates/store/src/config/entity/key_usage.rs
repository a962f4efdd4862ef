//! What each key was used for.

use crate::config::cell::{self, Malformed};
use sea_orm::entity::prelude::*;
use turnbuckle_domain::{KeyId, KeyTest, KeyTraffic, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "key_usage")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub key_id: Uuid,
    pub tenant_id: Uuid,
    pub endpoint_id: Uuid,
    pub signatures: i64,
    pub last_used_at_us: Option<i64>,
    pub tested_at_us: Option<i64>,
    pub test_outcome: Option<String>,
    pub test_status: Option<i16>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

pub(in crate::config) fn decode(row: Model) -> Result<KeyTraffic, Malformed> {
    let status = row.test_status.map(u16::try_from).transpose().ok();
    let status = cell::expect("test_status", status)?;
    let test = row.tested_at_us.zip(row.test_outcome).map(|(at, outcome)| KeyTest {
        at: Timestamp::from_micros(at),
        outcome: outcome.into(),
        status,
    });
    Ok(KeyTraffic {
        key: KeyId::from_uuid(row.key_id),
        signatures: cell::expect("signatures", row.signatures.try_into().ok())?,
        last_used_at: cell::micros(row.last_used_at_us),
        last_test: test,
    })
}
