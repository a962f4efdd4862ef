//! Tenants.

use crate::config::{
    cell::{self, Malformed},
    table::{Identity, Table},
};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{Deletable, Meta, ResourceKind, Tenant, TenantId};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "tenant")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub slug: String,
    pub display_name: String,
    pub labels: String,
    pub created_at_us: i64,
    pub updated_at_us: i64,
    pub deleted_at_us: Option<i64>,
    pub revision: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Table for Entity {
    type Resource = Tenant;

    const COLLECTION: &'static str = "tenants";
    const KIND: ResourceKind = ResourceKind::Tenant;
    const ID: Column = Column::Id;
    const TENANT: Option<Column> = None;
    const NAME: Column = Column::Slug;
    const CREATED: Column = Column::CreatedAtUs;
    const UPDATED: Column = Column::UpdatedAtUs;
    const DELETED: Column = Column::DeletedAtUs;
    const REVISION: Column = Column::Revision;

    fn identity(resource: &Tenant) -> Identity<'_> {
        Identity {
            id: resource.id.uuid(),
            tenant: None,
            name: resource.slug.as_str(),
            revision: resource.meta.revision,
        }
    }

    fn meta(resource: &mut Tenant) -> &mut Meta {
        &mut resource.meta
    }

    fn encode(resource: &Tenant) -> Result<ActiveModel, Malformed> {
        Ok(ActiveModel {
            id: Set(resource.id.uuid()),
            slug: Set(resource.slug.as_str().to_owned()),
            display_name: Set(resource.display_name.clone()),
            labels: Set(cell::labels_text(&resource.labels)),
            created_at_us: Set(resource.meta.created_at.micros()),
            updated_at_us: Set(resource.meta.updated_at.micros()),
            deleted_at_us: Set(None),
            revision: Set(resource.meta.revision.0),
        })
    }

    fn decode(row: Model) -> Result<Deletable<Tenant>, Malformed> {
        let value = Tenant {
            id: TenantId::from_uuid(row.id),
            slug: cell::resource_id(row.slug)?,
            display_name: row.display_name,
            labels: cell::labels(&row.labels)?,
            meta: cell::meta(row.created_at_us, row.updated_at_us, row.revision),
        };
        Ok(Deletable { value, deleted: row.deleted_at_us.is_some() })
    }
}
