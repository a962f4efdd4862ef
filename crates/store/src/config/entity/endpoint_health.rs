//! Health of endpoints.

use crate::config::cell::{self, Malformed};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{EndpointHealth, EndpointId, Failing, TenantId, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "endpoint_health")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub endpoint_id: Uuid,
    pub tenant_id: Uuid,
    pub clean_since_us: Option<i64>,
    pub last_success_us: Option<i64>,
    pub last_failure_us: Option<i64>,
    pub failing_since_us: Option<i64>,
    pub failing_until_us: Option<i64>,
    pub failures: i64,
    pub failure_class: Option<String>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

pub(in crate::config) fn encode(health: &EndpointHealth) -> ActiveModel {
    let failing = health.failing.as_ref();
    let count = failing.map_or(0, |failing| i64::try_from(failing.count).unwrap_or(i64::MAX));
    ActiveModel {
        endpoint_id: Set(health.endpoint.uuid()),
        tenant_id: Set(health.tenant.uuid()),
        clean_since_us: Set(health.clean_since.map(Timestamp::micros)),
        last_success_us: Set(health.last_success_at.map(Timestamp::micros)),
        last_failure_us: Set(health.last_failure_at.map(Timestamp::micros)),
        failing_since_us: Set(failing.map(|failing| failing.since.micros())),
        failing_until_us: Set(failing.map(|failing| failing.until.micros())),
        failures: Set(count),
        failure_class: Set(failing.map(|failing| failing.class.clone())),
    }
}

pub(in crate::config) fn decode(row: Model) -> Result<EndpointHealth, Malformed> {
    let count = cell::expect("failures", row.failures.try_into().ok())?;
    let failing = row.failing_since_us.zip(row.failing_until_us).zip(row.failure_class).map(
        |((since, until), class)| Failing {
            since: Timestamp::from_micros(since),
            until: Timestamp::from_micros(until),
            count,
            class,
        },
    );
    Ok(EndpointHealth {
        tenant: TenantId::from_uuid(row.tenant_id),
        endpoint: EndpointId::from_uuid(row.endpoint_id),
        clean_since: cell::micros(row.clean_since_us),
        last_success_at: cell::micros(row.last_success_us),
        last_failure_at: cell::micros(row.last_failure_us),
        failing,
    })
}
