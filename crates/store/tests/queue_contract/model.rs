//! Random histories against a model that fits on a page (I2, I4).

use crate::fixture::{Fixture, LONG, attempt};
use std::{collections::BTreeMap, time::Duration};
use turnbuckle_domain::{
    Append, AppendResult, DeliveryFilter, DeliveryId, DeliveryState, DeliveryView, EndpointId,
    FinishReason, Finished, Next, Random as _, SeededRandom, Settled, Settlement, Shard,
    ShardLease, TenantId, Timestamp, WorkerId,
};

const STEPS: usize = 60;
/// Each embedded history takes some 10 ms, each one on Postgres some 50 ms.
const EMBEDDED_SEEDS: u64 = 200;
const POSTGRES_SEEDS: u64 = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn embedded_histories_follow_the_model() {
    let fixture = Fixture::sqlite().await;
    for seed in 0..EMBEDDED_SEEDS {
        history(&fixture, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_histories_follow_the_model() {
    let Some(fixture) = Fixture::postgres().await else { return };
    for seed in 0..POSTGRES_SEEDS {
        history(&fixture, seed).await;
    }
}

/// A row of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    endpoint: EndpointId,
    state: DeliveryState,
    attempts: u32,
    due_at: Option<Timestamp>,
    reason: Option<FinishReason>,
    round_start: u32,
}

struct Model<'a> {
    fixture: &'a Fixture,
    seed: u64,
    random: SeededRandom,
    tenant: TenantId,
    endpoints: Vec<EndpointId>,
    rows: BTreeMap<DeliveryId, Row>,
    appends: Vec<Append>,
    /// Turns that were made and may still come, rightly or too late.
    turns: Vec<(WorkerId, Settlement)>,
    worker: WorkerId,
    leases: BTreeMap<Shard, ShardLease>,
}

async fn history(fixture: &Fixture, seed: u64) {
    let mut model = Model {
        fixture,
        seed,
        random: SeededRandom::from_number(seed),
        tenant: fixture.tenant(),
        endpoints: (0..3).map(|_| fixture.endpoint()).collect(),
        rows: BTreeMap::new(),
        appends: Vec::new(),
        turns: Vec::new(),
        worker: fixture.worker(),
        leases: BTreeMap::new(),
    };
    model.take_leases().await;
    for step in 0..STEPS {
        fixture.clock.advance(Duration::from_micros(1));
        match model.pick(12) {
            0..=1 => model.append().await,
            2..=4 => model.claim().await,
            5..=8 => model.settle().await,
            9 => model.retry(step).await,
            10 => model.cancel(step).await,
            _ => model.lose_leases().await,
        }
        if step % 10 == 9 {
            model.check(step).await;
        }
    }
    model.check(STEPS).await;
    fixture.store.queue.release(model.worker, None).await.unwrap();
}

impl Model<'_> {
    fn pick(&self, count: usize) -> usize {
        let mut byte = [0];
        self.random.fill(&mut byte);
        usize::from(byte[0]) % count
    }

    /// One of what there is, if there is any.
    fn one_of<T: Copy>(&self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[self.pick(all.len())])
    }

    fn any_row(&self) -> Option<DeliveryId> {
        self.one_of(&self.rows.keys().copied().collect::<Vec<_>>())
    }

    async fn take_leases(&mut self) {
        let leases = self.fixture.store.queue.acquire(self.worker, 64, LONG).await.unwrap();
        self.leases.extend(leases.into_iter().map(|lease| (lease.shard, lease)));
    }

    /// Another worker takes over, or this one comes back with new tokens.
    async fn lose_leases(&mut self) {
        self.fixture.store.queue.release(self.worker, None).await.unwrap();
        if self.pick(2) == 0 {
            self.worker = self.fixture.worker();
        }
        self.leases.clear();
        self.take_leases().await;
    }

    async fn append(&mut self) {
        let repeat = self.pick(4) == 0 && !self.appends.is_empty();
        let append = if repeat {
            self.appends[self.pick(self.appends.len())].clone()
        } else {
            let event_id = format!("{}-{}", self.seed, self.appends.len());
            let wanted = &self.endpoints[..self.pick(4)];
            self.fixture.to(self.fixture.event(self.tenant, &event_id), wanted)
        };
        let log = &self.fixture.store.log;
        let answer = log.append(std::slice::from_ref(&append)).await.unwrap().remove(0);
        let accepted = answer == AppendResult::Accepted;
        assert_eq!(accepted, !repeat, "seed {}", self.seed);
        if !accepted {
            return;
        }
        for delivery in &append.deliveries {
            let row = Row {
                endpoint: delivery.endpoint,
                state: DeliveryState::Pending,
                attempts: 0,
                due_at: Some(append.event.accepted_at),
                reason: None,
                round_start: 0,
            };
            self.rows.insert(delivery.id, row);
        }
        self.appends.push(append);
    }

    async fn claim(&mut self) {
        let endpoint = self.endpoints[self.pick(3)];
        let now = self.fixture.now();
        let claimed = self.fixture.claim(endpoint, 1000).await;
        let mut due: Vec<(Timestamp, DeliveryId)> = self
            .rows
            .iter()
            .filter(|(_, row)| row.endpoint == endpoint)
            .filter_map(|(id, row)| row.due_at.filter(|due_at| *due_at <= now).map(|at| (at, *id)))
            .collect();
        due.sort();
        let found: Vec<_> = claimed.iter().map(|c| (c.delivery.due_at, c.delivery.id)).collect();
        assert_eq!(found, due, "seed {}", self.seed);
        for claimed in claimed {
            let (id, live) = (claimed.delivery.id, &claimed.delivery);
            let row = self.rows[&id];
            let seen = (live.attempts, live.round_start);
            assert_eq!(seen, (row.attempts, row.round_start), "seed {}", self.seed);
            self.turns.push((self.worker, self.turn(id, row)));
        }
    }

    fn turn(&self, id: DeliveryId, row: Row) -> Settlement {
        let now = self.fixture.now();
        let finish = |state, reason| Next::Finish { state, reason };
        let next = match self.pick(6) {
            0..=1 => Next::Retry { due_at: now + Duration::from_micros(self.pick(9) as u64) },
            2 => Next::Retry { due_at: now + LONG },
            3..=4 => finish(DeliveryState::Delivered, None),
            _ => finish(DeliveryState::Dead, Some(FinishReason::FinalAnswer)),
        };
        Settlement {
            tenant: self.tenant,
            delivery: id,
            lease: self.leases[&Shard::of(row.endpoint)],
            attempts_before: row.attempts,
            attempt: Some(attempt(row.attempts + 1, next)),
            next,
            at: now,
        }
    }

    /// A few of the turns that were made, some of them spoiled, some kept to come again.
    async fn settle(&mut self) {
        let mut batch: Vec<Settlement> = Vec::new();
        for _ in 0..self.pick(5) {
            if self.turns.is_empty() {
                break;
            }
            let index = self.pick(self.turns.len());
            let (worker, mut turn) = self.turns[index].clone();
            let named = batch.iter().any(|other| other.delivery == turn.delivery);
            if named || worker != self.worker {
                continue;
            }
            match self.pick(8) {
                0 => turn.lease.epoch += 1,
                1 => {
                    turn.attempts_before += 1;
                    turn.attempt = Some(attempt(turn.attempts_before + 1, turn.next));
                }
                2 => {}
                _ => drop(self.turns.swap_remove(index)),
            }
            batch.push(turn);
        }
        let answers = self.fixture.store.queue.settle(self.worker, &batch).await.unwrap();
        for (turn, answer) in batch.iter().zip(answers) {
            assert_eq!(answer, self.apply(turn), "seed {}: {turn:?}", self.seed);
        }
        self.settle_as_nobody().await;
    }

    /// Turns of former workers change nothing.
    async fn settle_as_nobody(&mut self) {
        let former: Vec<_> =
            self.turns.iter().filter(|(worker, _)| *worker != self.worker).cloned().collect();
        for (worker, turn) in former {
            let answer = self.fixture.store.queue.settle(worker, &[turn]).await.unwrap();
            assert_eq!(answer, [Settled::Stale], "seed {}", self.seed);
        }
        let worker = self.worker;
        self.turns.retain(|(owner, _)| *owner == worker);
    }

    fn apply(&mut self, turn: &Settlement) -> Settled {
        let row = self.rows.get_mut(&turn.delivery).unwrap();
        let held = self.leases[&Shard::of(row.endpoint)] == turn.lease;
        if !held || row.attempts != turn.attempts_before {
            return Settled::Stale;
        }
        // An attempt whose delivery was finished meanwhile counts, and changes nothing else.
        row.attempts += 1;
        if row.state != DeliveryState::Pending {
            return Settled::Stale;
        }
        match turn.next {
            Next::Retry { due_at } => row.due_at = Some(due_at),
            Next::Finish { state, reason } => {
                (row.state, row.reason, row.due_at) = (state, reason, None);
            }
        }
        Settled::Applied
    }

    async fn retry(&mut self, step: usize) {
        let Some(id) = self.any_row() else { return };
        let now = self.fixture.now();
        let answer = self.fixture.store.history.retry(self.tenant, id, now).await.unwrap();
        assert_eq!(answer, Finished::Changed, "seed {} step {step}", self.seed);
        let row = self.rows.get_mut(&id).unwrap();
        if row.state != DeliveryState::Pending {
            row.round_start = row.attempts;
        } else if row.due_at.is_some_and(|due_at| due_at > now) {
            row.round_start += u32::from(row.round_start <= row.attempts);
        } else {
            return;
        }
        (row.state, row.reason, row.due_at) = (DeliveryState::Pending, None, Some(now));
    }

    async fn cancel(&mut self, step: usize) {
        let Some(id) = self.any_row() else { return };
        let now = self.fixture.now();
        let answer = self.fixture.store.history.cancel(self.tenant, id, now).await.unwrap();
        let row = self.rows.get_mut(&id).unwrap();
        if row.state != DeliveryState::Pending {
            assert_eq!(answer, Finished::Refused, "seed {} step {step}", self.seed);
            return;
        }
        assert_eq!(answer, Finished::Changed, "seed {} step {step}", self.seed);
        (row.state, row.due_at) = (DeliveryState::Cancelled, None);
        row.reason = Some(FinishReason::CancelledByCaller);
    }

    /// Every delivery is there exactly once, as the model has it, with all of its attempts.
    async fn check(&self, step: usize) {
        let place = format!("seed {} step {step}", self.seed);
        let (history, all) = (&self.fixture.store.history, DeliveryFilter::default());
        let views = history.deliveries(self.tenant, &all, None, u16::MAX).await.unwrap();
        let mut ids: Vec<DeliveryId> = views.iter().map(|view| view.delivery.id).collect();
        ids.reverse();
        assert!(ids.iter().eq(self.rows.keys()), "{place}: {ids:?}");
        for DeliveryView { delivery, .. } in &views {
            let row = self.rows[&delivery.id];
            let found = Row {
                endpoint: delivery.endpoint,
                state: delivery.state,
                attempts: delivery.attempts,
                due_at: delivery.due_at,
                reason: delivery.reason,
                round_start: row.round_start,
            };
            assert_eq!(found, row, "{place}");
            let attempts = self.fixture.attempts(self.tenant, delivery.id).await;
            let numbers = attempts.iter().map(|attempt| attempt.number);
            assert!(numbers.eq(1..=row.attempts), "{place}: {attempts:?}");
        }
    }
}
