//! Versions of event types.

use crate::config::{
    cell::{self, Malformed},
    table::{Identity, Table},
};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{
    Deletable, EventTypeId, EventTypeVersion, EventTypeVersionId, Meta, ResourceKind, TenantId,
    VersionName,
};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "event_type_version")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub tenant_id: Uuid,
    pub event_type_id: Uuid,
    pub version: String,
    pub schema: String,
    pub description: String,
    pub created_at_us: i64,
    pub updated_at_us: i64,
    pub deleted_at_us: Option<i64>,
    pub revision: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Table for Entity {
    type Resource = EventTypeVersion;

    const COLLECTION: &'static str = "versions";
    const KIND: ResourceKind = ResourceKind::EventTypeVersion;
    const ID: Column = Column::Id;
    const TENANT: Option<Column> = Some(Column::TenantId);
    const NAME: Column = Column::Version;
    const CREATED: Column = Column::CreatedAtUs;
    const UPDATED: Column = Column::UpdatedAtUs;
    const DELETED: Column = Column::DeletedAtUs;
    const REVISION: Column = Column::Revision;

    fn identity(resource: &EventTypeVersion) -> Identity<'_> {
        Identity {
            id: resource.id.uuid(),
            tenant: Some(resource.tenant.uuid()),
            name: resource.version.as_str(),
            revision: resource.meta.revision,
        }
    }

    fn meta(resource: &mut EventTypeVersion) -> &mut Meta {
        &mut resource.meta
    }

    fn encode(resource: &EventTypeVersion) -> Result<ActiveModel, Malformed> {
        Ok(ActiveModel {
            id: Set(resource.id.uuid()),
            tenant_id: Set(resource.tenant.uuid()),
            event_type_id: Set(resource.event_type.uuid()),
            version: Set(resource.version.as_str().to_owned()),
            schema: Set(resource.schema.clone()),
            description: Set(resource.description.clone()),
            created_at_us: Set(resource.meta.created_at.micros()),
            updated_at_us: Set(resource.meta.updated_at.micros()),
            deleted_at_us: Set(None),
            revision: Set(resource.meta.revision.0),
        })
    }

    fn decode(row: Model) -> Result<Deletable<EventTypeVersion>, Malformed> {
        let value = EventTypeVersion {
            id: EventTypeVersionId::from_uuid(row.id),
            tenant: TenantId::from_uuid(row.tenant_id),
            event_type: EventTypeId::from_uuid(row.event_type_id),
            version: cell::expect("version", VersionName::new(row.version).ok())?,
            schema: row.schema,
            description: row.description,
            meta: cell::meta(row.created_at_us, row.updated_at_us, row.revision),
        };
        Ok(Deletable { value, deleted: row.deleted_at_us.is_some() })
    }
}
