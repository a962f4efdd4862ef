//! The result of a run, as an object and as a table row.

use crate::{
    analysis::{Analysis, Latency, Window, latency},
    args::{DeliverArgs, Rate, StoreKind},
    probe::Probe,
    publisher::Published,
    rewriter::Change,
};
use comfy_table::{CellAlignment, Table, presets::UTF8_HORIZONTAL_ONLY};
use serde::{Serialize, Serializer};

/// One run. Field names are a contract with scripts.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) case: String,
    pub(crate) store: StoreKind,
    pub(crate) endpoints: u16,
    pub(crate) hang: u16,
    pub(crate) fan_out: bool,
    pub(crate) payload: u32,
    #[serde(serialize_with = "rate")]
    pub(crate) rate: Rate,
    pub(crate) batch: u16,
    pub(crate) in_flight: u16,
    pub(crate) seconds: f64,
    pub(crate) accepted_per_s: f64,
    pub(crate) delivered_per_s: f64,
    pub(crate) publish_ms: Latency,
    pub(crate) e2e_ms: Latency,
    pub(crate) e2e_healthy_ms: Latency,
    pub(crate) lost: u64,
    pub(crate) duplicates: u64,
    /// Events that were refused, or whose answer was lost.
    pub(crate) refused: usize,
    /// The first refusal.
    pub(crate) refusal: Option<String>,
    /// Events on the schedule for which no call was free.
    pub(crate) not_sent: u64,
    /// Changes of the configuration meanwhile, and how long each took.
    pub(crate) config_per_s: f64,
    pub(crate) config_ms: Latency,
    /// Seconds after the last publish until everything had arrived; null when it never did.
    pub(crate) drain_s: Option<f64>,
    pub(crate) cpu_s_per_1000: CpuSplit,
    pub(crate) rss_mb: f64,
    pub(crate) wal_bytes_per_event: Option<f64>,
    pub(crate) statements_per_event: Option<f64>,
}

/// CPU seconds for 1,000 deliveries.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct CpuSplit {
    pub(crate) server: Option<f64>,
    /// Null for the embedded store, which is part of the server, and for one on another machine.
    pub(crate) store: Option<f64>,
    /// This tool's own cost.
    pub(crate) publisher: Option<f64>,
    /// The receiving process.
    pub(crate) receiver: Option<f64>,
}

pub(crate) fn rate<S: Serializer>(rate: &Rate, serializer: S) -> Result<S::Ok, S::Error> {
    match rate {
        Rate::Max => serializer.serialize_str("max"),
        Rate::PerSecond(rate) => serializer.serialize_u32(*rate),
    }
}

/// What a report is made of.
pub(crate) struct Measured<'a> {
    pub(crate) analysis: &'a Analysis,
    pub(crate) published: &'a Published,
    pub(crate) changes: &'a [Change],
    pub(crate) before: Probe,
    pub(crate) after: Probe,
    pub(crate) drain_s: Option<f64>,
    pub(crate) rss_mb: f64,
}

impl Report {
    pub(crate) fn new(
        case: String,
        args: &DeliverArgs,
        measured: &Measured<'_>,
    ) -> anyhow::Result<Self> {
        let Measured { analysis, published, before, after, .. } = measured;
        let window = Window { from_us: before.at_us, to_us: after.at_us };
        let during = |change: &&Change| window.has(change.begun_us);
        let changes: Vec<&Change> = measured.changes.iter().filter(during).collect();
        let delivered = count(analysis.delivered_in(window));
        let counted = Window { from_us: before.counters_at_us, to_us: after.counters_at_us };
        let events = count(analysis.accepted_in(counted));
        let counters = before.counters.zip(after.counters);
        let statements = counters.and_then(|(old, new)| Some(new.statements? - old.statements?));
        Ok(Self {
            case,
            store: args.store,
            endpoints: args.endpoints,
            hang: args.hang,
            fan_out: args.fan_out,
            payload: args.payload,
            rate: args.rate,
            batch: args.batch,
            in_flight: args.in_flight,
            seconds: rounded(window.seconds()),
            accepted_per_s: rounded(count(analysis.accepted_in(window)) / window.seconds()),
            delivered_per_s: rounded(delivered / window.seconds()),
            publish_ms: analysis.publish(window)?,
            e2e_ms: analysis.end_to_end(window, false)?,
            e2e_healthy_ms: analysis.end_to_end(window, true)?,
            lost: analysis.lost,
            duplicates: analysis.duplicates,
            refused: analysis.refused(),
            refusal: published.refusal.clone(),
            not_sent: published.not_sent,
            config_per_s: rounded(count(changes.len()) / window.seconds()),
            config_ms: latency(changes.iter().map(|change| change.took_us))?,
            drain_s: measured.drain_s.map(rounded),
            cpu_s_per_1000: CpuSplit::new(before, after, delivered),
            rss_mb: rounded(measured.rss_mb),
            wal_bytes_per_event: counters
                .and_then(|(old, new)| per(new.wal_bytes - old.wal_bytes, events)),
            statements_per_event: statements.and_then(|statements| per(statements, events)),
        })
    }
}

impl CpuSplit {
    fn new(before: &Probe, after: &Probe, delivered: f64) -> Self {
        let thousands = delivered / 1_000.0;
        let store = before.store_cpu.zip(after.store_cpu);
        Self {
            server: per(after.server_cpu - before.server_cpu, thousands),
            store: store.and_then(|(old, new)| per(new - old, thousands)),
            publisher: per(after.publisher_cpu - before.publisher_cpu, thousands),
            receiver: per(after.receiver_cpu - before.receiver_cpu, thousands),
        }
    }
}

/// A quotient; `None` when there was nothing to divide by.
pub(crate) fn per(amount: f64, count: f64) -> Option<f64> {
    (count > 0.0).then(|| (amount / count * 1e4).round() / 1e4)
}

pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[expect(clippy::cast_precision_loss, reason = "a run has far fewer than 2^52 events")]
pub(crate) fn count(number: usize) -> f64 {
    number as f64
}

/// Reports one below the other.
pub(crate) fn table(reports: &[Report]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "case",
        "store",
        "accepted\n/s",
        "delivered\n/s",
        "publish ms\np50/p99",
        "e2e ms, healthy\np50/p99/max",
        "server+store\nCPU ms/1000",
        "pub.+recv.\nCPU ms/1000",
        "RSS\nMB",
        "WAL B\n/event",
        "stmts\n/event",
        "lost",
        "dup.",
        "refused",
    ]);
    for report in reports {
        table.add_row(row(report));
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn row(report: &Report) -> [String; 14] {
    let cpu = &report.cpu_s_per_1000;
    let e2e = &report.e2e_healthy_ms;
    let store = match report.store {
        StoreKind::Postgres => "postgres",
        StoreKind::Embedded => "embedded",
    };
    [
        report.case.clone(),
        store.to_owned(),
        format!("{:.0}", report.accepted_per_s),
        format!("{:.0}", report.delivered_per_s),
        format!("{:.1}/{:.1}", report.publish_ms.p50, report.publish_ms.p99),
        format!("{:.1}/{:.1}/{:.0}", e2e.p50, e2e.p99, e2e.max),
        format!("{}+{}", thousandth(cpu.server), thousandth(cpu.store)),
        format!("{}+{}", thousandth(cpu.publisher), thousandth(cpu.receiver)),
        format!("{:.0}", report.rss_mb),
        report.wal_bytes_per_event.map_or_else(|| "-".to_owned(), |bytes| format!("{bytes:.0}")),
        report.statements_per_event.map_or_else(|| "-".to_owned(), |calls| format!("{calls:.2}")),
        report.lost.to_string(),
        report.duplicates.to_string(),
        report.refused.to_string(),
    ]
}

fn thousandth(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{:.0}", seconds * 1e3))
}
