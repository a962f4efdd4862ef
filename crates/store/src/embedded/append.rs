//! `EventLog` on SQLite.

use super::EmbeddedQueue;
use crate::{
    channels,
    first::{
        FirstSeen, Key, Plan, Refused, RefusedBy, body_key_of, body_of, first_uid, key_of, plan,
        resolve,
    },
    micros, order,
};
use async_trait::async_trait;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};
use std::{collections::HashMap, sync::Arc, time::Duration};
use turnbuckle_domain::{
    Append, AppendResult, EventLog, EventUid, NewDelivery, Shard, StoreError, Timestamp,
    dedup_limits, id_mark,
};
use uuid::Uuid;

const INSERT_DEDUP: &str = include_str!("sql/insert_dedup.sql");
const INSERT_EVENT: &str = include_str!("sql/insert_event.sql");
const INSERT_DELIVERY: &str = include_str!("sql/insert_delivery.sql");
const FIND_FIRST: &str = include_str!("sql/find_first.sql");
const RECORD_ANOMALY: &str = include_str!("sql/record_anomaly.sql");
const PRUNE_DEDUP: &str = include_str!("sql/prune_dedup.sql");
const PRUNE_ANOMALIES: &str = include_str!("sql/prune_anomalies.sql");

#[async_trait]
impl EventLog for EmbeddedQueue {
    async fn append(&self, batch: &[Append]) -> Result<Vec<AppendResult>, StoreError> {
        // Appends are a few pointers; the payloads are shared.
        let shared: Arc<[Append]> = batch.into();
        self.writer.run(move |connection| append(connection, &shared)).await
    }

    async fn prune_dedup(
        &self,
        now: Timestamp,
        oldest_anomaly: Timestamp,
    ) -> Result<u64, StoreError> {
        let limit = dedup_limits::PRUNED_AT_ONCE;
        let prune = move |connection: &Connection| {
            let ids =
                connection.prepare_cached(PRUNE_DEDUP)?.execute(params![now.micros(), limit])?;
            let mut anomalies = connection.prepare_cached(PRUNE_ANOMALIES)?;
            Ok(ids.max(anomalies.execute(params![oldest_anomaly.micros(), limit])?) as u64)
        };
        self.writer.run(prune).await
    }
}

/// The three statements of a new event, looked up once for a batch.
struct Inserts<'c> {
    dedup: CachedStatement<'c>,
    event: CachedStatement<'c>,
    delivery: CachedStatement<'c>,
}

impl<'c> Inserts<'c> {
    fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            dedup: connection.prepare_cached(INSERT_DEDUP)?,
            event: connection.prepare_cached(INSERT_EVENT)?,
            delivery: connection.prepare_cached(INSERT_DELIVERY)?,
        })
    }
}

fn append(connection: &Connection, batch: &[Append]) -> rusqlite::Result<Vec<AppendResult>> {
    let plan = plan(batch);
    let mut refused = Refused::new();
    let mut firsts = HashMap::new();
    let mut inserts = Inserts::prepare(connection)?;
    let mut has_watched = false;
    for &index in &plan.writers {
        let append = &batch[index];
        if let Some((by, key)) = take_keys(connection, &mut inserts.dedup, append)? {
            refused.insert(append.event.uid, by);
            if let Some((first, _)) = find_first(connection, &key)? {
                firsts.insert(key, first);
            }
        } else {
            insert_event(&mut inserts.event, append)?;
            if order::is_watched(append) {
                // When its deliveries are due is not known yet.
                has_watched = true;
                continue;
            }
            for delivery in &append.deliveries {
                insert_delivery(&mut inserts.delivery, append, delivery)?;
            }
        }
    }
    let mut results = resolve(batch, &plan, &refused, &firsts);
    if has_watched {
        let watched = order::watched(batch, &plan, &refused);
        order::answer(&mut results, super::order::place(connection, watched)?);
    }
    record_anomalies(connection, batch, &plan, &results, &firsts)?;
    Ok(results)
}

/// Takes the keys of an event, or none of them when one is known: which one that is.
fn take_keys(
    connection: &Connection,
    insert: &mut CachedStatement<'_>,
    append: &Append,
) -> rusqlite::Result<Option<(RefusedBy, Key)>> {
    let Some(rule) = append.dedup else { return Ok(None) };
    let body = body_of(append).zip(body_key_of(append));
    if let Some((_, key)) = &body
        && let Some((_, until)) = find_first(connection, key)?
        && append.event.accepted_at < until
    {
        return Ok(Some((RefusedBy::Body, key.clone())));
    }
    let key = key_of(append);
    if !insert_dedup(insert, append, &key, &append.content_hash, rule.window)? {
        return Ok(Some((RefusedBy::Id, key)));
    }
    if let Some((body, key)) = &body {
        let mark = id_mark(&append.event.event_id);
        insert_dedup(insert, append, key, &mark, body.window)?;
    }
    Ok(None)
}

fn insert_dedup(
    insert: &mut CachedStatement<'_>,
    append: &Append,
    (tenant, key, source): &Key,
    content_hash: &[u8; 32],
    window: Duration,
) -> rusqlite::Result<bool> {
    let inserted = insert.execute(params![
        tenant.uuid().as_bytes(),
        key,
        source,
        append.event.uid.uuid().as_bytes(),
        content_hash,
        append.event.accepted_at.micros(),
        micros(window),
    ])?;
    Ok(inserted == 1)
}

/// What was stored first under a key, and when its window is over.
fn find_first(
    connection: &Connection,
    (tenant, key, source): &Key,
) -> rusqlite::Result<Option<(FirstSeen, Timestamp)>> {
    connection
        .prepare_cached(FIND_FIRST)?
        .query_row(params![tenant.uuid().as_bytes(), key, source], |row| {
            let first = FirstSeen {
                uid: EventUid::from_uuid(Uuid::from_bytes(row.get(0)?)),
                content_hash: row.get(1)?,
                accepted_at: Timestamp::from_micros(row.get(2)?),
            };
            Ok((first, Timestamp::from_micros(row.get(3)?)))
        })
        .optional()
}

fn insert_event(insert: &mut CachedStatement<'_>, append: &Append) -> rusqlite::Result<()> {
    let event = &append.event;
    insert.execute(params![
        event.tenant.uuid().as_bytes(),
        event.uid.uuid().as_bytes(),
        event.source,
        event.event_id,
        event.event_type.as_str(),
        event.event_version,
        event.subject,
        event.sequence,
        event.content_type,
        event.occurred_at.micros(),
        event.accepted_at.micros(),
        &event.data[..],
        channels::text(&event.channels),
    ])?;
    Ok(())
}

fn insert_delivery(
    insert: &mut CachedStatement<'_>,
    append: &Append,
    delivery: &NewDelivery,
) -> rusqlite::Result<()> {
    let event = &append.event;
    insert.execute(params![
        event.tenant.uuid().as_bytes(),
        delivery.id.uuid().as_bytes(),
        delivery.endpoint.uuid().as_bytes(),
        event.uid.uuid().as_bytes(),
        Shard::of(delivery.endpoint).number(),
        delivery.format.code(),
        event.accepted_at.micros(),
    ])?;
    Ok(())
}

fn record_anomalies(
    connection: &Connection,
    batch: &[Append],
    plan: &Plan,
    results: &[AppendResult],
    firsts: &HashMap<Key, FirstSeen>,
) -> rusqlite::Result<()> {
    for (index, append) in batch.iter().enumerate() {
        if results[index] != AppendResult::Anomaly {
            continue;
        }
        let event = &append.event;
        let first = first_uid(batch, plan, firsts, index);
        connection.prepare_cached(RECORD_ANOMALY)?.execute(params![
            event.tenant.uuid().as_bytes(),
            event.event_id,
            event.source,
            append.content_hash,
            first.uuid().as_bytes(),
            event.accepted_at.micros(),
        ])?;
    }
    Ok(())
}
