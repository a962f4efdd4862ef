//! Sources.

use crate::config::{
    cell::{self, HiddenText, Malformed},
    table::{Identity, Table},
};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{
    Deletable, IngestPath, IngestToken, Meta, ResourceKind, SchemeChoice, SchemeDocument, Source,
    SourceId, TenantId, Timestamp,
};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "source")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub tenant_id: Uuid,
    pub slug: String,
    pub display_name: String,
    pub preset: Option<String>,
    pub scheme: Option<String>,
    pub scheme_settings: HiddenText,
    pub ingest_token: HiddenText,
    pub previous_token: Option<HiddenText>,
    pub previous_until_us: Option<i64>,
    pub public_url: Option<HiddenText>,
    pub settings: String,
    pub labels: String,
    pub created_at_us: i64,
    pub updated_at_us: i64,
    pub deleted_at_us: Option<i64>,
    pub disable_reason: Option<String>,
    pub purged_at_us: Option<i64>,
    pub revision: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl Table for Entity {
    type Resource = Source;

    const COLLECTION: &'static str = "sources";
    const KIND: ResourceKind = ResourceKind::Source;
    const ID: Column = Column::Id;
    const TENANT: Option<Column> = Some(Column::TenantId);
    const NAME: Column = Column::Slug;
    const CREATED: Column = Column::CreatedAtUs;
    const UPDATED: Column = Column::UpdatedAtUs;
    const DELETED: Column = Column::DeletedAtUs;
    const REVISION: Column = Column::Revision;

    fn identity(resource: &Source) -> Identity<'_> {
        Identity {
            id: resource.id.uuid(),
            tenant: Some(resource.tenant.uuid()),
            name: resource.slug.as_str(),
            revision: resource.meta.revision,
        }
    }

    fn meta(resource: &mut Source) -> &mut Meta {
        &mut resource.meta
    }

    fn encode(resource: &Source) -> Result<ActiveModel, Malformed> {
        let (preset, scheme) = match &resource.scheme {
            SchemeChoice::Preset(name) => (Some(name.clone()), None),
            SchemeChoice::Custom(document) => (None, Some(document.as_str().to_owned())),
        };
        let text = |token: &IngestToken| HiddenText(token.as_str().to_owned());
        let previous = resource.path.previous.as_ref();
        let settings = serde_json::to_string(&resource.settings).ok();
        Ok(ActiveModel {
            id: Set(resource.id.uuid()),
            tenant_id: Set(resource.tenant.uuid()),
            slug: Set(resource.slug.as_str().to_owned()),
            display_name: Set(resource.display_name.clone()),
            preset: Set(preset),
            scheme: Set(scheme),
            scheme_settings: Set(cell::headers_text(&resource.scheme_settings)),
            ingest_token: Set(text(&resource.path.token)),
            previous_token: Set(previous.map(|(token, _)| text(token))),
            previous_until_us: Set(previous.map(|(_, until)| until.micros())),
            public_url: Set(resource.public_url.clone().map(HiddenText)),
            settings: Set(cell::expect("settings", settings)?),
            labels: Set(cell::labels_text(&resource.labels)),
            created_at_us: Set(resource.meta.created_at.micros()),
            updated_at_us: Set(resource.meta.updated_at.micros()),
            deleted_at_us: Set(None),
            disable_reason: Set(resource.disabled.clone()),
            purged_at_us: Set(None),
            revision: Set(resource.meta.revision.0),
        })
    }

    fn decode(row: Model) -> Result<Deletable<Source>, Malformed> {
        let value = Source {
            id: SourceId::from_uuid(row.id),
            tenant: TenantId::from_uuid(row.tenant_id),
            slug: cell::resource_id(row.slug)?,
            display_name: row.display_name,
            scheme: scheme(row.preset, row.scheme)?,
            scheme_settings: cell::headers(&row.scheme_settings)?,
            path: IngestPath {
                token: token(&row.ingest_token)?,
                previous: previous(row.previous_token, row.previous_until_us)?,
            },
            public_url: row.public_url.map(|url| url.0),
            settings: cell::expect("settings", serde_json::from_str(&row.settings).ok())?,
            disabled: row.disable_reason,
            labels: cell::labels(&row.labels)?,
            meta: cell::meta(row.created_at_us, row.updated_at_us, row.revision),
        };
        Ok(Deletable { value, deleted: row.deleted_at_us.is_some() })
    }
}

fn scheme(preset: Option<String>, document: Option<String>) -> Result<SchemeChoice, Malformed> {
    let choice = match (preset, document) {
        (Some(name), None) => Some(SchemeChoice::Preset(name)),
        (None, Some(text)) => SchemeDocument::new(text).ok().map(SchemeChoice::Custom),
        _ => None,
    };
    cell::expect("scheme", choice)
}

fn token(text: &HiddenText) -> Result<IngestToken, Malformed> {
    cell::expect("ingest_token", IngestToken::parse(&text.0))
}

fn previous(
    text: Option<HiddenText>,
    until: Option<i64>,
) -> Result<Option<(IngestToken, Timestamp)>, Malformed> {
    match (text, until) {
        (None, None) => Ok(None),
        (Some(text), Some(until)) => Ok(Some((token(&text)?, Timestamp::from_micros(until)))),
        _ => Err(Malformed { column: "previous_token" }),
    }
}
