//! `PullQueue` on SQLite. Everything runs on the writer thread, so claims exclude each other.

use super::{
    EmbeddedQueue,
    queue::{INSERT_ATTEMPT, REMOVE, read_claimed},
};
use crate::micros;
use async_trait::async_trait;
use rusqlite::{CachedStatement, Connection, params};
use std::{collections::HashSet, sync::Arc};
use turnbuckle_domain::{
    Attempt, FinishReason, Lapsed, LeaseExtension, LeaseToken, Leased, Next, PullClaim, PullQueue,
    PullSettlement, Settled, StoreError, Timestamp,
};

const DUE: &str = include_str!("sql/pulled_due.sql");
const SUBJECTS: &str = include_str!("sql/pulled_subjects.sql");
const LEASE: &str = include_str!("sql/lease_pulled.sql");
const FILE: &str = include_str!("sql/file_pulled.sql");
const GIVE_BACK: &str = include_str!("sql/give_back_pulled.sql");
const EXTEND: &str = include_str!("sql/extend_pulled.sql");
/// Due rows that a claim by subject looks at: deliveries of subjects that wait are walked over up to this
/// many, then those behind them wait too.
const WALK_MAX: usize = 100_000;

#[async_trait]
impl PullQueue for EmbeddedQueue {
    async fn claim(&self, claim: &PullClaim) -> Result<Vec<Leased>, StoreError> {
        let claim = *claim;
        self.writer.run(move |connection| lease_due(connection, &claim)).await
    }

    async fn settle(&self, batch: &[PullSettlement]) -> Result<Vec<Settled>, StoreError> {
        let batch: Arc<[PullSettlement]> = batch.into();
        self.writer.run(move |connection| settle(connection, &batch)).await
    }

    async fn extend(&self, batch: &[LeaseExtension]) -> Result<Vec<Settled>, StoreError> {
        let batch = batch.to_vec();
        self.writer.run(move |connection| extend(connection, &batch)).await
    }
}

fn lease_due(connection: &Connection, claim: &PullClaim) -> rusqlite::Result<Vec<Leased>> {
    let mut leased = find_due(connection, claim)?;
    let mut lease = connection.prepare_cached(LEASE)?;
    for one in &mut leased {
        one.token = LeaseToken((one.token.0 + 1).max(claim.now.micros()));
        one.delivery.due_at = claim.until;
        lease.execute(params![
            one.delivery.tenant.uuid().as_bytes(),
            one.delivery.id.uuid().as_bytes(),
            claim.until.micros(),
            claim.now.micros(),
            one.token.0,
        ])?;
    }
    Ok(leased)
}

/// What is to be leased, still with the token before.
fn find_due(connection: &Connection, claim: &PullClaim) -> rusqlite::Result<Vec<Leased>> {
    let mut subjects = match claim.by_subject {
        true => subjects(connection, claim)?,
        false => HashSet::new(),
    };
    let (due_at, id) = if claim.by_subject { PullClaim::START } else { claim.after };
    let mut statement = connection.prepare_cached(DUE)?;
    let mut rows = statement.query(params![
        claim.shard().number(),
        claim.endpoint.uuid().into_bytes(),
        claim.now.micros(),
        due_at.micros(),
        id.uuid().into_bytes(),
    ])?;
    let mut found = Vec::new();
    let mut looked_at = 0;
    while found.len() < usize::from(claim.limit)
        && looked_at < WALK_MAX
        && let Some(row) = rows.next()?
    {
        looked_at += 1;
        let (token, leased_at): (i64, Option<i64>) = (row.get(22)?, row.get(23)?);
        // A row that some consumer had is the first of its subject; of the others the first is taken,
        // unless its subject is out already.
        if claim.by_subject
            && token == 0
            && let Some(subject) = row.get::<_, Option<String>>(14)?
            && !subjects.insert(subject)
        {
            continue;
        }
        match read_claimed(row) {
            Ok(claimed) => {
                let was_due_at = claimed.delivery.due_at;
                let lapsed = leased_at.map(|leased_at| Lapsed {
                    leased_at: Timestamp::from_micros(leased_at),
                    expired_at: was_due_at,
                });
                let (delivery, event) = (claimed.delivery, claimed.event);
                found.push(Leased {
                    delivery,
                    was_due_at,
                    event,
                    token: LeaseToken(token),
                    lapsed,
                });
            }
            // A row that this program cannot read must not hold back the others (I13).
            Err(error @ rusqlite::Error::InvalidColumnType(..)) => {
                tracing::error!(%error, "a delivery cannot be read");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn subjects(connection: &Connection, claim: &PullClaim) -> rusqlite::Result<HashSet<String>> {
    let mut statement = connection.prepare_cached(SUBJECTS)?;
    let subjects = statement.query_map([claim.endpoint.uuid().into_bytes()], |row| row.get(0))?;
    subjects.collect()
}

fn settle(connection: &Connection, batch: &[PullSettlement]) -> rusqlite::Result<Vec<Settled>> {
    let mut writes = Writes {
        give_back: connection.prepare_cached(GIVE_BACK)?,
        file: connection.prepare_cached(FILE)?,
        remove: connection.prepare_cached(REMOVE)?,
        attempt: connection.prepare_cached(INSERT_ATTEMPT)?,
    };
    batch.iter().map(|settlement| writes.settle(settlement)).collect()
}

/// What a settlement may need, looked up once for a batch.
struct Writes<'c> {
    give_back: CachedStatement<'c>,
    file: CachedStatement<'c>,
    remove: CachedStatement<'c>,
    attempt: CachedStatement<'c>,
}

impl Writes<'_> {
    fn settle(&mut self, settlement: &PullSettlement) -> rusqlite::Result<Settled> {
        let tenant = settlement.tenant.uuid().into_bytes();
        let id = settlement.delivery.uuid().into_bytes();
        let (before, token) = (settlement.attempts_before, settlement.token.0);
        let after = settlement.attempts_after();
        let applied = match settlement.next {
            Next::Retry { due_at } => {
                let bound = params![tenant, id, before, token, after, due_at.micros()];
                self.give_back.execute(bound)? == 1
            }
            Next::Finish { state, reason } => {
                let reason = reason.map(FinishReason::as_str);
                let at = settlement.at.micros();
                let bound = params![tenant, id, before, token, state.code(), reason, after, at];
                let filed = self.file.execute(bound)? == 1;
                if filed {
                    self.remove.execute(params![tenant, id])?;
                }
                filed
            }
        };
        if let Some(attempt) = settlement.attempt.as_ref().filter(|_| applied) {
            self.insert_attempt(settlement, attempt)?;
        }
        Ok(if applied { Settled::Applied } else { Settled::Stale })
    }

    fn insert_attempt(
        &mut self,
        settlement: &PullSettlement,
        attempt: &Attempt,
    ) -> rusqlite::Result<()> {
        self.attempt.execute(params![
            settlement.tenant.uuid().as_bytes(),
            settlement.delivery.uuid().as_bytes(),
            settlement.attempts_after(),
            attempt.started_at.micros(),
            micros(attempt.duration),
            attempt.outcome,
            attempt.status,
            attempt.detail,
            attempt.retry_delay.map(micros),
            attempt.retry_after_honoured,
        ])?;
        Ok(())
    }
}

fn extend(connection: &Connection, batch: &[LeaseExtension]) -> rusqlite::Result<Vec<Settled>> {
    let mut statement = connection.prepare_cached(EXTEND)?;
    let mut one = |lease: &LeaseExtension| {
        let tenant = lease.tenant.uuid().into_bytes();
        let id = lease.delivery.uuid().into_bytes();
        let moved = statement.execute(params![tenant, id, lease.token.0, lease.until.micros()])?;
        Ok(if moved == 1 { Settled::Applied } else { Settled::Stale })
    };
    batch.iter().map(&mut one).collect()
}
