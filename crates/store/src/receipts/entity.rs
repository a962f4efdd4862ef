//! Receipts without their payloads.
#![expect(
    unreachable_pub,
    reason = "the derive makes public items, whose parts must be public too"
)]

use sea_orm::{ActiveValue::Set, entity::prelude::*};
use turnbuckle_domain::{
    EventUid, KeyId, KeyState, Receipt, ReceiptDecision, ReceiptId, SourceId, StoreError, TenantId,
    Timestamp,
};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "receipt")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub tenant_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub source_id: Uuid,
    pub source_slug: String,
    pub received_at_us: i64,
    pub decision: String,
    pub reason: String,
    pub status: i32,
    pub event_id: String,
    pub event_uid: Option<Uuid>,
    pub events: i64,
    pub key_id: Option<Uuid>,
    pub key_state: Option<String>,
    pub skew_ms: Option<i64>,
    pub body_bytes: i64,
    pub body_hash: Vec<u8>,
    pub headers: String,
    pub event_id_signed: Option<bool>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

pub(super) fn encode(receipt: &Receipt) -> Result<ActiveModel, StoreError> {
    let headers = serde_json::to_string(&receipt.headers);
    let headers = headers.map_err(|error| StoreError::Internal(error.into()))?;
    // Key and state go together: a state without its key says nothing.
    let state = receipt.key.and(receipt.key_state);
    Ok(ActiveModel {
        tenant_id: Set(receipt.tenant.uuid()),
        id: Set(receipt.id.uuid()),
        source_id: Set(receipt.source.uuid()),
        source_slug: Set(receipt.source_slug.clone()),
        received_at_us: Set(receipt.received_at.micros()),
        decision: Set(receipt.decision.as_str().to_owned()),
        reason: Set(receipt.reason.clone()),
        status: Set(i32::from(receipt.status)),
        event_id: Set(receipt.event_id.clone()),
        event_uid: Set(receipt.event.map(EventUid::uuid)),
        events: Set(i64::from(receipt.events)),
        key_id: Set(receipt.key.filter(|_| state.is_some()).map(KeyId::uuid)),
        key_state: Set(state.map(|state| state.as_str().to_owned())),
        skew_ms: Set(receipt.skew_ms),
        body_bytes: Set(i64::from(receipt.body_bytes)),
        body_hash: Set(receipt.body_hash.to_vec()),
        headers: Set(headers),
        event_id_signed: Set(receipt.event_id_signed),
    })
}

pub(super) fn decode(row: Model) -> Result<Receipt, StoreError> {
    let malformed =
        |what: &str| StoreError::Internal(format!("a receipt has an odd {what}").into());
    let key_state = match &row.key_state {
        Some(text) => Some(KeyState::parse(text).ok_or_else(|| malformed("key state"))?),
        None => None,
    };
    Ok(Receipt {
        id: ReceiptId::from_uuid(row.id),
        tenant: TenantId::from_uuid(row.tenant_id),
        source: SourceId::from_uuid(row.source_id),
        source_slug: row.source_slug,
        received_at: Timestamp::from_micros(row.received_at_us),
        decision: ReceiptDecision::parse(&row.decision).ok_or_else(|| malformed("decision"))?,
        reason: row.reason,
        status: u16::try_from(row.status).map_err(|_| malformed("status"))?,
        event_id: row.event_id,
        event_id_signed: row.event_id_signed,
        event: row.event_uid.map(EventUid::from_uuid),
        events: u32::try_from(row.events).map_err(|_| malformed("count"))?,
        key: row.key_id.map(KeyId::from_uuid),
        key_state,
        skew_ms: row.skew_ms,
        body_bytes: u32::try_from(row.body_bytes).map_err(|_| malformed("size"))?,
        body_hash: row.body_hash.try_into().map_err(|_| malformed("hash"))?,
        headers: serde_json::from_str(&row.headers).map_err(|_| malformed("header"))?,
        payload: None,
        payload_until: None,
        context: None,
    })
}
