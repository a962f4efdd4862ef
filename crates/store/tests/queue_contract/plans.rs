//! What the hot statements cost on Postgres, as its planner and its counters say.

use crate::fixture::{DELIVERED, Fixture, Leader, START, connect, migrated, number};
use sea_orm::{ConnectionTrait as _, Statement};
use std::{collections::BTreeSet, time::Duration};
use turnbuckle_domain::{EndpointId, Next, Settlement, Shard};
use turnbuckle_store::Store;

const APPEND: &str = include_str!("../../src/postgres/sql/append_events.sql");
const CLAIM: &str = include_str!("../../src/postgres/sql/claim_due.sql");
const FIND_FIRST: &str = include_str!("../../src/postgres/sql/find_first.sql");
const PRUNE_DEDUP: &str = include_str!("../../src/postgres/sql/prune_dedup.sql");
const PENDING: &str = include_str!("../../src/postgres/sql/pending_lanes.sql");
const SETTLE: &str = include_str!("../../src/postgres/sql/settle.sql");
const CLAIM_PULLED: &str = include_str!("../../src/postgres/sql/claim_pulled.sql");
const CLAIM_BY_SUBJECT: &str = include_str!("../../src/postgres/sql/claim_pulled_by_subject.sql");
const SETTLE_PULLED: &str = include_str!("../../src/postgres/sql/settle_pulled.sql");
const EXTEND_PULLED: &str = include_str!("../../src/postgres/sql/extend_pulled.sql");
const SETTLE_LATE: &str = include_str!("../../src/postgres/sql/settle_late.sql");

/// Pending deliveries of the one deep endpoint.
const BACKLOG: u32 = 100_000;
/// Endpoints beside it, with a few pending deliveries each.
const OTHERS: u32 = 200;
/// One descent of a B-tree of this size, its leaf, and the row: generous, and far below a scan.
pub(crate) const PAGES_PER_PROBE: u64 = 8;

/// Rows made by the server: number `n` of endpoint `e` has the ids below, all of one tenant and shard.
const TENANT: &str = "00000000-0000-7000-8000-00000000000a";
const DEEP: u32 = 0;

fn endpoint_id(endpoint: u32) -> String {
    format!("00000000-0000-7000-8001-{endpoint:08x}0000")
}

fn row_id(number: u32) -> String {
    let millis = START.micros() / 1000;
    let millis = format!("{millis:012x}");
    format!("{}-{}-7000-8000-{number:012x}", &millis[..8], &millis[8..])
}

/// Makes the rows `from..to` of an endpoint: an event and its pending delivery each.
async fn fill(fixture: &Fixture, endpoint: u32, from: u32, to: u32) {
    let millis = START.micros() / 1000;
    let id = format!(
        "(lpad(to_hex({millis}), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid"
    );
    let now = START.micros();
    let endpoint = endpoint_id(endpoint);
    fixture
        .execute(&format!(
            "insert into event (tenant_id, uid, source, event_id, event_type, event_version, \
             content_type, occurred_at_us, accepted_at_us, data) \
             select '{TENANT}', {id}, 's', 'e', 't', '1', 'text/plain', {now}, {now}, '' \
             from generate_series({from}, {to} - 1) n; \
             insert into delivery (tenant_id, id, endpoint_id, event_uid, shard, format, \
             round_at_us, due_at_us) \
             select '{TENANT}', {id}, '{endpoint}', {id}, 0, 0, {now}, {now} + n \
             from generate_series({from}, {to} - 1) n"
        ))
        .await;
}

async fn fill_others(fixture: &Fixture) {
    for endpoint in 1..=OTHERS {
        let from = BACKLOG + endpoint * 5;
        fill(fixture, endpoint, from, from + 5).await;
    }
}

/// What a plan says: which tables are scanned as a whole, which indexes are used, and pages touched.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    scanned: BTreeSet<String>,
    indexes: BTreeSet<String>,
    pub(crate) pages: u64,
}

impl Plan {
    fn read(&mut self, node: &serde_json::Value) {
        let text = |name: &str| node[name].as_str().unwrap_or_default().to_owned();
        if text("Node Type") == "Seq Scan" {
            self.scanned.insert(text("Relation Name"));
        }
        if let Some(index) = node["Index Name"].as_str() {
            self.indexes.insert(index.to_owned());
        }
        for child in node["Plans"].as_array().into_iter().flatten() {
            self.read(child);
        }
    }

    /// Scans of nothing but tables of a fixed, small size, and these indexes used.
    pub(crate) fn assert_probes(&self, indexes: &[&str]) {
        let large = ["event", "delivery", "attempt", "subject_order"];
        let scanned = |table: &&String| large.iter().any(|prefix| table.starts_with(prefix));
        assert!(!self.scanned.iter().any(|table| scanned(&table)), "{self:?}");
        for index in indexes {
            assert!(self.indexes.contains(*index), "{index} is not used: {self:?}");
        }
    }
}

/// Prepares a statement, runs it under its generic or its custom plan, and takes back what it did.
pub(crate) async fn explain(
    fixture: &Fixture,
    mode: &str,
    sql: &str,
    arguments: &[String],
) -> Plan {
    // As the store sets it for its own connections; the last test of this file looks at those.
    let before = format!(
        "begin; set local enable_seqscan = off; set local plan_cache_mode = force_{mode}_plan; \
         prepare hot as {sql}"
    );
    fixture.execute(&before).await;
    let arguments = arguments.join(", ");
    let ask = format!("explain (analyze, buffers, format json) execute hot({arguments})");
    let ask = Statement::from_string(fixture.side.get_database_backend(), ask);
    let row = fixture.side.query_one_raw(ask).await.unwrap().unwrap();
    let answer: serde_json::Value = row.try_get_by_index(0).unwrap();
    fixture.execute("rollback; deallocate hot").await;
    let root = &answer[0]["Plan"];
    let pages = |name: &str| root[name].as_u64().unwrap();
    let mut plan =
        Plan { pages: pages("Shared Hit Blocks") + pages("Shared Read Blocks"), ..Plan::default() };
    plan.read(root);
    plan
}

pub(crate) fn array(values: impl Iterator<Item = String>, kind: &str) -> String {
    let values: Vec<String> = values.map(|value| format!("'{value}'")).collect();
    format!("array[{}]::{kind}[]", values.join(","))
}

/// A claim of a few rows from each of these endpoints.
fn claim_arguments(endpoints: std::ops::Range<u32>, room: u16, now_us: i64) -> Vec<String> {
    let same = |value: &str, kind| array(endpoints.clone().map(|_| value.to_owned()), kind);
    vec![
        array(endpoints.clone().map(endpoint_id), "uuid"),
        same("0", "smallint"),
        same("0", "bigint"),
        same("00000000-0000-0000-0000-000000000000", "uuid"),
        same(&room.to_string(), "integer"),
        now_us.to_string(),
    ]
}

fn all_shards() -> Vec<String> {
    vec![array(Shard::all().map(|shard| shard.number().to_string()), "smallint")]
}

/// Finishes the first `count` rows of the deep endpoint; odd ones are put back instead.
fn settle_arguments(count: u32) -> Vec<String> {
    let rows = || 0..count;
    let same = |value: &str, kind| array(rows().map(|_| value.to_owned()), kind);
    let by_turn = |even: &str, odd: &str, kind| {
        array(rows().map(|n| if n % 2 == 0 { even.to_owned() } else { odd.to_owned() }), kind)
    };
    let mut arguments = vec![
        format!("'{TENANT}'"),
        same(TENANT, "uuid"),
        array(rows().map(row_id), "uuid"),
        same("0", "smallint"),
        same("1", "bigint"),
        same("0", "integer"),
        same("1", "integer"),
        by_turn("1", "0", "smallint"),
        format!("array_fill(null::text, array[{count}])"),
        same("5", "bigint"),
    ];
    arguments.extend(attempt_arguments(count, &["1"]));
    arguments
}

/// Tenants and deliveries, the given numbers, and then the columns of an attempt.
fn attempt_arguments(count: u32, numbers: &[&str]) -> Vec<String> {
    let rows = || 0..count;
    let same = |value: &str, kind| array(rows().map(|_| value.to_owned()), kind);
    let mut arguments = vec![same(TENANT, "uuid"), array(rows().map(row_id), "uuid")];
    arguments.extend(numbers.iter().map(|number| same(number, "integer")));
    arguments.extend([
        same("5", "bigint"),
        same("5", "bigint"),
        same("delivered", "text"),
        same("200", "integer"),
        same("", "text"),
        format!("array_fill(null::bigint, array[{count}])"),
        same("false", "boolean"),
    ]);
    arguments
}

async fn deep(fixture: &Fixture, backlog: u32) {
    fill(fixture, DEEP, 0, backlog).await;
    fixture.execute("vacuum analyze delivery").await;
    fixture.execute("analyze event").await;
    fixture
        .execute(&format!(
            "update shard_lease set worker_id = '{TENANT}', epoch = 1 where shard = 0"
        ))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cost_of_claiming_and_looking_does_not_grow_with_the_backlog() {
    let Some(fixture) = Fixture::postgres().await else { return };
    let now = START.micros() + i64::from(BACKLOG) * 2;
    let claim = claim_arguments(0..64, 4, now);
    fill_others(&fixture).await;
    deep(&fixture, 1_000).await;
    let mut shallow = Vec::new();
    for mode in ["custom", "generic"] {
        shallow.push(explain(&fixture, mode, CLAIM, &claim).await.pages);
        shallow.push(explain(&fixture, mode, PENDING, &all_shards()).await.pages);
    }
    fill(&fixture, DEEP, 1_000, BACKLOG).await;
    deep(&fixture, 0).await;
    let mut costs = shallow.into_iter();
    for mode in ["custom", "generic"] {
        let plan = explain(&fixture, mode, CLAIM, &claim).await;
        plan.assert_probes(&["delivery_due"]);
        let rows = 64 * 4;
        assert!(plan.pages < (64 + rows) * PAGES_PER_PROBE, "{mode}: {plan:?}");
        assert!(plan.pages < costs.next().unwrap() * 2, "{mode}: {plan:?}");

        let plan = explain(&fixture, mode, PENDING, &all_shards()).await;
        plan.assert_probes(&["delivery_due"]);
        let probes = u64::from(OTHERS) + 1 + 64;
        assert!(plan.pages < probes * PAGES_PER_PROBE, "{mode}: {plan:?}");
        assert!(plan.pages < costs.next().unwrap() * 2, "{mode}: {plan:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_endpoint_that_has_everything_is_claimed_by_probes() {
    let Some(fixture) = Fixture::postgres().await else { return };
    deep(&fixture, BACKLOG).await;
    let now = START.micros() + i64::from(BACKLOG) * 2;
    for mode in ["custom", "generic"] {
        let plan = explain(&fixture, mode, CLAIM, &claim_arguments(0..1, 64, now)).await;
        plan.assert_probes(&["delivery_due"]);
        assert!(plan.pages < 65 * PAGES_PER_PROBE, "{mode}: {plan:?}");
        let plan = explain(&fixture, mode, PENDING, &all_shards()).await;
        plan.assert_probes(&["delivery_due"]);
        assert!(plan.pages < 66 * PAGES_PER_PROBE, "{mode}: {plan:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writing_results_and_events_probes_primary_keys() {
    let Some(fixture) = Fixture::postgres().await else { return };
    fill_others(&fixture).await;
    deep(&fixture, BACKLOG).await;
    let append: Vec<String> = [
        "uuid", "uuid", "text", "text", "text", "text", "text", "bigint", "text", "bigint",
        "bigint", "bytea", "bytea", "bigint", "uuid", "uuid", "uuid", "uuid", "smallint",
        "smallint", "bigint", "text", "text", "bigint", "bytea", "text",
    ]
    .map(|kind| format!("array[]::{kind}[]"))
    .into();
    let first = ["uuid", "text", "text"].map(|kind| array(["7".to_owned()].into_iter(), kind));
    let mut first = first.to_vec();
    first[0] = array([TENANT.to_owned()].into_iter(), "uuid");
    for mode in ["custom", "generic"] {
        let plan = explain(&fixture, mode, SETTLE, &settle_arguments(64)).await;
        plan.assert_probes(&["delivery_pkey"]);
        // Each turn is looked for twice, and written to a table and its indexes once or twice.
        assert!(plan.pages < 64 * 8 * PAGES_PER_PROBE, "{mode}: {plan:?}");
        explain(&fixture, mode, APPEND, &append).await.assert_probes(&[]);
        explain(&fixture, mode, FIND_FIRST, &first).await.assert_probes(&[]);
        let prune = ["5".to_owned(), "100".to_owned()];
        let plan = explain(&fixture, mode, PRUNE_DEDUP, &prune).await;
        plan.assert_probes(&["event_dedup_age"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_lease_and_settle_by_probes() {
    let Some(fixture) = Fixture::postgres().await else { return };
    deep(&fixture, BACKLOG).await;
    let now = START.micros() + i64::from(BACKLOG) * 2;
    let nil = "'00000000-0000-0000-0000-000000000000'";
    let deep = format!("'{}'", endpoint_id(DEEP));
    let claim = ["0", &deep, &now.to_string(), "0", nil, "64", &(now + 9).to_string()];
    let claim: Vec<String> = claim.iter().map(|text| (*text).to_owned()).collect();
    let mut by_subject = claim.clone();
    by_subject.push("64".to_owned());
    // Without worker, shards and epochs, and with tokens in their place.
    let mut settle = settle_arguments(64);
    settle.remove(0);
    settle[2] = settle.remove(3);
    let extend = vec![settle[0].clone(), settle[1].clone(), settle[2].clone(), settle[2].clone()];
    for mode in ["custom", "generic"] {
        let plan = explain(&fixture, mode, CLAIM_PULLED, &claim).await;
        plan.assert_probes(&["delivery_due"]);
        // Found, locked, written to the table and its indexes, and its event found.
        assert!(plan.pages < 64 * 5 * PAGES_PER_PROBE, "{mode}: {plan:?}");
        let plan = explain(&fixture, mode, CLAIM_BY_SUBJECT, &by_subject).await;
        plan.assert_probes(&["delivery_due", "delivery_pulled"]);
        assert!(plan.pages < 64 * 7 * PAGES_PER_PROBE, "{mode}: {plan:?}");
        let plan = explain(&fixture, mode, SETTLE_PULLED, &settle).await;
        plan.assert_probes(&["delivery_pkey"]);
        assert!(plan.pages < 64 * 8 * PAGES_PER_PROBE, "{mode}: {plan:?}");
        let plan = explain(&fixture, mode, EXTEND_PULLED, &extend).await;
        plan.assert_probes(&["delivery_pkey"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_attempt_probes_finished_deliveries() {
    let Some(fixture) = Fixture::postgres().await else { return };
    deep(&fixture, BACKLOG).await;
    fixture
        .execute(
            "insert into delivery_done select tenant_id, id, endpoint_id, event_uid, format, 3, \
             'CANCELLED_BY_CALLER', 0, 5 from delivery; analyze delivery_done",
        )
        .await;
    let mut arguments = attempt_arguments(8, &[]);
    let same = |value: &str, kind| array((0..8).map(|_| value.to_owned()), kind);
    arguments.splice(2..2, [same("0", "smallint"), same("1", "bigint"), same("1", "integer")]);
    arguments.insert(0, format!("'{TENANT}'"));
    for mode in ["custom", "generic"] {
        let plan = explain(&fixture, mode, SETTLE_LATE, &arguments).await;
        plan.assert_probes(&[]);
        assert!(plan.indexes.iter().any(|index| index.starts_with("delivery_done_d")), "{plan:?}");
    }
}

/// The store's own prepared statements, first planned when every table was empty. Nothing analyzes
/// the tables before they have grown, and still nothing is ever read as a whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plans_made_on_empty_tables_stay_good_while_the_tables_grow() {
    let Some(database) = migrated().await else { return };
    // Making a partition reads it once for each of its indexes: that is not what is counted here.
    drop(Store::open_postgres(database.url(), START).await.unwrap());
    let side = connect(database.url()).await;
    Fixture::sessions_ended(&side).await;
    side.execute_unprepared("select pg_stat_reset()").await.unwrap();
    let fixture = Fixture::over(database).await;
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    let leader = fixture.leader().await;
    let shards: Vec<Shard> = Shard::all().collect();
    for round in 0..30 {
        if round % 10 == 9 {
            fixture.fill(tenant, endpoint, 1000).await;
        }
        fixture.fill(tenant, endpoint, 20).await;
        fixture.store.queue.pending(&shards).await.unwrap();
        let turns = turns(&fixture, &leader, endpoint).await;
        fixture.settle(&leader, &turns).await;
    }
    let Fixture { store, side, home, .. } = fixture;
    drop(store);
    Fixture::sessions_ended(&side).await;
    let probes = "select coalesce(sum(idx_scan), 0)::bigint from pg_stat_user_tables \
                  where relname = 'delivery'";
    assert!(number(&side, probes).await > 0);
    let scans = "select coalesce(sum(seq_scan), 0)::bigint from pg_stat_user_tables \
                 where relname ~ '^(delivery|event_dedup|(delivery_done|event|attempt)_d[0-9]+)$'";
    assert_eq!(number(&side, scans).await, 0);
    drop(home);
}

async fn turns(fixture: &Fixture, leader: &Leader, endpoint: EndpointId) -> Vec<Settlement> {
    let due_at = fixture.now() + Duration::from_secs(1);
    let claimed = fixture.claim(endpoint, 12).await;
    let next = |index| if index % 3 == 0 { Next::Retry { due_at } } else { DELIVERED };
    claimed.iter().enumerate().map(|(index, c)| leader.tried(c, next(index))).collect()
}
