//! Event types.

use crate::config::{
    cell::{self, Malformed},
    table::{Identity, Table},
};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{
    Compatibility, Deletable, EventType, EventTypeId, Meta, ResourceKind, TenantId, TypeName,
    UnknownVersion,
};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "event_type")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub tenant_id: Uuid,
    pub type_name: String,
    pub description: String,
    pub labels: String,
    pub created_at_us: i64,
    pub updated_at_us: i64,
    pub deleted_at_us: Option<i64>,
    pub revision: i64,
    pub compatibility: String,
    pub unknown_version: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Table for Entity {
    type Resource = EventType;

    const COLLECTION: &'static str = "eventTypes";
    const KIND: ResourceKind = ResourceKind::EventType;
    const ID: Column = Column::Id;
    const TENANT: Option<Column> = Some(Column::TenantId);
    const NAME: Column = Column::TypeName;
    const CREATED: Column = Column::CreatedAtUs;
    const UPDATED: Column = Column::UpdatedAtUs;
    const DELETED: Column = Column::DeletedAtUs;
    const REVISION: Column = Column::Revision;

    fn identity(resource: &EventType) -> Identity<'_> {
        Identity {
            id: resource.id.uuid(),
            tenant: Some(resource.tenant.uuid()),
            name: resource.type_name.as_str(),
            revision: resource.meta.revision,
        }
    }

    fn meta(resource: &mut EventType) -> &mut Meta {
        &mut resource.meta
    }

    fn encode(resource: &EventType) -> Result<ActiveModel, Malformed> {
        Ok(ActiveModel {
            id: Set(resource.id.uuid()),
            tenant_id: Set(resource.tenant.uuid()),
            type_name: Set(resource.type_name.as_str().to_owned()),
            description: Set(resource.description.clone()),
            labels: Set(cell::labels_text(&resource.labels)),
            created_at_us: Set(resource.meta.created_at.micros()),
            updated_at_us: Set(resource.meta.updated_at.micros()),
            deleted_at_us: Set(None),
            revision: Set(resource.meta.revision.0),
            compatibility: Set(resource.compatibility.as_str().to_owned()),
            unknown_version: Set(resource.unknown_version.as_str().to_owned()),
        })
    }

    fn decode(row: Model) -> Result<Deletable<EventType>, Malformed> {
        let value = EventType {
            id: EventTypeId::from_uuid(row.id),
            tenant: TenantId::from_uuid(row.tenant_id),
            type_name: cell::expect("type_name", TypeName::new(row.type_name).ok())?,
            description: row.description,
            compatibility: cell::expect("compatibility", Compatibility::parse(&row.compatibility))?,
            unknown_version: cell::expect(
                "unknown_version",
                UnknownVersion::parse(&row.unknown_version),
            )?,
            labels: cell::labels(&row.labels)?,
            meta: cell::meta(row.created_at_us, row.updated_at_us, row.revision),
        };
        Ok(Deletable { value, deleted: row.deleted_at_us.is_some() })
    }
}
