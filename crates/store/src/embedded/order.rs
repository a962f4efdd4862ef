//! The order of watched events, in the transaction that stores them.

use crate::order::{Decided, Row, Subject, TenantMove, Watched, decide, subjects};
use rusqlite::{Connection, OptionalExtension as _, params, types::Type};
use std::collections::BTreeMap;
use turnbuckle_domain::{EndpointId, EventUid, Placed, Shard, SubjectOrder};
use uuid::Uuid;

const READ: &str = include_str!("sql/order_read.sql");
const WRITE: &str = include_str!("sql/order_write.sql");
const DELIVERY: &str = include_str!("sql/order_delivery.sql");
const MOVE: &str = include_str!("sql/order_move.sql");
const FILE: &str = include_str!("sql/order_file.sql");
const WITHDRAW: &str = include_str!("sql/order_withdraw.sql");
const NOTE: &str = include_str!("sql/order_note.sql");

/// Puts events that were just stored into their order, with their deliveries.
pub(super) fn place(
    connection: &Connection,
    watched: Vec<Watched<'_>>,
) -> rusqlite::Result<Vec<(usize, Placed)>> {
    let mut states = BTreeMap::new();
    for subject in subjects(&watched) {
        if let Some(state) = read(connection, &subject)? {
            states.insert(subject, state);
        }
    }
    let decided = decide(watched, states);
    for (subject, state) in &decided.states {
        write(connection, subject, state)?;
    }
    insert_deliveries(connection, &decided)?;
    let mut note = connection.prepare_cached(NOTE)?;
    for (tenant, uid, order) in decided.notes() {
        note.execute(params![tenant.uuid().as_bytes(), uid.uuid().as_bytes(), order.as_str()])?;
    }
    let mut moved = Vec::new();
    for one in &decided.moves {
        apply(connection, one, &decided, &mut moved)?;
    }
    Ok(decided.finish(moved))
}

fn read(connection: &Connection, subject: &Subject) -> rusqlite::Result<Option<SubjectOrder>> {
    let (tenant, source, subject) = subject;
    let row = connection
        .prepare_cached(READ)?
        .query_row(params![tenant.uuid().as_bytes(), source, subject], |row| {
            Ok(Row {
                last_sequence: row.get(0)?,
                last_due_us: row.get(1)?,
                is_final: row.get(2)?,
                held: row.get(3)?,
                forget_at_us: row.get(4)?,
            })
        })
        .optional()?;
    let malformed = |error: crate::order::Malformed| {
        rusqlite::Error::FromSqlConversionFailure(3, Type::Text, error.into())
    };
    row.map(Row::decode).transpose().map_err(malformed)
}

fn write(connection: &Connection, subject: &Subject, state: &SubjectOrder) -> rusqlite::Result<()> {
    let Some(row) = Row::of(state) else { return Ok(()) };
    let (tenant, source, subject) = subject;
    connection.prepare_cached(WRITE)?.execute(params![
        tenant.uuid().as_bytes(),
        source,
        subject,
        row.last_sequence,
        row.is_final,
        row.held,
        row.forget_at_us,
        row.last_due_us,
    ])?;
    Ok(())
}

fn insert_deliveries(connection: &Connection, decided: &Decided<'_>) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(DELIVERY)?;
    for due in decided.deliveries() {
        let event = &due.append.event;
        insert.execute(params![
            event.tenant.uuid().as_bytes(),
            due.delivery.id.uuid().as_bytes(),
            due.delivery.endpoint.uuid().as_bytes(),
            event.uid.uuid().as_bytes(),
            Shard::of(due.delivery.endpoint).number(),
            due.delivery.format.code(),
            event.accepted_at.micros(),
            due.due_at.micros(),
        ])?;
    }
    Ok(())
}

/// Moves or withdraws the deliveries of an event that waited.
fn apply(
    connection: &Connection,
    one: &TenantMove,
    decided: &Decided<'_>,
    moved: &mut Vec<(EventUid, EndpointId)>,
) -> rusqlite::Result<()> {
    let tenant = one.tenant.uuid().into_bytes();
    let (first, last) = one.range();
    let (first, last) = (first.uuid().into_bytes(), last.uuid().into_bytes());
    let event = one.moved.event.uuid().into_bytes();
    let from = one.moved.from.micros();
    let Some(to) = one.moved.to else {
        let filed = params![tenant, first, last, event, from, decided.at().micros()];
        connection.prepare_cached(FILE)?.execute(filed)?;
        let gone = params![tenant, first, last, event, from];
        connection.prepare_cached(WITHDRAW)?.execute(gone)?;
        return Ok(());
    };
    let mut update = connection.prepare_cached(MOVE)?;
    let changed = params![tenant, first, last, event, from, to.micros()];
    for endpoint in update.query_map(changed, |row| row.get(0).map(Uuid::from_bytes))? {
        moved.push((one.moved.event, EndpointId::from_uuid(endpoint?)));
    }
    Ok(())
}
