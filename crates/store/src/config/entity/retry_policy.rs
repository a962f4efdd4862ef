//! Retry policies.

use crate::config::{
    cell::{self, Malformed},
    table::{Identity, Table},
};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{Deletable, Meta, ResourceKind, RetryPolicy, RetryPolicyId, TenantId};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "retry_policy")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub tenant_id: Uuid,
    pub slug: String,
    pub version: i64,
    pub rule: String,
    pub labels: String,
    pub created_at_us: i64,
    pub updated_at_us: i64,
    pub deleted_at_us: Option<i64>,
    pub purged_at_us: Option<i64>,
    pub revision: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Table for Entity {
    type Resource = RetryPolicy;

    const COLLECTION: &'static str = "retryPolicies";
    const KIND: ResourceKind = ResourceKind::RetryPolicy;
    const ID: Column = Column::Id;
    const TENANT: Option<Column> = Some(Column::TenantId);
    const NAME: Column = Column::Slug;
    const CREATED: Column = Column::CreatedAtUs;
    const UPDATED: Column = Column::UpdatedAtUs;
    const DELETED: Column = Column::DeletedAtUs;
    const REVISION: Column = Column::Revision;

    fn identity(resource: &RetryPolicy) -> Identity<'_> {
        Identity {
            id: resource.id.uuid(),
            tenant: Some(resource.tenant.uuid()),
            name: resource.slug.as_str(),
            revision: resource.meta.revision,
        }
    }

    fn meta(resource: &mut RetryPolicy) -> &mut Meta {
        &mut resource.meta
    }

    fn encode(resource: &RetryPolicy) -> Result<ActiveModel, Malformed> {
        let rule = serde_json::to_string(&resource.rule).ok();
        Ok(ActiveModel {
            id: Set(resource.id.uuid()),
            tenant_id: Set(resource.tenant.uuid()),
            slug: Set(resource.slug.as_str().to_owned()),
            version: Set(resource.version),
            rule: Set(cell::expect("rule", rule)?),
            labels: Set(cell::labels_text(&resource.labels)),
            created_at_us: Set(resource.meta.created_at.micros()),
            updated_at_us: Set(resource.meta.updated_at.micros()),
            deleted_at_us: Set(None),
            purged_at_us: Set(None),
            revision: Set(resource.meta.revision.0),
        })
    }

    fn decode(row: Model) -> Result<Deletable<RetryPolicy>, Malformed> {
        let value = RetryPolicy {
            id: RetryPolicyId::from_uuid(row.id),
            tenant: TenantId::from_uuid(row.tenant_id),
            slug: cell::resource_id(row.slug)?,
            version: row.version,
            rule: cell::expect("rule", serde_json::from_str(&row.rule).ok())?,
            labels: cell::labels(&row.labels)?,
            meta: cell::meta(row.created_at_us, row.updated_at_us, row.revision),
        };
        Ok(Deletable { value, deleted: row.deleted_at_us.is_some() })
    }
}
