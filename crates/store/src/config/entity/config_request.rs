//! What requests with an id of their own have made.

use sea_orm::entity::prelude::*;
use turnbuckle_domain::{KeyId, Made, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "config_request")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub method: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub request_id: Uuid,
    pub content_hash: Vec<u8>,
    pub made_id: Uuid,
    pub key_id: Option<Uuid>,
    pub made_at_us: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Model {
    pub(in crate::config) fn made(&self) -> Made {
        Made {
            id: self.made_id,
            key: self.key_id.map(KeyId::from_uuid),
            at: Timestamp::from_micros(self.made_at_us),
        }
    }
}
