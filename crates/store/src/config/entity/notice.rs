//! Operational events that wait to be published.

use crate::config::cell::{self, Malformed};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{Notice, OperationKind, OperationalEvent, TenantId, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "notice")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub tenant_id: Uuid,
    pub at_us: i64,
    pub event_type: String,
    pub subject: String,
    pub data: String,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

pub(in crate::config) fn encode(notice: &Notice) -> ActiveModel {
    let event = &notice.event;
    ActiveModel {
        id: Set(notice.id),
        tenant_id: Set(event.tenant.uuid()),
        at_us: Set(notice.at.micros()),
        event_type: Set(event.kind.event_type().to_owned()),
        subject: Set(event.subject.clone()),
        data: Set(event.data.to_string()),
    }
}

pub(in crate::config) fn decode(row: Model) -> Result<Notice, Malformed> {
    Ok(Notice {
        id: row.id,
        at: Timestamp::from_micros(row.at_us),
        event: OperationalEvent {
            tenant: TenantId::from_uuid(row.tenant_id),
            kind: cell::expect("event_type", OperationKind::parse(&row.event_type))?,
            subject: row.subject,
            data: cell::expect("data", serde_json::from_str(&row.data).ok())?,
        },
    })
}
