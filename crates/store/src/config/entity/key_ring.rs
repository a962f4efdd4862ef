//! Key rings: what the keys of an endpoint have in common.

use crate::config::cell;
use sea_orm::entity::prelude::*;
use turnbuckle_domain::{RotationPause, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "key_ring")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub endpoint_id: Uuid,
    pub tenant_id: Uuid,
    pub revision: i64,
    pub pause_reason: Option<String>,
    pub paused_at_us: Option<i64>,
    pub resumed_at_us: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// The pause of a ring's rotation; a check keeps its parts together.
pub(in crate::config) fn pause(row: &Model) -> Option<RotationPause> {
    Some(RotationPause {
        at: Timestamp::from_micros(row.paused_at_us?),
        reason: row.pause_reason.clone()?,
        resumed_at: cell::micros(row.resumed_at_us),
    })
}
