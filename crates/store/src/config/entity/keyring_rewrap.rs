//! How far moving all records to one key-encryption key has come.

use crate::config::cell::{self, Malformed};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{KeyId, RewrapProgress, Timestamp};

/// Id of the one row.
pub(in crate::config) const ONLY: i16 = 1;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "keyring_rewrap")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i16,
    pub to_key_id: String,
    pub after_key_id: Option<Uuid>,
    pub moved: i64,
    pub unreadable: i64,
    pub started_at_us: i64,
    pub updated_at_us: i64,
    pub finished_at_us: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

pub(in crate::config) fn encode(progress: &RewrapProgress) -> Result<ActiveModel, Malformed> {
    Ok(ActiveModel {
        id: Set(ONLY),
        to_key_id: Set(progress.to.clone()),
        after_key_id: Set(progress.after.map(KeyId::uuid)),
        moved: Set(cell::expect("moved", progress.moved.try_into().ok())?),
        unreadable: Set(cell::expect("unreadable", progress.unreadable.try_into().ok())?),
        started_at_us: Set(progress.started_at.micros()),
        updated_at_us: Set(progress.updated_at.micros()),
        finished_at_us: Set(progress.finished_at.map(Timestamp::micros)),
    })
}

pub(in crate::config) fn decode(row: Model) -> Result<RewrapProgress, Malformed> {
    Ok(RewrapProgress {
        to: row.to_key_id,
        after: row.after_key_id.map(KeyId::from_uuid),
        moved: cell::expect("moved", row.moved.try_into().ok())?,
        unreadable: cell::expect("unreadable", row.unreadable.try_into().ok())?,
        started_at: Timestamp::from_micros(row.started_at_us),
        updated_at: Timestamp::from_micros(row.updated_at_us),
        finished_at: cell::micros(row.finished_at_us),
    })
}
