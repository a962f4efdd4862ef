//! The table at the end: what each endpoint got, and how long things took.

use super::{
    ledger::{FLAKY, HEALTHY, Ledger},
    printer::{Line, Printer, millis},
};
use comfy_table::{CellAlignment, Table, presets};
use hdrhistogram::Histogram;
use std::time::Duration;

/// Latencies above a minute are the time limit's business.
const LATENCY_MICROS_MAX: u64 = 60_000_000;

struct Latency {
    what: &'static str,
    micros: Histogram<u64>,
}

/// Prints the summary as tables, or as lines of JSON.
pub(super) fn print(printer: &mut Printer, ledger: &Ledger) {
    let mut endpoints = table(["ENDPOINT", "EVENTS TAKEN", "ATTEMPTS", "RETRIES"]);
    for endpoint in [HEALTHY, FLAKY] {
        let of = ledger.seen.iter().filter(|seen| seen.endpoint == endpoint);
        let (attempts, retries) = (of.clone().count(), of.filter(|seen| seen.number > 1).count());
        let events = ledger.taken(endpoint);
        printer.line(&Line::Endpoint { endpoint, events, attempts, retries });
        let row = [events, attempts, retries].map(|number| number.to_string());
        endpoints.add_row(std::iter::once(endpoint.to_owned()).chain(row));
    }
    let mut latencies = table(["LATENCY", "COUNT", "P50 MS", "P99 MS", "MAX MS"]);
    for Latency { what, micros } in measured(ledger) {
        let at = |quantile| millis(Duration::from_micros(micros.value_at_quantile(quantile)));
        let (p50_ms, p99_ms) = (at(0.5), at(0.99));
        let max_ms = millis(Duration::from_micros(micros.max()));
        let count = micros.len();
        printer.line(&Line::Latency { what, count, p50_ms, p99_ms, max_ms });
        let row = [p50_ms, p99_ms, max_ms].map(|ms| format!("{ms:.2}"));
        latencies.add_row([what.to_owned(), count.to_string()].into_iter().chain(row));
    }
    printer.plain(&format!("\n{}\n{}", lines(&endpoints), lines(&latencies)));
}

/// Every cell is padded by one space on both sides; the first one would indent the whole table.
fn lines(table: &Table) -> String {
    let strip = |line: String| format!("{}\n", line.strip_prefix(' ').unwrap_or(&line).trim_end());
    table.lines().map(strip).collect()
}

fn table<const COLUMNS: usize>(titles: [&str; COLUMNS]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(titles);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn measured(ledger: &Ledger) -> Vec<Latency> {
    let acks = ledger.published.iter().map(|event| event.ack);
    let first_attempts = |endpoint: &'static str| {
        ledger.published.iter().filter_map(move |event| {
            let first = ledger.seen.iter().find(|seen| {
                seen.endpoint == endpoint
                    && seen.event_id == event.planned.event_id
                    && seen.number == 1
            })?;
            Some(first.arrived.saturating_duration_since(event.began))
        })
    };
    [
        latency("publish to durable answer", acks),
        latency("publish to first attempt, healthy", first_attempts(HEALTHY)),
        latency("publish to first attempt, flaky", first_attempts(FLAKY)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn latency(what: &'static str, durations: impl Iterator<Item = Duration>) -> Option<Latency> {
    let mut micros = Histogram::new_with_max(LATENCY_MICROS_MAX, 3).ok()?;
    for duration in durations {
        micros.saturating_record(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }
    Some(Latency { what, micros })
}
