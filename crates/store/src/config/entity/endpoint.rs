//! Endpoints.

use crate::config::{
    cell::{self, HiddenText, Malformed},
    table::{Identity, Table},
};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use std::{collections::BTreeMap, time::Duration};
use turnbuckle_domain::{
    Deletable, Endpoint, EndpointId, EndpointState, EndpointTarget, HttpTarget, Meta, PullTarget,
    ResourceKind, RetryPolicyId, SignatureProfile, TenantId, limits,
};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "endpoint")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub tenant_id: Uuid,
    pub slug: String,
    pub display_name: String,
    pub url: HiddenText,
    pub timeout_us: i64,
    pub headers: HiddenText,
    pub header_prefix: String,
    pub signature_profile: String,
    pub retry_policy_id: Option<Uuid>,
    pub max_in_flight: i16,
    pub state: String,
    pub disable_reason: Option<String>,
    pub labels: String,
    pub created_at_us: i64,
    pub updated_at_us: i64,
    pub deleted_at_us: Option<i64>,
    pub purged_at_us: Option<i64>,
    pub revision: i64,
    pub pull_lease_us: Option<i64>,
    pub pull_max_outstanding: Option<i32>,
    pub pull_ordered: Option<i16>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

const ACTIVE: &str = "active";
const DISABLED: &str = "disabled";
/// Stands where a URL stands otherwise. No URL that is accepted, so that nothing is ever sent there.
const PULL_URL: &str = "pull:";

impl Table for Entity {
    type Resource = Endpoint;

    const COLLECTION: &'static str = "endpoints";
    const KIND: ResourceKind = ResourceKind::Endpoint;
    const ID: Column = Column::Id;
    const TENANT: Option<Column> = Some(Column::TenantId);
    const NAME: Column = Column::Slug;
    const CREATED: Column = Column::CreatedAtUs;
    const UPDATED: Column = Column::UpdatedAtUs;
    const DELETED: Column = Column::DeletedAtUs;
    const REVISION: Column = Column::Revision;

    fn identity(resource: &Endpoint) -> Identity<'_> {
        Identity {
            id: resource.id.uuid(),
            tenant: Some(resource.tenant.uuid()),
            name: resource.slug.as_str(),
            revision: resource.meta.revision,
        }
    }

    fn meta(resource: &mut Endpoint) -> &mut Meta {
        &mut resource.meta
    }

    fn encode(resource: &Endpoint) -> Result<ActiveModel, Malformed> {
        let nowhere = pulled_from_nowhere();
        let target = resource.target.http().unwrap_or(&nowhere);
        let pull = resource.target.pull();
        let lease = pull.map(|pull| micros(pull.lease)).transpose()?;
        let timeout = micros(target.timeout)?;
        let max_in_flight = i16::try_from(resource.max_in_flight).ok();
        let (state, disable_reason) = match &resource.state {
            EndpointState::Active => (ACTIVE, None),
            EndpointState::Disabled { reason } => (DISABLED, Some(reason.clone())),
        };
        Ok(ActiveModel {
            id: Set(resource.id.uuid()),
            tenant_id: Set(resource.tenant.uuid()),
            slug: Set(resource.slug.as_str().to_owned()),
            display_name: Set(resource.display_name.clone()),
            url: Set(HiddenText(target.url.clone())),
            timeout_us: Set(timeout),
            headers: Set(cell::headers_text(&target.headers)),
            header_prefix: Set(target.header_prefix.clone()),
            signature_profile: Set(resource.signature_profile.as_str().to_owned()),
            retry_policy_id: Set(resource.retry_policy.map(RetryPolicyId::uuid)),
            max_in_flight: Set(cell::expect("max_in_flight", max_in_flight)?),
            state: Set(state.to_owned()),
            disable_reason: Set(disable_reason),
            labels: Set(cell::labels_text(&resource.labels)),
            created_at_us: Set(resource.meta.created_at.micros()),
            updated_at_us: Set(resource.meta.updated_at.micros()),
            deleted_at_us: Set(None),
            purged_at_us: Set(None),
            revision: Set(resource.meta.revision.0),
            pull_lease_us: Set(lease),
            pull_max_outstanding: Set(pull.map(|pull| i32::from(pull.max_outstanding))),
            pull_ordered: Set(pull.map(|pull| i16::from(pull.ordered_by_subject))),
        })
    }

    fn decode(row: Model) -> Result<Deletable<Endpoint>, Malformed> {
        let profile = SignatureProfile::parse(&row.signature_profile);
        let target = match pull_target(&row)? {
            Some(pull) => EndpointTarget::Pull(pull),
            None => EndpointTarget::Http(HttpTarget {
                timeout: duration("timeout_us", row.timeout_us)?,
                headers: cell::headers(&row.headers)?,
                url: row.url.0,
                header_prefix: row.header_prefix,
            }),
        };
        let value = Endpoint {
            id: EndpointId::from_uuid(row.id),
            tenant: TenantId::from_uuid(row.tenant_id),
            slug: cell::resource_id(row.slug)?,
            display_name: row.display_name,
            target,
            signature_profile: cell::expect("signature_profile", profile)?,
            retry_policy: row.retry_policy_id.map(RetryPolicyId::from_uuid),
            max_in_flight: cell::expect("max_in_flight", row.max_in_flight.try_into().ok())?,
            state: state(&row.state, row.disable_reason)?,
            labels: cell::labels(&row.labels)?,
            meta: cell::meta(row.created_at_us, row.updated_at_us, row.revision),
        };
        Ok(Deletable { value, deleted: row.deleted_at_us.is_some() })
    }
}

fn duration(column: &'static str, micros: i64) -> Result<Duration, Malformed> {
    cell::expect(column, micros.try_into().ok().map(Duration::from_micros))
}

fn micros(duration: Duration) -> Result<i64, Malformed> {
    cell::expect("timeout_us", i64::try_from(duration.as_micros()).ok())
}

/// What fills the columns of an HTTP receiver for a pull endpoint.
fn pulled_from_nowhere() -> HttpTarget {
    HttpTarget {
        url: PULL_URL.to_owned(),
        timeout: limits::TIMEOUT_DEFAULT,
        headers: BTreeMap::new(),
        header_prefix: String::new(),
    }
}

fn pull_target(row: &Model) -> Result<Option<PullTarget>, Malformed> {
    let (lease, most, ordered) =
        match (row.pull_lease_us, row.pull_max_outstanding, row.pull_ordered) {
            (None, None, None) => return Ok(None),
            (Some(lease), Some(most), Some(ordered)) => (lease, most, ordered),
            _ => return Err(Malformed { column: "pull_lease_us" }),
        };
    Ok(Some(PullTarget {
        lease: duration("pull_lease_us", lease)?,
        max_outstanding: cell::expect("pull_max_outstanding", most.try_into().ok())?,
        ordered_by_subject: ordered != 0,
    }))
}

fn state(state: &str, reason: Option<String>) -> Result<EndpointState, Malformed> {
    match (state, reason) {
        (ACTIVE, None) => Ok(EndpointState::Active),
        (DISABLED, Some(reason)) => Ok(EndpointState::Disabled { reason }),
        _ => Err(Malformed { column: "state" }),
    }
}
