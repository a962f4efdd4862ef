//! Steps on Postgres: a few statements in one transaction.

use super::{
    ended_at, state_after,
    tally::{Fate, Tally},
};
use crate::{error::sqlx_error, immediate::begin_on};
use sqlx::{PgConnection, PgPool, Row as _};
use std::collections::HashMap;
use turnbuckle_domain::{
    DeliveryId, DeliveryState, EventUid, Reopening, ReplayEnd, ReplayLease, ReplayStep, Shard,
    StepDone, StoreError, TenantId,
};
use uuid::Uuid;

const HOLD: &str = "select 1 from replay where tenant_id = $1 and id = $2 and lease_token = $3 \
                    and state = 'running' and ($4 or last_id is not distinct from $5) \
                    for update";
/// Steps of a tenant that look for deliveries before they make some take turns.
const ONE_AT_A_TIME: &str = "select pg_advisory_xact_lock(hashtextextended($1::text, 7423))";
const FIND: &str = include_str!("find_postgres.sql");
const REOPEN: &str = include_str!("reopen_postgres.sql");
const MAKE: &str = include_str!("make_postgres.sql");
const ADVANCE: &str = include_str!("advance.sql");

/// Does a step; none when the lease holds no more.
pub(super) async fn step(
    pool: &PgPool,
    lease: &ReplayLease,
    step: &ReplayStep,
) -> Result<Option<StepDone>, StoreError> {
    let mut transaction = begin_on(pool).await.map_err(sqlx_error)?;
    // Whoever pauses or cancels waits for this row, and so for the end of the step.
    let held = sqlx::query(HOLD)
        .bind(lease.tenant.uuid())
        .bind(lease.replay.uuid())
        .bind(lease.token)
        .bind(step.position.is_none())
        .bind(step.after)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(sqlx_error)?;
    if held.is_none() {
        transaction.rollback().await.map_err(sqlx_error)?;
        return Ok(None);
    }
    let mut tally = Tally::of(step);
    if !step.place.is_empty() {
        sqlx::query(ONE_AT_A_TIME)
            .bind(lease.tenant.uuid())
            .execute(&mut *transaction)
            .await
            .map_err(sqlx_error)?;
        find(&mut transaction, lease.tenant, step, &mut tally).await?;
    }
    reopen(&mut transaction, lease.tenant, step, &mut tally).await?;
    make(&mut transaction, lease.tenant, step, &mut tally).await?;
    advance(&mut transaction, lease, step, &tally).await?;
    transaction.commit().await.map_err(sqlx_error)?;
    Ok(Some(tally.finish()))
}

async fn find<'s>(
    connection: &mut PgConnection,
    tenant: TenantId,
    step: &'s ReplayStep,
    tally: &mut Tally<'s>,
) -> Result<(), StoreError> {
    let all = || step.place.iter();
    let range = |event: EventUid| DeliveryId::range_of(event);
    let rows = sqlx::query(FIND)
        .bind(tenant.uuid())
        .bind(all().map(|one| one.event.uuid()).collect::<Vec<_>>())
        .bind(all().map(|one| one.delivery.endpoint.uuid()).collect::<Vec<_>>())
        .bind(all().map(|one| range(one.event).0.uuid()).collect::<Vec<_>>())
        .bind(all().map(|one| range(one.event).1.uuid()).collect::<Vec<_>>())
        .fetch_all(connection)
        .await
        .map_err(sqlx_error)?;
    let known: HashMap<i64, (DeliveryId, Option<DeliveryState>)> = rows
        .iter()
        .map(|row| {
            let delivery = DeliveryId::from_uuid(row.get(1));
            (row.get::<i64, _>(0), (delivery, DeliveryState::from_code(row.get(2))))
        })
        .collect();
    for (one, place) in step.place.iter().zip(1_i64..) {
        let found = known.get(&place).and_then(|(id, state)| state.map(|state| (*id, state)));
        tally.found(one, found);
    }
    Ok(())
}

async fn reopen(
    connection: &mut PgConnection,
    tenant: TenantId,
    step: &ReplayStep,
    tally: &mut Tally<'_>,
) -> Result<(), StoreError> {
    let wanted = std::mem::take(&mut tally.reopen);
    let ids = || wanted.iter().map(|one| one.delivery.uuid());
    let (Some(lowest), Some(highest)) = (ids().min(), ids().max()) else { return Ok(()) };
    let rows = sqlx::query(REOPEN)
        .bind(tenant.uuid())
        .bind(ids().collect::<Vec<_>>())
        .bind(wanted.iter().map(|one| Shard::of(one.endpoint).number()).collect::<Vec<_>>())
        .bind(step.states.iter().map(DeliveryState::code).collect::<Vec<_>>())
        .bind(step.now.micros())
        .bind(lowest)
        .bind(highest)
        .fetch_all(connection)
        .await
        .map_err(sqlx_error)?;
    let by_id: HashMap<Uuid, Reopening> =
        wanted.iter().map(|one| (one.delivery.uuid(), *one)).collect();
    for row in rows {
        let fate = match row.get::<i32, _>(1) {
            0 => Fate::Opened,
            1 => Fate::Pending,
            2 => Fate::Gone,
            _ => Fate::Unchosen,
        };
        if let Some(one) = by_id.get(&row.get::<Uuid, _>(0)) {
            tally.opened(*one, fate);
        }
    }
    Ok(())
}

async fn make(
    connection: &mut PgConnection,
    tenant: TenantId,
    step: &ReplayStep,
    tally: &mut Tally<'_>,
) -> Result<(), StoreError> {
    let wanted = std::mem::take(&mut tally.make);
    if wanted.is_empty() {
        return Ok(());
    }
    let all = || wanted.iter().map(|one| &one.delivery);
    let rows = sqlx::query(MAKE)
        .bind(tenant.uuid())
        .bind(all().map(|new| new.id.uuid()).collect::<Vec<_>>())
        .bind(all().map(|new| new.endpoint.uuid()).collect::<Vec<_>>())
        .bind(wanted.iter().map(|one| one.event.uuid()).collect::<Vec<_>>())
        .bind(all().map(|new| Shard::of(new.endpoint).number()).collect::<Vec<_>>())
        .bind(all().map(|new| new.format.code()).collect::<Vec<_>>())
        .bind(step.now.micros())
        .fetch_all(connection)
        .await
        .map_err(sqlx_error)?;
    let made: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
    for one in wanted {
        tally.made(one, made.contains(&one.delivery.id.uuid()));
    }
    Ok(())
}

async fn advance(
    connection: &mut PgConnection,
    lease: &ReplayLease,
    step: &ReplayStep,
    tally: &Tally<'_>,
) -> Result<(), StoreError> {
    let failure = match &step.end {
        Some(ReplayEnd::Failed(why)) => why.as_str(),
        Some(ReplayEnd::Done) | None => "",
    };
    let query = sqlx::query(ADVANCE)
        .bind(lease.tenant.uuid())
        .bind(lease.replay.uuid())
        .bind(lease.token)
        .bind(step.position)
        .bind(step.waiting)
        .bind(state_after(step).as_str())
        .bind(failure)
        .bind(ended_at(step))
        .bind(step.now.micros())
        .bind((step.now + step.lease).micros());
    let counts = super::numbers(tally.counts());
    let query = counts.into_iter().fold(query, |query, number| query.bind(number));
    query.execute(connection).await.map_err(sqlx_error)?;
    Ok(())
}
