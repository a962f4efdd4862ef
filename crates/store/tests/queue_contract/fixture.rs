//! A store on either backend, events for it, and a second way into its tables.

use crate::common::at;
use sea_orm::{
    ConnectOptions, ConnectionTrait as _, Database, DatabaseConnection, Statement,
    sqlx::sqlite::SqliteJournalMode,
};
use std::{borrow::Cow, collections::HashMap, path::Path, sync::Arc, time::Duration};
use tempfile::TempDir;
use turnbuckle_domain::{
    Append, Attempt, Channels, Claimed, Clock, DedupRule, DeliveryId, DeliveryState, DeliveryView,
    EndpointId, Event, EventUid, FinishReason, IdGenerator, LaneClaim, NewDelivery, Next,
    PayloadFormat, SeededRandom, Settled, Settlement, Shard, ShardLease, TenantId, Timestamp,
    TypeName, WorkerId, dedup_limits,
};
use turnbuckle_store::Store;
use turnbuckle_testkit::{clock::ManualClock, postgres::TestDatabase};
use uuid::Uuid;

/// When every test begins: a Friday in 2027.
pub(crate) const START: Timestamp = at(1_800_000_000);
/// A lease that outlives every test.
pub(crate) const LONG: Duration = Duration::from_secs(3600);
/// Longest wait for something that must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// Before everything: a lane that has seen nothing yet.
pub(crate) const NOTHING_SEEN: (Timestamp, DeliveryId) =
    (Timestamp::EPOCH, DeliveryId::from_uuid(Uuid::nil()));

pub(crate) enum Home {
    Directory(TempDir),
    /// Kept until the end of the test.
    Postgres(TestDatabase),
}

pub(crate) struct Fixture {
    pub(crate) store: Store,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) home: Home,
    /// Beside the store, for what no port can do.
    pub(crate) side: DatabaseConnection,
    ids: IdGenerator,
}

impl Fixture {
    pub(crate) async fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::shared(START);
        let store = open_embedded(directory.path(), &clock).await;
        let side = side_of_embedded(directory.path()).await;
        Self::new(store, clock, side, Home::Directory(directory))
    }

    pub(crate) async fn postgres() -> Option<Self> {
        Some(Self::over(migrated().await?).await)
    }

    pub(crate) async fn over(database: TestDatabase) -> Self {
        let store = Store::open_postgres(database.url(), START).await.unwrap();
        let side = connect(database.url()).await;
        let clock = ManualClock::shared(START);
        Self::new(store, clock, side, Home::Postgres(database))
    }

    fn new(store: Store, clock: Arc<ManualClock>, side: DatabaseConnection, home: Home) -> Self {
        let random = Arc::new(SeededRandom::from_number(1));
        let ids = IdGenerator::new(Arc::clone(&clock) as Arc<dyn Clock>, random);
        Self { store, clock, home, side, ids }
    }

    pub(crate) const fn is_postgres(&self) -> bool {
        matches!(self.home, Home::Postgres(_))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Runs a statement beside the store.
    pub(crate) async fn execute(&self, sql: &str) {
        self.side.execute_unprepared(sql).await.unwrap();
    }

    /// The one number a query answers.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        number(&self.side, sql).await
    }

    /// Waits until every session of a dropped store has ended, which is when its counters are complete.
    pub(crate) async fn sessions_ended(side: &DatabaseConnection) {
        let sessions = "select count(*) from pg_stat_activity where datname = current_database() \
                        and application_name = 'turnbuckle'";
        eventually(async || (number(side, sessions).await == 0).then_some(())).await;
    }

    /// A UUID as the backend writes it in SQL text.
    pub(crate) fn quoted(&self, id: Uuid) -> String {
        if self.is_postgres() { format!("'{id}'") } else { format!("x'{}'", id.simple()) }
    }

    pub(crate) fn tenant(&self) -> TenantId {
        TenantId::from_uuid(self.ids.uuid())
    }

    pub(crate) fn worker(&self) -> WorkerId {
        WorkerId::from_uuid(self.ids.uuid())
    }

    pub(crate) fn endpoint(&self) -> EndpointId {
        EndpointId::from_uuid(self.ids.uuid())
    }

    /// An endpoint of a certain shard.
    pub(crate) fn endpoint_in(&self, shard: u8) -> EndpointId {
        let mut bytes = self.ids.uuid().into_bytes();
        bytes[15] = shard;
        EndpointId::from_uuid(Uuid::from_bytes(bytes))
    }

    pub(crate) fn event(&self, tenant: TenantId, event_id: &str) -> Event {
        Event {
            uid: EventUid::from_uuid(self.ids.uuid()),
            tenant,
            event_id: event_id.to_owned(),
            event_type: TypeName::new("order.paid").unwrap(),
            event_version: "1".to_owned(),
            occurred_at: START - Duration::from_micros(7),
            source: "shop".to_owned(),
            subject: None,
            sequence: None,
            content_type: "application/json".to_owned(),
            data: b"{}".as_slice().into(),
            accepted_at: self.clock.now(),
            channels: Channels::default(),
            order: None,
        }
    }

    /// An append of an event to these endpoints.
    pub(crate) fn to(&self, event: Event, endpoints: &[EndpointId]) -> Append {
        let delivery = |endpoint: &EndpointId| NewDelivery {
            id: self.ids.delivery_of(event.uid),
            endpoint: *endpoint,
            format: PayloadFormat::Raw,
        };
        Append {
            content_hash: event.content_hash(),
            dedup: Some(DedupRule::id(dedup_limits::WINDOW_DEFAULT)),
            deliveries: endpoints.iter().map(delivery).collect(),
            event: Arc::new(event),
            order: None,
        }
    }

    /// Stores `count` events for one endpoint, a microsecond apart, and answers their deliveries.
    pub(crate) async fn fill(
        &self,
        tenant: TenantId,
        endpoint: EndpointId,
        count: usize,
    ) -> Vec<DeliveryId> {
        let append = |_| {
            self.clock.advance(Duration::from_micros(1));
            let event_id = self.ids.uuid().to_string();
            self.to(self.event(tenant, &event_id), &[endpoint])
        };
        let batch: Vec<Append> = (0..count).map(append).collect();
        self.store.log.append(&batch).await.unwrap();
        batch.iter().map(|append| append.deliveries[0].id).collect()
    }

    /// A worker that holds everything.
    pub(crate) async fn leader(&self) -> Leader {
        let worker = self.worker();
        let leases = self.store.queue.acquire(worker, 64, LONG).await.unwrap();
        assert_eq!(leases.len(), 64);
        Leader { worker, leases: leases.into_iter().map(|lease| (lease.shard, lease)).collect() }
    }

    /// What is due for one endpoint now.
    pub(crate) async fn claim(&self, endpoint: EndpointId, limit: u16) -> Vec<Claimed> {
        let wish = lane(endpoint, NOTHING_SEEN, limit);
        self.store.queue.claim(&[wish], self.clock.now()).await.unwrap()
    }

    pub(crate) async fn settle(&self, leader: &Leader, batch: &[Settlement]) -> Vec<Settled> {
        self.store.queue.settle(leader.worker, batch).await.unwrap()
    }

    pub(crate) async fn view(&self, tenant: TenantId, id: DeliveryId) -> DeliveryView {
        self.store.history.delivery(tenant, id).await.unwrap().unwrap()
    }

    pub(crate) async fn attempts(&self, tenant: TenantId, id: DeliveryId) -> Vec<Attempt> {
        self.store.history.attempts(tenant, id, 0, u16::MAX).await.unwrap()
    }
}

/// A worker with its leases.
pub(crate) struct Leader {
    pub(crate) worker: WorkerId,
    pub(crate) leases: HashMap<Shard, ShardLease>,
}

impl Leader {
    /// A turn of a claimed delivery without an attempt.
    pub(crate) fn turn(&self, claimed: &Claimed, next: Next) -> Settlement {
        let delivery = &claimed.delivery;
        Settlement {
            tenant: delivery.tenant,
            delivery: delivery.id,
            lease: self.leases[&delivery.shard],
            attempts_before: delivery.attempts,
            attempt: None,
            next,
            at: START + Duration::from_secs(60),
        }
    }

    /// A turn whose attempt was answered.
    pub(crate) fn tried(&self, claimed: &Claimed, next: Next) -> Settlement {
        let number = claimed.delivery.attempts + 1;
        Settlement { attempt: Some(attempt(number, next)), ..self.turn(claimed, next) }
    }
}

pub(crate) fn lane(endpoint: EndpointId, after: (Timestamp, DeliveryId), limit: u16) -> LaneClaim {
    LaneClaim { endpoint, shard: Shard::of(endpoint), after, limit }
}

pub(crate) const DELIVERED: Next = Next::Finish { state: DeliveryState::Delivered, reason: None };
pub(crate) const DEAD: Next =
    Next::Finish { state: DeliveryState::Dead, reason: Some(FinishReason::AttemptsExhausted) };

pub(crate) fn attempt(number: u32, next: Next) -> Attempt {
    let delivered = next == DELIVERED;
    Attempt {
        number,
        started_at: START + Duration::from_secs(u64::from(number)),
        duration: Duration::from_micros(1234),
        outcome: Cow::Borrowed(if delivered { "delivered" } else { "refused" }),
        status: Some(if delivered { 204 } else { 503 }),
        detail: Cow::Borrowed(""),
        retry_delay: matches!(next, Next::Retry { .. }).then_some(Duration::from_secs(5)),
        retry_after_honoured: false,
    }
}

/// A migrated database that nobody has opened yet.
pub(crate) async fn migrated() -> Option<TestDatabase> {
    let key = format!("queue {}", turnbuckle_migrations::expected_version());
    let migrate = async |url: &str| Ok(Store::migrate_postgres(url).await?);
    TestDatabase::create(&key, migrate).await.unwrap()
}

pub(crate) async fn open_embedded(directory: &Path, clock: &Arc<ManualClock>) -> Store {
    Store::open_embedded(directory, Arc::clone(clock) as Arc<dyn Clock>).await.unwrap()
}

pub(crate) async fn side_of_embedded(directory: &Path) -> DatabaseConnection {
    let file = directory.join("turnbuckle.db");
    connect(&format!("sqlite://{}", file.display())).await
}

pub(crate) async fn connect(url: &str) -> DatabaseConnection {
    let mut options = ConnectOptions::new(url);
    options.max_connections(1).sqlx_logging(false).map_sqlx_sqlite_opts(|options| {
        options.journal_mode(SqliteJournalMode::Wal).busy_timeout(PATIENCE)
    });
    Database::connect(options).await.unwrap()
}

/// The one number a query answers.
pub(crate) async fn number(db: &DatabaseConnection, sql: &str) -> i64 {
    let ask = Statement::from_string(db.get_database_backend(), sql);
    let row = db.query_one_raw(ask).await.unwrap().unwrap();
    row.try_get_by_index::<i64>(0).unwrap()
}

/// Asks until the answer is there. Each question is a round trip, so this is no busy loop.
pub(crate) async fn eventually<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap()
}
