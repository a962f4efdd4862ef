//! `PullQueue` on Postgres.

use super::{
    PostgresQueue,
    queue::{claimed, readable},
    settle::{count, reason, state_code},
};
use crate::{error::sqlx_error, immediate::begin_on, micros};
use async_trait::async_trait;
use sqlx::{Row as _, postgres::PgRow};
use std::collections::HashSet;
use turnbuckle_domain::{
    Attempt, DeliveryId, Lapsed, LeaseExtension, LeaseToken, Leased, Next, PullClaim, PullQueue,
    PullSettlement, Settled, StoreError, Timestamp,
};
use uuid::Uuid;

const CLAIM: &str = include_str!("sql/claim_pulled.sql");
const CLAIM_BY_SUBJECT: &str = include_str!("sql/claim_pulled_by_subject.sql");
const SETTLE: &str = include_str!("sql/settle_pulled.sql");
const EXTEND: &str = include_str!("sql/extend_pulled.sql");
/// Held to the end of the transaction. Claims of other endpoints that share the number only wait.
const ONE_AT_A_TIME: &str = "select pg_advisory_xact_lock(hashtextextended($1::text, 7420))";
/// Due rows that one statement of a claim by subject looks at.
const WALK_ROWS: i64 = 1_000;
/// Statements of one claim by subject: 100,000 deliveries of subjects that wait are walked over before
/// those behind them have to wait too.
const WALKS_MAX: usize = 100;

#[async_trait]
impl PullQueue for PostgresQueue {
    async fn claim(&self, claim: &PullClaim) -> Result<Vec<Leased>, StoreError> {
        let mut leased = match claim.by_subject {
            true => self.claim_by_subject(claim).await?,
            false => {
                let rows = query(CLAIM, claim, claim.after, i32::from(claim.limit));
                let rows = rows.fetch_all(&self.pool).await.map_err(sqlx_error)?;
                rows.iter().filter_map(|row| readable(read(row))).collect()
            }
        };
        // The joins keep no order.
        leased.sort_by_key(|leased| (leased.was_due_at, leased.delivery.id));
        Ok(leased)
    }

    async fn settle(&self, batch: &[PullSettlement]) -> Result<Vec<Settled>, StoreError> {
        let mut seen = HashSet::with_capacity(batch.len());
        // Of a delivery named twice the first counts: one statement cannot write a row twice.
        let turns: Vec<(usize, &PullSettlement)> =
            batch.iter().enumerate().filter(|(_, turn)| seen.insert(turn.delivery)).collect();
        let stale = self.write(turns.iter().map(|(_, turn)| *turn)).await?;
        let mut answers = vec![Settled::Stale; batch.len()];
        for (index, turn) in turns {
            if !stale.contains(&turn.delivery.uuid()) {
                answers[index] = Settled::Applied;
            }
        }
        Ok(answers)
    }

    async fn extend(&self, batch: &[LeaseExtension]) -> Result<Vec<Settled>, StoreError> {
        let rows = sqlx::query(EXTEND)
            .bind(batch.iter().map(|one| one.tenant.uuid()).collect::<Vec<_>>())
            .bind(batch.iter().map(|one| one.delivery.uuid()).collect::<Vec<_>>())
            .bind(batch.iter().map(|one| one.token.0).collect::<Vec<_>>())
            .bind(batch.iter().map(|one| one.until.micros()).collect::<Vec<_>>())
            .fetch_all(&self.pool)
            .await
            .map_err(sqlx_error)?;
        let moved: HashSet<Uuid> = rows.iter().map(|row| row.get(0)).collect();
        let answer = |one: &LeaseExtension| match moved.contains(&one.delivery.uuid()) {
            true => Settled::Applied,
            false => Settled::Stale,
        };
        Ok(batch.iter().map(answer).collect())
    }
}

impl PostgresQueue {
    async fn claim_by_subject(&self, claim: &PullClaim) -> Result<Vec<Leased>, StoreError> {
        let mut transaction = begin_on(&self.pool).await.map_err(sqlx_error)?;
        sqlx::query(ONE_AT_A_TIME)
            .bind(claim.endpoint.to_string())
            .execute(&mut *transaction)
            .await
            .map_err(sqlx_error)?;
        let mut leased: Vec<Leased> = Vec::new();
        let mut after = PullClaim::START;
        for _ in 0..WALKS_MAX {
            let room = usize::from(claim.limit).saturating_sub(leased.len());
            let room = i32::try_from(room).unwrap_or(i32::MAX);
            let rows = query(CLAIM_BY_SUBJECT, claim, after, room).bind(WALK_ROWS);
            let rows = rows.fetch_all(&mut *transaction).await.map_err(sqlx_error)?;
            let Some(walk) = rows.first() else { break };
            let looked_at: i64 = walk.get(25);
            if looked_at > 0 {
                after = (Timestamp::from_micros(walk.get(26)), DeliveryId::from_uuid(walk.get(27)));
            }
            let found = rows.iter().filter(|row| row.get::<Option<Uuid>, _>(1).is_some());
            leased.extend(found.filter_map(|row| readable(read(row))));
            if looked_at < WALK_ROWS || leased.len() >= usize::from(claim.limit) {
                break;
            }
        }
        transaction.commit().await.map_err(sqlx_error)?;
        Ok(leased)
    }

    /// Writes turns, each of another delivery; answers the deliveries whose lease had moved on.
    async fn write<'a>(
        &self,
        turns: impl Iterator<Item = &'a PullSettlement> + Clone + Send,
    ) -> Result<HashSet<Uuid>, StoreError> {
        let all = || turns.clone();
        let attempts: Vec<(&PullSettlement, &Attempt)> =
            all().filter_map(|turn| turn.attempt.as_ref().map(|attempt| (turn, attempt))).collect();
        let of = || attempts.iter();
        let rows = sqlx::query(SETTLE)
            .bind(all().map(|s| s.tenant.uuid()).collect::<Vec<_>>())
            .bind(all().map(|s| s.delivery.uuid()).collect::<Vec<_>>())
            .bind(all().map(|s| s.token.0).collect::<Vec<_>>())
            .bind(all().map(|s| count(s.attempts_before)).collect::<Vec<_>>())
            .bind(all().map(|s| count(s.attempts_after())).collect::<Vec<_>>())
            .bind(all().map(|s| state_code(&s.next)).collect::<Vec<_>>())
            .bind(all().map(|s| reason(&s.next)).collect::<Vec<_>>())
            .bind(all().map(|s| written_at(s).micros()).collect::<Vec<_>>())
            .bind(of().map(|(s, _)| s.tenant.uuid()).collect::<Vec<_>>())
            .bind(of().map(|(s, _)| s.delivery.uuid()).collect::<Vec<_>>())
            .bind(of().map(|(s, _)| count(s.attempts_after())).collect::<Vec<_>>())
            .bind(of().map(|(_, a)| a.started_at.micros()).collect::<Vec<_>>())
            .bind(of().map(|(_, a)| micros(a.duration)).collect::<Vec<_>>())
            .bind(of().map(|(_, a)| &*a.outcome).collect::<Vec<&str>>())
            .bind(of().map(|(_, a)| a.status.map(i32::from)).collect::<Vec<_>>())
            .bind(of().map(|(_, a)| &*a.detail).collect::<Vec<&str>>())
            .bind(of().map(|(_, a)| a.retry_delay.map(micros)).collect::<Vec<_>>())
            .bind(of().map(|(_, a)| a.retry_after_honoured).collect::<Vec<_>>())
            .fetch_all(&self.pool)
            .await
            .map_err(sqlx_error)?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}

/// The one time a settlement writes: when it is due again, or when it was finished.
const fn written_at(settlement: &PullSettlement) -> Timestamp {
    match settlement.next {
        Next::Retry { due_at } => due_at,
        Next::Finish { .. } => settlement.at,
    }
}

type Query = sqlx::query::Query<'static, sqlx::Postgres, sqlx::postgres::PgArguments>;

fn query(
    text: &'static str,
    claim: &PullClaim,
    after: (Timestamp, DeliveryId),
    limit: i32,
) -> Query {
    sqlx::query(text)
        .bind(claim.shard().number())
        .bind(claim.endpoint.uuid())
        .bind(claim.now.micros())
        .bind(after.0.micros())
        .bind(after.1.uuid())
        .bind(limit)
        .bind(claim.until.micros())
}

fn read(row: &PgRow) -> Result<Leased, StoreError> {
    let claimed = claimed(row)?;
    let was_due_at = Timestamp::from_micros(row.get(23));
    let lapsed = row.get::<Option<i64>, _>(24).map(|leased_at| Lapsed {
        leased_at: Timestamp::from_micros(leased_at),
        expired_at: was_due_at,
    });
    Ok(Leased {
        delivery: claimed.delivery,
        was_due_at,
        event: claimed.event,
        token: LeaseToken(row.get(22)),
        lapsed,
    })
}
