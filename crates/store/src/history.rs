//! `History` on both backends: what a person reads and does, one statement each through sea-orm.

use crate::{channels, error::store_error, immediate::begin_write};
use async_trait::async_trait;
use bytes::Bytes;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, QueryResult, Statement, Value};
use std::{borrow::Cow, time::Duration};
use turnbuckle_domain::{
    Attempt, Delivery, DeliveryFilter, DeliveryId, DeliveryState, DeliveryView, EndpointId, Event,
    EventFilter, EventOrder, EventUid, FinishReason, Finished, History, Shard, StoreError,
    TenantId, Timestamp, TypeName,
};
use uuid::Uuid;

/// Reads and operator verbs over the event log and the queue.
#[derive(Clone)]
pub(crate) struct HistoryDb {
    db: DatabaseConnection,
}

pub(crate) const EVENT_COLUMNS: &str = "tenant_id, uid, source, event_id, event_type, event_version, subject, \
                             sequence, content_type, occurred_at_us, accepted_at_us, channels, \
                             event_order";

pub(crate) const EVENTS_IN_RANGE: &str = include_str!("history/events_in_range.sql");

/// Live and finished deliveries in one shape. The event and endpoint are joined by primary key.
const DELIVERY_VIEW: &str = include_str!("history/delivery_view.sql");
const ATTEMPTS: &str = include_str!("history/attempts.sql");
const RETRY_PENDING: &str = include_str!("history/retry_pending.sql");
const REOPEN: &str = include_str!("history/reopen.sql");
const CANCEL: &str = include_str!("history/cancel.sql");

impl HistoryDb {
    /// Reads through this connection pool.
    #[must_use]
    pub(crate) const fn new(db: DatabaseConnection) -> Self {
        Self { db }
    }

    fn statement(&self, sql: impl Into<String>, values: Vec<Value>) -> Statement {
        Statement::from_sql_and_values(self.db.get_database_backend(), sql, values)
    }

    async fn rows(
        &self,
        sql: impl Into<String>,
        values: Vec<Value>,
    ) -> Result<Vec<QueryResult>, StoreError> {
        self.db.query_all_raw(self.statement(sql, values)).await.map_err(store_error)
    }

    async fn views(
        &self,
        conditions: &[String],
        values: Vec<Value>,
        limit: u16,
    ) -> Result<Vec<DeliveryView>, StoreError> {
        let filter = conditions.join(" and ");
        let sql = DELIVERY_VIEW
            .replace("/* filter */", &filter)
            .replace("/* limit */", &limit.to_string());
        self.rows(sql, values).await?.iter().map(view).collect()
    }
}

#[async_trait]
impl History for HistoryDb {
    async fn event(&self, tenant: TenantId, uid: EventUid) -> Result<Option<Event>, StoreError> {
        let sql =
            format!("select {EVENT_COLUMNS}, data from event where tenant_id = $1 and uid = $2");
        let rows = self.rows(sql, vec![tenant.uuid().into(), uid.uuid().into()]).await?;
        rows.first().map(|row| event(row, true)).transpose()
    }

    async fn events(
        &self,
        tenant: TenantId,
        filter: &EventFilter,
        after: Option<EventUid>,
        limit: u16,
    ) -> Result<Vec<Event>, StoreError> {
        let mut query = Query::for_tenant(tenant);
        if let Some(after) = after {
            query.and("uid <", after.uuid());
        }
        if let Some(event_type) = &filter.event_type {
            query.and("event_type =", event_type.as_str());
        }
        if let Some(event_id) = &filter.event_id {
            // Through the dedup key; an id made by us is the uid itself and has no entry there.
            let made_by_us =
                event_id.parse::<EventUid>().map_or_else(|_| Uuid::nil(), EventUid::uuid);
            let place = query.place(event_id.as_str());
            let own = query.place(made_by_us);
            query.conditions.push(format!(
                "event_id = {place} and uid in (select uid from event_dedup where tenant_id = $1 and event_id = {place} \
                 union all select {own})"
            ));
        }
        let sql = format!(
            "select {EVENT_COLUMNS} from event where {} order by uid desc limit {limit}",
            query.conditions.join(" and ")
        );
        self.rows(sql, query.values).await?.iter().map(|row| event(row, false)).collect()
    }

    async fn delivery(
        &self,
        tenant: TenantId,
        id: DeliveryId,
    ) -> Result<Option<DeliveryView>, StoreError> {
        let mut query = Query::for_tenant(tenant);
        query.and("id =", id.uuid());
        Ok(self.views(&query.conditions, query.values, 1).await?.pop())
    }

    async fn deliveries(
        &self,
        tenant: TenantId,
        filter: &DeliveryFilter,
        after: Option<DeliveryId>,
        limit: u16,
    ) -> Result<Vec<DeliveryView>, StoreError> {
        let mut query = Query::for_tenant(tenant);
        if let Some(after) = after {
            query.and("id <", after.uuid());
        }
        if let Some(endpoint) = filter.endpoint {
            query.and("endpoint_id =", endpoint.uuid());
        }
        if let Some(event) = filter.event {
            let (first, last) = DeliveryId::range_of(event);
            query.and("id >=", first.uuid());
            query.and("id <=", last.uuid());
            query.and("event_uid =", event.uuid());
        }
        if let Some(state) = filter.state {
            query.and("state =", i32::from(state.code()));
        }
        self.views(&query.conditions, query.values, limit).await
    }

    async fn attempts(
        &self,
        tenant: TenantId,
        id: DeliveryId,
        after: u32,
        limit: u16,
    ) -> Result<Vec<Attempt>, StoreError> {
        let values = vec![
            tenant.uuid().into(),
            id.uuid().into(),
            // Numbers are stored with a sign; above its largest there is none.
            i32::try_from(after).unwrap_or(i32::MAX).into(),
            i64::from(limit).into(),
        ];
        let rows = self.rows(ATTEMPTS, values).await?;
        rows.iter().map(attempt).collect()
    }

    async fn retry(
        &self,
        tenant: TenantId,
        id: DeliveryId,
        now: Timestamp,
    ) -> Result<Finished, StoreError> {
        let keys = || vec![tenant.uuid().into(), id.uuid().into(), now.micros().into()];
        let transaction = begin_write(&self.db).await.map_err(store_error)?;
        let pending = self.statement(RETRY_PENDING, keys());
        if transaction.execute_raw(pending).await.map_err(store_error)?.rows_affected() == 1 {
            transaction.commit().await.map_err(store_error)?;
            return Ok(Finished::Changed);
        }
        let done = "delete from delivery_done where tenant_id = $1 and id = $2 \
                    returning endpoint_id, event_uid, format, attempts";
        let found = self.statement(done, vec![tenant.uuid().into(), id.uuid().into()]);
        let Some(row) = transaction.query_one_raw(found).await.map_err(store_error)? else {
            transaction.rollback().await.map_err(store_error)?;
            return Ok(Finished::Missing);
        };
        let endpoint: Uuid = get(&row, "endpoint_id")?;
        let mut values = keys();
        values.extend([
            endpoint.into(),
            get::<Uuid>(&row, "event_uid")?.into(),
            i32::from(Shard::of(EndpointId::from_uuid(endpoint)).number()).into(),
            i32::from(get::<i16>(&row, "format")?).into(),
            get::<i32>(&row, "attempts")?.into(),
        ]);
        let reopen = self.statement(REOPEN, values);
        if transaction.execute_raw(reopen).await.map_err(store_error)?.rows_affected() == 0 {
            // The event is gone: leave the finished delivery as it was.
            transaction.rollback().await.map_err(store_error)?;
            return Ok(Finished::Refused);
        }
        transaction.commit().await.map_err(store_error)?;
        Ok(Finished::Changed)
    }

    async fn cancel(
        &self,
        tenant: TenantId,
        id: DeliveryId,
        now: Timestamp,
    ) -> Result<Finished, StoreError> {
        let transaction = begin_write(&self.db).await.map_err(store_error)?;
        let live = "delete from delivery where tenant_id = $1 and id = $2 \
                    returning endpoint_id, event_uid, format, attempts";
        let found = self.statement(live, vec![tenant.uuid().into(), id.uuid().into()]);
        let Some(row) = transaction.query_one_raw(found).await.map_err(store_error)? else {
            transaction.rollback().await.map_err(store_error)?;
            let exists = self.delivery(tenant, id).await?.is_some();
            return Ok(if exists { Finished::Refused } else { Finished::Missing });
        };
        let values = vec![
            tenant.uuid().into(),
            id.uuid().into(),
            now.micros().into(),
            get::<Uuid>(&row, "endpoint_id")?.into(),
            get::<Uuid>(&row, "event_uid")?.into(),
            i32::from(get::<i16>(&row, "format")?).into(),
            get::<i32>(&row, "attempts")?.into(),
            FinishReason::CancelledByCaller.as_str().into(),
        ];
        transaction.execute_raw(self.statement(CANCEL, values)).await.map_err(store_error)?;
        transaction.commit().await.map_err(store_error)?;
        Ok(Finished::Changed)
    }
}

/// Conditions with numbered places; the tenant is always the first, so no read can forget it (I12).
struct Query {
    conditions: Vec<String>,
    values: Vec<Value>,
}

impl Query {
    fn for_tenant(tenant: TenantId) -> Self {
        Self { conditions: vec!["tenant_id = $1".into()], values: vec![tenant.uuid().into()] }
    }

    fn place(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("${}", self.values.len())
    }

    fn and(&mut self, comparison: &str, value: impl Into<Value>) {
        let place = self.place(value);
        self.conditions.push(format!("{comparison} {place}"));
    }
}

fn get<T: sea_orm::TryGetable>(row: &QueryResult, column: &str) -> Result<T, StoreError> {
    row.try_get::<T>("", column).map_err(store_error)
}

fn count(row: &QueryResult, column: &'static str) -> Result<u32, StoreError> {
    u32::try_from(get::<i32>(row, column)?).map_err(|_| corrupt(column))
}

fn time(row: &QueryResult, column: &str) -> Result<Timestamp, StoreError> {
    get(row, column).map(Timestamp::from_micros)
}

pub(crate) fn event(row: &QueryResult, with_data: bool) -> Result<Event, StoreError> {
    let data = if with_data { get::<Vec<u8>>(row, "data")? } else { Vec::new() };
    Ok(Event {
        uid: EventUid::from_uuid(get(row, "uid")?),
        tenant: TenantId::from_uuid(get(row, "tenant_id")?),
        event_id: get(row, "event_id")?,
        event_type: TypeName::new(get::<String>(row, "event_type")?)
            .map_err(|_| corrupt("event_type"))?,
        event_version: get(row, "event_version")?,
        occurred_at: time(row, "occurred_at_us")?,
        source: get(row, "source")?,
        subject: get(row, "subject")?,
        sequence: get(row, "sequence")?,
        content_type: get(row, "content_type")?,
        data: Bytes::from(data),
        accepted_at: time(row, "accepted_at_us")?,
        channels: channels::parse(get::<Option<String>>(row, "channels")?.as_deref())
            .ok_or_else(|| corrupt("channels"))?,
        order: get::<Option<String>>(row, "event_order")?
            .map(|text| EventOrder::parse(&text).ok_or_else(|| corrupt("event_order")))
            .transpose()?,
    })
}

fn view(row: &QueryResult) -> Result<DeliveryView, StoreError> {
    let reason = get::<Option<String>>(row, "reason")?
        .map(|text| FinishReason::parse(&text).ok_or_else(|| corrupt("reason")))
        .transpose()?;
    let state = i16::try_from(get::<i32>(row, "state")?).ok().and_then(DeliveryState::from_code);
    Ok(DeliveryView {
        delivery: Delivery {
            id: DeliveryId::from_uuid(get(row, "id")?),
            tenant: TenantId::from_uuid(get(row, "tenant_id")?),
            endpoint: EndpointId::from_uuid(get(row, "endpoint_id")?),
            event: EventUid::from_uuid(get(row, "event_uid")?),
            state: state.ok_or_else(|| corrupt("state"))?,
            attempts: count(row, "attempts")?,
            due_at: get::<Option<i64>>(row, "due_at_us")?.map(Timestamp::from_micros),
            finished_at: get::<Option<i64>>(row, "finished_at_us")?.map(Timestamp::from_micros),
            reason,
        },
        event_id: get::<Option<String>>(row, "event_id")?.unwrap_or_default(),
        event_type: get::<Option<String>>(row, "event_type")?.unwrap_or_default(),
        endpoint_slug: get::<Option<String>>(row, "endpoint_slug")?.unwrap_or_default(),
    })
}

fn attempt(row: &QueryResult) -> Result<Attempt, StoreError> {
    let duration = |micros: i64| Duration::from_micros(u64::try_from(micros).unwrap_or(0));
    Ok(Attempt {
        number: count(row, "number")?,
        started_at: time(row, "started_at_us")?,
        duration: duration(get(row, "duration_us")?),
        outcome: Cow::Owned(get(row, "outcome")?),
        status: get::<Option<i32>>(row, "status")?.and_then(|status| u16::try_from(status).ok()),
        detail: Cow::Owned(get(row, "detail")?),
        retry_delay: get::<Option<i64>>(row, "retry_delay_us")?.map(duration),
        retry_after_honoured: get::<i32>(row, "retry_after_honoured")? != 0,
    })
}

fn corrupt(column: &'static str) -> StoreError {
    store_error(DbErr::Type(format!("impossible value in {column}")))
}
