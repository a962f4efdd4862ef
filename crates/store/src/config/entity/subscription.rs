//! Subscriptions.

use crate::{
    channels,
    config::{
        cell::{self, Malformed},
        table::{Identity, Table},
    },
};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{
    Deletable, EndpointId, Filter, Meta, PayloadFormat, ResourceKind, Subscription, SubscriptionId,
    TenantId,
};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "subscription")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub tenant_id: Uuid,
    pub slug: String,
    pub endpoint_id: Uuid,
    pub patterns: String,
    pub format: i16,
    pub filter: Option<String>,
    pub labels: String,
    pub created_at_us: i64,
    pub updated_at_us: i64,
    pub deleted_at_us: Option<i64>,
    pub purged_at_us: Option<i64>,
    pub revision: i64,
    pub channels: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Table for Entity {
    type Resource = Subscription;

    const COLLECTION: &'static str = "subscriptions";
    const KIND: ResourceKind = ResourceKind::Subscription;
    const ID: Column = Column::Id;
    const TENANT: Option<Column> = Some(Column::TenantId);
    const NAME: Column = Column::Slug;
    const CREATED: Column = Column::CreatedAtUs;
    const UPDATED: Column = Column::UpdatedAtUs;
    const DELETED: Column = Column::DeletedAtUs;
    const REVISION: Column = Column::Revision;

    fn identity(resource: &Subscription) -> Identity<'_> {
        Identity {
            id: resource.id.uuid(),
            tenant: Some(resource.tenant.uuid()),
            name: resource.slug.as_str(),
            revision: resource.meta.revision,
        }
    }

    fn meta(resource: &mut Subscription) -> &mut Meta {
        &mut resource.meta
    }

    fn encode(resource: &Subscription) -> Result<ActiveModel, Malformed> {
        Ok(ActiveModel {
            id: Set(resource.id.uuid()),
            tenant_id: Set(resource.tenant.uuid()),
            slug: Set(resource.slug.as_str().to_owned()),
            endpoint_id: Set(resource.endpoint.uuid()),
            patterns: Set(cell::patterns_text(&resource.patterns)),
            format: Set(resource.format.code()),
            filter: Set(resource.filter.as_ref().map(Filter::to_string)),
            labels: Set(cell::labels_text(&resource.labels)),
            created_at_us: Set(resource.meta.created_at.micros()),
            updated_at_us: Set(resource.meta.updated_at.micros()),
            deleted_at_us: Set(None),
            purged_at_us: Set(None),
            revision: Set(resource.meta.revision.0),
            channels: Set(channels::text(&resource.channels)),
        })
    }

    fn decode(row: Model) -> Result<Deletable<Subscription>, Malformed> {
        let value = Subscription {
            id: SubscriptionId::from_uuid(row.id),
            tenant: TenantId::from_uuid(row.tenant_id),
            slug: cell::resource_id(row.slug)?,
            endpoint: EndpointId::from_uuid(row.endpoint_id),
            patterns: cell::patterns(&row.patterns)?,
            format: cell::expect("format", PayloadFormat::from_code(row.format))?,
            filter: cell::filter(row.filter.as_deref())?,
            channels: cell::expect("channels", channels::parse(row.channels.as_deref()))?,
            labels: cell::labels(&row.labels)?,
            meta: cell::meta(row.created_at_us, row.updated_at_us, row.revision),
        };
        Ok(Deletable { value, deleted: row.deleted_at_us.is_some() })
    }
}
