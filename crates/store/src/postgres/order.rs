//! Events whose order is watched: stored and put into their order in one transaction.

use super::{PostgresQueue, append::insert};
use crate::{
    error::sqlx_error,
    first::{Plan, Refused},
    immediate::begin_on,
    order::{Decided, DueDelivery, Row, Subject, TenantMove, decide, subjects, watched},
};
use sqlx::{PgConnection, Row as _, postgres::PgRow};
use std::collections::BTreeMap;
use turnbuckle_domain::{
    Append, EndpointId, EventUid, Placed, Shard, StoreError, SubjectOrder, TenantId,
};
use uuid::Uuid;

const LOCK: &str = include_str!("sql/order_lock.sql");
const WRITE: &str = include_str!("sql/order_write.sql");

/// What an append with watched events answers: who was refused, and what became of the watched ones.
type Stored = (Refused, Vec<(usize, Placed)>);

impl PostgresQueue {
    /// Stores a batch of which some events are watched.
    pub(super) async fn insert_watched(
        &self,
        batch: &[Append],
        plan: &Plan,
    ) -> Result<Stored, StoreError> {
        let mut transaction = begin_on(&self.pool).await.map_err(sqlx_error)?;
        let refused = insert(&mut *transaction, batch, &plan.writers).await?;
        let watched = watched(batch, plan, &refused);
        let placed = if watched.is_empty() {
            Vec::new()
        } else {
            // The keys of events are locked by now, in their order, and subjects come after them:
            // whoever waits for a subject holds nothing that its holder still wants.
            let states = lock(&mut transaction, &subjects(&watched)).await?;
            let decided = decide(watched, states);
            let moved = write(&mut transaction, &decided).await?;
            decided.finish(moved)
        };
        transaction.commit().await.map_err(sqlx_error)?;
        Ok((refused, placed))
    }
}

async fn lock(
    connection: &mut PgConnection,
    subjects: &[Subject],
) -> Result<BTreeMap<Subject, SubjectOrder>, StoreError> {
    let rows = sqlx::query(LOCK)
        .bind(subjects.iter().map(|(tenant, ..)| tenant.uuid()).collect::<Vec<_>>())
        .bind(subjects.iter().map(|(_, source, _)| source.as_str()).collect::<Vec<_>>())
        .bind(subjects.iter().map(|(.., subject)| subject.as_str()).collect::<Vec<_>>())
        .fetch_all(connection)
        .await
        .map_err(sqlx_error)?;
    rows.iter().map(state).collect()
}

fn state(row: &PgRow) -> Result<(Subject, SubjectOrder), StoreError> {
    let subject = (TenantId::from_uuid(row.get(0)), row.get(1), row.get(2));
    let state = Row {
        last_sequence: row.get(3),
        last_due_us: row.get(4),
        is_final: row.get(5),
        held: row.get(6),
        forget_at_us: row.get(7),
    };
    Ok((subject, state.decode()?))
}

/// Answers event and endpoint of each delivery that is due at another time now.
async fn write(
    connection: &mut PgConnection,
    decided: &Decided<'_>,
) -> Result<Vec<(EventUid, EndpointId)>, StoreError> {
    let states: Vec<(&Subject, Row)> = decided
        .states
        .iter()
        .filter_map(|(subject, state)| Some((subject, Row::of(state)?)))
        .collect();
    let deliveries: Vec<DueDelivery<'_>> = decided.deliveries().collect();
    let due = |read: fn(&DueDelivery<'_>) -> Uuid| deliveries.iter().map(read).collect::<Vec<_>>();
    let moves = &decided.moves;
    let moved = |read: fn(&TenantMove) -> Uuid| moves.iter().map(read).collect::<Vec<_>>();
    let notes: Vec<_> = decided.notes().collect();
    let rows = sqlx::query(WRITE)
        .bind(states.iter().map(|((tenant, ..), _)| tenant.uuid()).collect::<Vec<_>>())
        .bind(states.iter().map(|((_, source, _), _)| source.as_str()).collect::<Vec<_>>())
        .bind(states.iter().map(|((.., subject), _)| subject.as_str()).collect::<Vec<_>>())
        .bind(states.iter().map(|(_, row)| row.last_sequence).collect::<Vec<_>>())
        .bind(states.iter().map(|(_, row)| row.is_final).collect::<Vec<_>>())
        .bind(states.iter().map(|(_, row)| row.held.as_deref()).collect::<Vec<_>>())
        .bind(states.iter().map(|(_, row)| row.forget_at_us).collect::<Vec<_>>())
        .bind(due(|d| d.append.event.tenant.uuid()))
        .bind(due(|d| d.delivery.id.uuid()))
        .bind(due(|d| d.delivery.endpoint.uuid()))
        .bind(due(|d| d.append.event.uid.uuid()))
        .bind(
            deliveries.iter().map(|d| Shard::of(d.delivery.endpoint).number()).collect::<Vec<_>>(),
        )
        .bind(deliveries.iter().map(|d| d.delivery.format.code()).collect::<Vec<_>>())
        .bind(deliveries.iter().map(|d| d.append.event.accepted_at.micros()).collect::<Vec<_>>())
        .bind(deliveries.iter().map(|d| d.due_at.micros()).collect::<Vec<_>>())
        .bind(moved(|m| m.tenant.uuid()))
        .bind(moved(|m| m.moved.event.uuid()))
        .bind(moved(|m| m.range().0.uuid()))
        .bind(moved(|m| m.range().1.uuid()))
        .bind(moves.iter().map(|m| m.moved.from.micros()).collect::<Vec<_>>())
        .bind(moves.iter().map(|m| m.moved.to.map(|to| to.micros())).collect::<Vec<_>>())
        .bind(notes.iter().map(|(tenant, ..)| tenant.uuid()).collect::<Vec<_>>())
        .bind(notes.iter().map(|(_, uid, _)| uid.uuid()).collect::<Vec<_>>())
        .bind(notes.iter().map(|(.., order)| order.as_str()).collect::<Vec<_>>())
        .bind(decided.at().micros())
        .bind(states.iter().map(|(_, row)| row.last_due_us).collect::<Vec<_>>())
        .fetch_all(connection)
        .await
        .map_err(sqlx_error)?;
    let moved = |row: &PgRow| (EventUid::from_uuid(row.get(0)), EndpointId::from_uuid(row.get(1)));
    Ok(rows.iter().map(moved).collect())
}
