//! Steps of replays, on the writer thread: they share the commits of events.

use super::{EmbeddedQueue, queue::uuid};
use crate::replays::{ADVANCE, Fate, Tally, ended_at, numbers, state_after};
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter, types::Value};
use std::sync::{Arc, LazyLock};
use turnbuckle_domain::{
    DeliveryId, DeliveryState, Reopening, ReplayEnd, ReplayLease, ReplayStep, Rerouted, Shard,
    StepDone, StoreError, TenantId,
};

const HOLDS: &str = "select 1 from replay where tenant_id = ?1 and id = ?2 and lease_token = ?3 \
                     and state = 'running' and (?4 or last_id is ?5)";
const FIND: &str = include_str!("sql/replay_find.sql");
const REOPEN: &str = include_str!("sql/replay_reopen.sql");
const MAKE: &str = include_str!("sql/replay_make.sql");
/// The dollar signs would be names to SQLite, numbered as they appear.
static ADVANCE_NUMBERED: LazyLock<String> = LazyLock::new(|| ADVANCE.replace('$', "?"));
const REMOVE: &str = "delete from delivery_done where tenant_id = ?1 and id = ?2";
const IS_PENDING: &str = "select 1 from delivery where tenant_id = ?1 and id = ?2";
const STATE: &str = "select state from delivery_done where tenant_id = ?1 and id = ?2";

impl EmbeddedQueue {
    /// Does a step; none when the lease holds no more.
    pub(crate) async fn step_replay(
        &self,
        lease: ReplayLease,
        step: Arc<ReplayStep>,
    ) -> Result<Option<StepDone>, StoreError> {
        self.writer.run(move |connection| run(connection, &lease, &step)).await
    }
}

fn run(
    connection: &Connection,
    lease: &ReplayLease,
    step: &ReplayStep,
) -> rusqlite::Result<Option<StepDone>> {
    let tenant = lease.tenant;
    let mut holds = connection.prepare_cached(HOLDS)?;
    let (owner, replay) = (tenant.uuid().into_bytes(), lease.replay.uuid().into_bytes());
    let (goes_nowhere, after) = (step.position.is_none(), step.after.map(uuid::Uuid::into_bytes));
    if !holds.exists(params![owner, replay, lease.token, goes_nowhere, after])? {
        return Ok(None);
    }
    let mut tally = Tally::of(step);
    for one in &step.place {
        tally.found(one, find(connection, tenant, one)?);
    }
    for one in std::mem::take(&mut tally.reopen) {
        let fate = reopen(connection, tenant, step, one)?;
        tally.opened(one, fate);
    }
    for one in std::mem::take(&mut tally.make) {
        let made = make(connection, tenant, step, one)?;
        tally.made(one, made);
    }
    advance(connection, lease, step, &tally)?;
    Ok(Some(tally.finish()))
}

fn find(
    connection: &Connection,
    tenant: TenantId,
    one: &Rerouted,
) -> rusqlite::Result<Option<(DeliveryId, DeliveryState)>> {
    let (first, last) = DeliveryId::range_of(one.event);
    let mut find = connection.prepare_cached(FIND)?;
    let bound =
        [tenant.uuid(), first.uuid(), last.uuid(), one.event.uuid(), one.delivery.endpoint.uuid()]
            .map(uuid::Uuid::into_bytes);
    let found = find.query_row(params_from_iter(bound), |row| {
        let id = DeliveryId::from_uuid(uuid(row, 0)?);
        Ok((id, DeliveryState::from_code(row.get(1)?)))
    });
    Ok(found.optional()?.and_then(|(id, state)| state.map(|state| (id, state))))
}

fn reopen(
    connection: &Connection,
    tenant: TenantId,
    step: &ReplayStep,
    one: Reopening,
) -> rusqlite::Result<Fate> {
    let (tenant, id) = (tenant.uuid().into_bytes(), one.delivery.uuid().into_bytes());
    let states = step.states;
    let opened = connection.prepare_cached(REOPEN)?.execute(params![
        tenant,
        id,
        Shard::of(one.endpoint).number(),
        step.now.micros(),
        states.delivered,
        states.dead,
        states.cancelled,
    ])?;
    if opened == 1 {
        connection.prepare_cached(REMOVE)?.execute(params![tenant, id])?;
        return Ok(Fate::Opened);
    }
    if connection.prepare_cached(IS_PENDING)?.exists(params![tenant, id])? {
        return Ok(Fate::Pending);
    }
    let mut state = connection.prepare_cached(STATE)?;
    let state = state.query_row(params![tenant, id], |row| row.get(0)).optional()?;
    let chosen = state.and_then(DeliveryState::from_code).is_some_and(|state| states.has(state));
    Ok(if chosen { Fate::Gone } else { Fate::Unchosen })
}

fn make(
    connection: &Connection,
    tenant: TenantId,
    step: &ReplayStep,
    one: &Rerouted,
) -> rusqlite::Result<bool> {
    let new = &one.delivery;
    let made = connection.prepare_cached(MAKE)?.execute(params![
        tenant.uuid().as_bytes(),
        new.id.uuid().as_bytes(),
        new.endpoint.uuid().as_bytes(),
        one.event.uuid().as_bytes(),
        Shard::of(new.endpoint).number(),
        new.format.code(),
        step.now.micros(),
    ])?;
    Ok(made == 1)
}

fn advance(
    connection: &Connection,
    lease: &ReplayLease,
    step: &ReplayStep,
    tally: &Tally<'_>,
) -> rusqlite::Result<()> {
    let failure = match &step.end {
        Some(ReplayEnd::Failed(why)) => why.clone(),
        Some(ReplayEnd::Done) | None => String::new(),
    };
    let mut values: Vec<Value> = vec![
        lease.tenant.uuid().as_bytes().to_vec().into(),
        lease.replay.uuid().as_bytes().to_vec().into(),
        lease.token.into(),
        step.position.map(|id| id.as_bytes().to_vec()).into(),
        i64::from(step.waiting).into(),
        state_after(step).as_str().to_owned().into(),
        failure.into(),
        ended_at(step).into(),
        step.now.micros().into(),
        (step.now + step.lease).micros().into(),
    ];
    values.extend(numbers(tally.counts()).map(Value::from));
    connection.prepare_cached(&ADVANCE_NUMBERED)?.execute(params_from_iter(values))?;
    Ok(())
}
