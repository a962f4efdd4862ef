//! What the statements about order cost on Postgres, as its planner and its counters say.

use crate::{
    fixture::Fixture,
    plans::{PAGES_PER_PROBE, array, explain},
};
use turnbuckle_domain::{DeliveryFilter, DeliveryId, DeliveryView};

const LOCK: &str = include_str!("../../src/postgres/sql/order_lock.sql");
const WRITE: &str = include_str!("../../src/postgres/sql/order_write.sql");
const PRUNE: &str = include_str!("../../src/order_age/prune_postgres.sql");

/// Subjects of one statement.
const SUBJECTS: u64 = 16;
/// Deliveries beside those that are moved.
const BACKLOG: usize = 20_000;
/// Rows of subjects that nobody asks for.
const OTHER_SUBJECTS: u64 = 20_000;

fn numbers(values: impl Iterator<Item = u64>, kind: &str) -> String {
    array(values.map(|value| value.to_string()), kind)
}

/// Tenant, source and subject of some rows.
fn keys(tenant: &str) -> Vec<String> {
    let rows = || 0..SUBJECTS;
    vec![
        array(rows().map(|_| tenant.to_owned()), "uuid"),
        array(rows().map(|_| "shop".to_owned()), "text"),
        array(rows().map(|row| format!("order/{row}")), "text"),
    ]
}

/// The arguments that write those subjects, and move or withdraw these deliveries.
fn write_arguments(tenant: &str, waiting: &[DeliveryView]) -> Vec<String> {
    let none = |kind: &str| format!("array[]::{kind}[]");
    let ids = |read: &dyn Fn(&DeliveryView) -> String| array(waiting.iter().map(read), "uuid");
    let mut arguments = keys(tenant);
    arguments.extend([
        numbers(0..SUBJECTS, "bigint"),
        array((0..SUBJECTS).map(|_| "false".to_owned()), "boolean"),
        format!("array_fill(null::text, array[{SUBJECTS}])"),
        numbers(0..SUBJECTS, "bigint"),
    ]);
    let queued =
        ["uuid", "uuid", "uuid", "uuid", "smallint", "smallint", "bigint", "bigint"].map(none);
    arguments.extend(queued);
    let range = |view: &DeliveryView| DeliveryId::range_of(view.delivery.event);
    arguments.extend([
        ids(&|_| tenant.to_owned()),
        ids(&|view| view.delivery.event.uuid().to_string()),
        ids(&|view| range(view).0.uuid().to_string()),
        ids(&|view| range(view).1.uuid().to_string()),
        array(
            waiting.iter().map(|view| view.delivery.due_at.unwrap().micros().to_string()),
            "bigint",
        ),
        // Every other one is withdrawn.
        format!("array[{}]::bigint[]", ["5", "null"].repeat(waiting.len() / 2).join(",")),
        ids(&|_| tenant.to_owned()),
        ids(&|view| view.delivery.event.uuid().to_string()),
        array(waiting.iter().map(|_| "held".to_owned()), "text"),
        "5".to_owned(),
        numbers(0..SUBJECTS, "bigint"),
    ]);
    arguments
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_is_kept_by_probes_however_much_there_is() {
    let Some(fixture) = Fixture::postgres().await else { return };
    let (tenant, endpoint) = (fixture.tenant(), fixture.endpoint());
    for _ in 0..BACKLOG / 1_000 {
        fixture.fill(tenant, endpoint, 1_000).await;
    }
    let name = tenant.uuid().to_string();
    fixture
        .execute(&format!(
            "insert into subject_order (tenant_id, source, subject, last_sequence, forget_at_us) \
             select '{name}', 'shop', 'other/' || n, n, n from generate_series(1, {OTHER_SUBJECTS}) n"
        ))
        .await;
    for table in ["delivery", "event", "subject_order"] {
        fixture.execute(&format!("vacuum analyze {table}")).await;
    }
    let filter = DeliveryFilter::default();
    let waiting = fixture.store.history.deliveries(tenant, &filter, None, 16).await.unwrap();
    let lock = keys(&name);
    let write = write_arguments(&name, &waiting);
    let prune = vec![OTHER_SUBJECTS.to_string(), "100".to_owned()];
    for mode in ["custom", "generic"] {
        let plan = explain(&fixture, mode, LOCK, &lock).await;
        assert!(plan.pages < SUBJECTS * 2 * PAGES_PER_PROBE, "{mode}: {plan:?}");
        let plan = explain(&fixture, mode, WRITE, &write).await;
        plan.assert_probes(&["subject_order_pkey", "delivery_pkey"]);
        // Found, changed and filed, with their indexes; and the subjects and events beside them.
        assert!(plan.pages < 16 * 10 * PAGES_PER_PROBE, "{mode}: {plan:?}");
        let plan = explain(&fixture, mode, PRUNE, &prune).await;
        plan.assert_probes(&["subject_order_age"]);
        assert!(plan.pages < 100 * 4 * PAGES_PER_PROBE, "{mode}: {plan:?}");
    }
}
