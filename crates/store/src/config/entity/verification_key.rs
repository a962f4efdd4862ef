//! Keys of sources. Their rows have the parts of signing keys and become keys the same way.

use super::signing_key;
use crate::config::cell::HiddenBytes;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "verification_key")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub tenant_id: Uuid,
    pub source_id: Uuid,
    pub position: i16,
    pub state: String,
    pub algorithm: String,
    pub fingerprint: String,
    pub public_key: Option<String>,
    pub secret: Option<HiddenBytes>,
    pub created_at_us: i64,
    pub activated_at_us: Option<i64>,
    pub retire_at_us: Option<i64>,
    pub revoke_reason: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl From<Model> for signing_key::Model {
    fn from(row: Model) -> Self {
        Self {
            id: row.id,
            tenant_id: row.tenant_id,
            endpoint_id: row.source_id,
            position: row.position,
            state: row.state,
            algorithm: row.algorithm,
            fingerprint: row.fingerprint,
            public_key: row.public_key,
            secret: row.secret,
            created_at_us: row.created_at_us,
            activated_at_us: row.activated_at_us,
            retire_at_us: row.retire_at_us,
            revoke_reason: row.revoke_reason,
            // Nothing pauses the rotation of a source's keys.
            held: 0,
        }
    }
}

impl From<signing_key::ActiveModel> for ActiveModel {
    fn from(row: signing_key::ActiveModel) -> Self {
        Self {
            id: row.id,
            tenant_id: row.tenant_id,
            source_id: row.endpoint_id,
            position: row.position,
            state: row.state,
            algorithm: row.algorithm,
            fingerprint: row.fingerprint,
            public_key: row.public_key,
            secret: row.secret,
            created_at_us: row.created_at_us,
            activated_at_us: row.activated_at_us,
            retire_at_us: row.retire_at_us,
            revoke_reason: row.revoke_reason,
        }
    }
}
