//! Kept bodies.
#![expect(
    unreachable_pub,
    reason = "the derive makes public items, whose parts must be public too"
)]

use sea_orm::{ActiveValue::Set, entity::prelude::*};
use std::fmt;
use turnbuckle_domain::{Receipt, ReplayContext, StoreError};

#[derive(Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "receipt_payload")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub data: Vec<u8>,
    pub until_us: i64,
    pub context: Option<String>,
}

/// Hides the payload.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").field("id", &self.id).finish_non_exhaustive()
    }
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

pub(super) fn encode(receipt: &Receipt) -> Option<Result<ActiveModel, StoreError>> {
    let (data, until) = (receipt.payload.as_ref()?, receipt.payload_until?);
    let context = receipt.context.as_ref().map(serde_json::to_string).transpose();
    let context = context.map_err(|error| StoreError::Internal(error.into()));
    Some(context.map(|context| ActiveModel {
        tenant_id: Set(receipt.tenant.uuid()),
        id: Set(receipt.id.uuid()),
        data: Set(data.to_vec()),
        until_us: Set(until.micros()),
        context: Set(context),
    }))
}

pub(super) fn context(text: Option<&str>) -> Result<Option<ReplayContext>, StoreError> {
    let read = text.map(serde_json::from_str).transpose();
    read.map_err(|_| StoreError::Internal("a receipt has an odd context".into()))
}
