//! API tokens.

use crate::config::cell::{self, HiddenBytes, Malformed};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{
    ApiToken, ApiTokenHash, ApiTokenId, Revocation, Role, TenantId, Timestamp,
};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "api_token")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub tenant_id: Option<Uuid>,
    pub slug: String,
    pub description: String,
    pub role: String,
    pub hash: HiddenBytes,
    pub hint: String,
    pub creator: String,
    pub expires_at_us: i64,
    pub revoked_at_us: Option<i64>,
    pub revoke_reason: Option<String>,
    pub last_used_at_us: Option<i64>,
    pub created_at_us: i64,
    pub updated_at_us: i64,
    pub revision: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

pub(in crate::config) fn encode(token: &ApiToken) -> ActiveModel {
    let revoked = token.revoked.as_ref();
    ActiveModel {
        id: Set(token.id.uuid()),
        tenant_id: Set(token.tenant.map(TenantId::uuid)),
        slug: Set(token.slug.as_str().to_owned()),
        description: Set(token.description.clone()),
        role: Set(token.role.as_str().to_owned()),
        hash: Set(HiddenBytes(token.hash.as_bytes().to_vec())),
        hint: Set(token.hint.clone()),
        creator: Set(token.creator.clone()),
        expires_at_us: Set(token.expires_at.micros()),
        revoked_at_us: Set(revoked.map(|revoked| revoked.at.micros())),
        revoke_reason: Set(revoked.map(|revoked| revoked.reason.clone())),
        last_used_at_us: Set(token.last_used_at.map(Timestamp::micros)),
        created_at_us: Set(token.meta.created_at.micros()),
        updated_at_us: Set(token.meta.updated_at.micros()),
        revision: Set(token.meta.revision.0),
    }
}

pub(in crate::config) fn decode(row: Model) -> Result<ApiToken, Malformed> {
    let revoked = row.revoked_at_us.map(|at| Revocation {
        at: Timestamp::from_micros(at),
        reason: row.revoke_reason.unwrap_or_default(),
    });
    Ok(ApiToken {
        id: ApiTokenId::from_uuid(row.id),
        tenant: row.tenant_id.map(TenantId::from_uuid),
        slug: cell::resource_id(row.slug)?,
        description: row.description,
        role: cell::expect("role", Role::parse(&row.role))?,
        hash: ApiTokenHash::from_bytes(cell::hash(row.hash.0)?),
        hint: row.hint,
        creator: row.creator,
        expires_at: Timestamp::from_micros(row.expires_at_us),
        revoked,
        last_used_at: cell::micros(row.last_used_at_us),
        meta: cell::meta(row.created_at_us, row.updated_at_us, row.revision),
    })
}
