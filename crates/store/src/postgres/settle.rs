//! Writing the results of turns.

use crate::{error::sqlx_error, micros};
use sqlx::{PgPool, Row as _};
use std::collections::HashSet;
use turnbuckle_domain::{Attempt, FinishReason, Next, Settlement, StoreError, Timestamp, WorkerId};
use uuid::Uuid;

const SETTLE: &str = include_str!("sql/settle.sql");
const SETTLE_LATE: &str = include_str!("sql/settle_late.sql");

/// Writes turns, each of another delivery; answers the deliveries that had moved on.
pub(super) async fn write<'a>(
    pool: &PgPool,
    worker: WorkerId,
    turns: impl Iterator<Item = &'a Settlement> + Clone,
) -> Result<HashSet<Uuid>, StoreError> {
    let all = || turns.clone();
    let attempts = Attempts::of(all());
    let rows = sqlx::query(SETTLE)
        .bind(worker.uuid())
        .bind(all().map(|s| s.tenant.uuid()).collect::<Vec<_>>())
        .bind(all().map(|s| s.delivery.uuid()).collect::<Vec<_>>())
        .bind(all().map(|s| s.lease.shard.number()).collect::<Vec<_>>())
        .bind(all().map(|s| s.lease.epoch).collect::<Vec<_>>())
        .bind(all().map(|s| count(s.attempts_before)).collect::<Vec<_>>())
        .bind(all().map(|s| count(s.attempts_after())).collect::<Vec<_>>())
        .bind(all().map(|s| state_code(&s.next)).collect::<Vec<_>>())
        .bind(all().map(|s| reason(&s.next)).collect::<Vec<_>>())
        .bind(all().map(|s| written_at(s).micros()).collect::<Vec<_>>())
        .bind(attempts.turns(|s| s.tenant.uuid()))
        .bind(attempts.turns(|s| s.delivery.uuid()))
        .bind(attempts.turns(|s| count(s.attempts_after())))
        .bind(attempts.column(|a| a.started_at.micros()))
        .bind(attempts.column(|a| micros(a.duration)))
        .bind(attempts.text(|a| &a.outcome))
        .bind(attempts.column(|a| a.status.map(i32::from)))
        .bind(attempts.text(|a| &a.detail))
        .bind(attempts.column(|a| a.retry_delay.map(micros)))
        .bind(attempts.column(|a| a.retry_after_honoured))
        .fetch_all(pool)
        .await
        .map_err(sqlx_error)?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Records the attempts of turns whose delivery was finished meanwhile.
pub(super) async fn record_late(
    pool: &PgPool,
    worker: WorkerId,
    turns: &[&Settlement],
) -> Result<(), StoreError> {
    let attempts = Attempts::of(turns.iter().copied());
    if attempts.0.is_empty() {
        return Ok(());
    }
    sqlx::query(SETTLE_LATE)
        .bind(worker.uuid())
        .bind(attempts.turns(|s| s.tenant.uuid()))
        .bind(attempts.turns(|s| s.delivery.uuid()))
        .bind(attempts.turns(|s| s.lease.shard.number()))
        .bind(attempts.turns(|s| s.lease.epoch))
        .bind(attempts.turns(|s| count(s.attempts_after())))
        .bind(attempts.column(|a| a.started_at.micros()))
        .bind(attempts.column(|a| micros(a.duration)))
        .bind(attempts.text(|a| &a.outcome))
        .bind(attempts.column(|a| a.status.map(i32::from)))
        .bind(attempts.text(|a| &a.detail))
        .bind(attempts.column(|a| a.retry_delay.map(micros)))
        .bind(attempts.column(|a| a.retry_after_honoured))
        .execute(pool)
        .await
        .map_err(sqlx_error)?;
    Ok(())
}

/// The turns that made an attempt, column by column.
struct Attempts<'a>(Vec<(&'a Settlement, &'a Attempt)>);

impl<'a> Attempts<'a> {
    fn of(turns: impl Iterator<Item = &'a Settlement>) -> Self {
        Self(turns.filter_map(|s| s.attempt.as_ref().map(|attempt| (s, attempt))).collect())
    }

    fn turns<T>(&self, read: impl Fn(&Settlement) -> T) -> Vec<T> {
        self.0.iter().map(|(turn, _)| read(turn)).collect()
    }

    fn column<T>(&self, read: impl Fn(&Attempt) -> T) -> Vec<T> {
        self.0.iter().map(|(_, attempt)| read(attempt)).collect()
    }

    fn text(&self, read: impl Fn(&'a Attempt) -> &'a str) -> Vec<&'a str> {
        self.0.iter().map(|(_, attempt)| read(attempt)).collect()
    }
}

pub(super) fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

pub(super) const fn state_code(next: &Next) -> i16 {
    match next {
        Next::Retry { .. } => 0,
        Next::Finish { state, .. } => state.code(),
    }
}

pub(super) fn reason(next: &Next) -> Option<&'static str> {
    match next {
        Next::Retry { .. } => None,
        Next::Finish { reason, .. } => reason.map(FinishReason::as_str),
    }
}

/// The one time a settlement writes: when it is due again, or when it was finished.
const fn written_at(settlement: &Settlement) -> Timestamp {
    match settlement.next {
        Next::Retry { due_at } => due_at,
        Next::Finish { .. } => settlement.at,
    }
}
