//! Records with known content, one under each key-encryption key.

use crate::config::cell::HiddenBytes;
use sea_orm::entity::prelude::*;
use turnbuckle_domain::{KeyringCanary, SealedSecret, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "keyring_canary")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub key_id: String,
    pub sealed: HiddenBytes,
    pub created_at_us: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

pub(in crate::config) fn decode(row: Model) -> KeyringCanary {
    KeyringCanary {
        key_id: row.key_id,
        sealed: SealedSecret::from_bytes(row.sealed.0),
        created_at: Timestamp::from_micros(row.created_at_us),
    }
}
