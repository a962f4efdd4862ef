//! Rows of replays.
#![expect(
    unreachable_pub,
    reason = "the derive makes public items, whose parts must be public too"
)]

use super::filter;
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{
    Replay, ReplayCounts, ReplayId, ReplayScope, ReplayState, RequestKey, StoreError, TenantId,
    Timestamp,
};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "replay")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub scope: String,
    pub filter: String,
    pub endpoint_slug: String,
    pub rate: i32,
    pub reason: String,
    pub created_by: String,
    pub created_at_us: i64,
    pub request_id: Option<Uuid>,
    pub request_hash: Option<Vec<u8>>,
    pub state: String,
    pub last_id: Option<Uuid>,
    pub waiting: bool,
    pub looked_at: i64,
    pub matched: i64,
    pub reopened: i64,
    pub made: i64,
    pub skipped_pending: i64,
    pub skipped_inactive: i64,
    pub skipped_gone: i64,
    pub skipped_finished: i64,
    pub skipped_unwanted: i64,
    pub started_at_us: Option<i64>,
    pub updated_at_us: i64,
    pub finished_at_us: Option<i64>,
    pub failure: String,
    pub worker_id: Option<Uuid>,
    pub lease_token: i64,
    pub lease_until_us: i64,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// A new row; counters and lease begin at what the schema says.
pub(super) fn encode(
    replay: &Replay,
    request: Option<&RequestKey>,
) -> Result<ActiveModel, StoreError> {
    Ok(ActiveModel {
        tenant_id: Set(replay.tenant.uuid()),
        id: Set(replay.id.uuid()),
        scope: Set(replay.scope.as_str().to_owned()),
        filter: Set(filter::encode(&replay.filter)?),
        endpoint_slug: Set(replay.endpoint_slug.clone()),
        rate: Set(i32::try_from(replay.rate).unwrap_or(i32::MAX)),
        reason: Set(replay.reason.clone()),
        created_by: Set(replay.created_by.clone()),
        created_at_us: Set(replay.created_at.micros()),
        request_id: Set(request.map(|request| request.id)),
        request_hash: Set(request.map(|request| request.content.to_vec())),
        state: Set(ReplayState::Pending.as_str().to_owned()),
        updated_at_us: Set(replay.updated_at.micros()),
        ..<ActiveModel as Default>::default()
    })
}

pub(super) fn decode(row: Model) -> Result<Replay, StoreError> {
    let time = |micros: Option<i64>| micros.map(Timestamp::from_micros);
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    Ok(Replay {
        id: ReplayId::from_uuid(row.id),
        tenant: TenantId::from_uuid(row.tenant_id),
        scope: ReplayScope::parse(&row.scope).ok_or_else(|| corrupt("scope"))?,
        filter: filter::decode(&row.filter)?,
        endpoint_slug: row.endpoint_slug,
        rate: u32::try_from(row.rate).map_err(|_| corrupt("rate"))?,
        reason: row.reason,
        created_by: row.created_by,
        created_at: Timestamp::from_micros(row.created_at_us),
        state: ReplayState::parse(&row.state).ok_or_else(|| corrupt("state"))?,
        counts: ReplayCounts {
            looked_at: count(row.looked_at),
            matched: count(row.matched),
            reopened: count(row.reopened),
            made: count(row.made),
            skipped_pending: count(row.skipped_pending),
            skipped_inactive: count(row.skipped_inactive),
            skipped_gone: count(row.skipped_gone),
            skipped_finished: count(row.skipped_finished),
            skipped_unwanted: count(row.skipped_unwanted),
        },
        position: row.last_id,
        waiting: row.waiting,
        started_at: time(row.started_at_us),
        updated_at: Timestamp::from_micros(row.updated_at_us),
        finished_at: time(row.finished_at_us),
        failure: row.failure,
    })
}

pub(super) fn corrupt(column: &'static str) -> StoreError {
    StoreError::Internal(format!("a replay has an impossible {column}").into())
}
