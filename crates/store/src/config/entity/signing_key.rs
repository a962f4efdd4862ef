//! Signing keys.

use crate::config::cell::{self, HiddenBytes, Malformed};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{
    Key, KeyAlgorithm, KeyId, KeyOwner, KeyState, SealContext, SealedRecord, SealedSecret,
    TenantId, Timestamp,
};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "signing_key")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub tenant_id: Uuid,
    pub endpoint_id: Uuid,
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
    pub held: i16,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Where a key stands.
pub(in crate::config) struct Place {
    pub(in crate::config) tenant: Uuid,
    pub(in crate::config) owner: Uuid,
    pub(in crate::config) position: usize,
}

pub(in crate::config) fn encode(key: &Key, place: &Place) -> Result<ActiveModel, Malformed> {
    let secret = key.secret.as_ref().map(|sealed| HiddenBytes(sealed.as_bytes().to_vec()));
    Ok(ActiveModel {
        id: Set(key.id.uuid()),
        tenant_id: Set(place.tenant),
        endpoint_id: Set(place.owner),
        position: Set(cell::expect("position", place.position.try_into().ok())?),
        state: Set(key.state.as_str().to_owned()),
        algorithm: Set(key.algorithm.as_str().to_owned()),
        fingerprint: Set(key.fingerprint.clone()),
        public_key: Set(key.public_key.clone()),
        secret: Set(secret),
        created_at_us: Set(key.created_at.micros()),
        activated_at_us: Set(key.activated_at.map(Timestamp::micros)),
        retire_at_us: Set(key.retire_at.map(Timestamp::micros)),
        revoke_reason: Set(key.revoke_reason.clone()),
        held: Set(i16::from(key.held)),
    })
}

pub(in crate::config) fn decode(row: Model) -> Result<Key, Malformed> {
    Ok(Key {
        id: KeyId::from_uuid(row.id),
        state: cell::expect("state", KeyState::parse(&row.state))?,
        algorithm: cell::expect("algorithm", KeyAlgorithm::parse(&row.algorithm))?,
        fingerprint: row.fingerprint,
        public_key: row.public_key,
        secret: row.secret.map(|bytes| SealedSecret::from_bytes(bytes.0)),
        created_at: Timestamp::from_micros(row.created_at_us),
        activated_at: cell::micros(row.activated_at_us),
        retire_at: cell::micros(row.retire_at_us),
        held: row.held != 0,
        revoke_reason: row.revoke_reason,
    })
}

/// The sealed secret of a row that has one, in its place; the row's owner is said to be this one.
pub(in crate::config) fn sealed(row: Model, owner: KeyOwner) -> Result<SealedRecord, Malformed> {
    let secret = cell::expect("secret", row.secret)?;
    let (tenant, key) = (TenantId::from_uuid(row.tenant_id), KeyId::from_uuid(row.id));
    let context = SealContext { tenant, owner, key };
    Ok(SealedRecord { context, sealed: SealedSecret::from_bytes(secret.0) })
}
