//! The figures of a run.

use super::load::Answered;
use crate::{
    analysis::{Latency, Window, latency},
    args::{IngestArgs, Rate, StoreKind},
    probe::Probe,
    report::{count, per, rate, rounded},
};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// One run. Field names are a contract with scripts.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    store: StoreKind,
    payload: u32,
    #[serde(serialize_with = "rate")]
    rate: Rate,
    connections: u16,
    /// Connections that never finish a request.
    slow: u16,
    seconds: f64,
    accepted_per_s: f64,
    /// From due, or sent, to the answer of an accepted request.
    ack_ms: Latency,
    /// Other answers to honest requests, by status; 0 for a failed connection.
    refused: BTreeMap<u16, usize>,
    /// Requests on the schedule for which no connection was free.
    not_sent: u64,
    /// Forged requests refused a second.
    forged_per_s: f64,
    forged_ms: Latency,
    /// Forged requests that were accepted. Refused are those answered 401, and 503 past the rate of an
    /// address that proves nothing.
    forged_not_refused: usize,
    /// Accepted events that were sent again at the end.
    checked: usize,
    /// Those of them that were not known.
    pub(crate) lost: usize,
    /// CPU microseconds for each accepted event.
    server_us: Option<f64>,
    store_us: Option<f64>,
    sender_us: Option<f64>,
    rss_mb: f64,
    wal_bytes_per_event: Option<f64>,
    statements_per_event: Option<f64>,
}

/// What a report is made of.
pub(super) struct Measured<'a> {
    pub(super) answers: &'a [Answered],
    pub(super) forged: &'a [Answered],
    pub(super) before: Probe,
    pub(super) after: Probe,
    pub(super) not_sent: u64,
    pub(super) checked: usize,
    pub(super) lost: usize,
    pub(super) rss_mb: f64,
}

/// Whether a sender may forget what it sent.
pub(super) const fn is_accepted(status: u16) -> bool {
    status == 202
}

impl Report {
    pub(super) fn new(args: &IngestArgs, measured: &Measured<'_>) -> anyhow::Result<Self> {
        let Measured { before, after, .. } = measured;
        let window = Window { from_us: before.at_us, to_us: after.at_us };
        let counted = Window { from_us: before.counters_at_us, to_us: after.counters_at_us };
        let counters = before.counters.zip(after.counters);
        let events = count(accepted(measured.answers, counted).count());
        let accepted_here = count(accepted(measured.answers, window).count());
        let micros = |cpu: f64| per(cpu * 1e6, accepted_here).map(rounded);
        let store = before.store_cpu.zip(after.store_cpu);
        let refusals = |answered: &&Answered| window.has(answered.at_us);
        let forged = measured.forged.iter().filter(refusals).count();
        let statements = counters.and_then(|(old, new)| Some(new.statements? - old.statements?));
        Ok(Self {
            store: args.store,
            payload: args.payload,
            rate: args.rate,
            connections: args.connections,
            slow: args.slow,
            seconds: rounded(window.seconds()),
            accepted_per_s: rounded(accepted_here / window.seconds()),
            ack_ms: acknowledged(measured.answers, window)?,
            refused: refused(measured.answers),
            not_sent: measured.not_sent,
            forged_per_s: rounded(count(forged) / window.seconds()),
            forged_ms: latency(measured.forged.iter().filter(refusals).map(Answered::took_us))?,
            forged_not_refused: measured
                .forged
                .iter()
                .filter(|answered| is_accepted(answered.status))
                .count(),
            checked: measured.checked,
            lost: measured.lost,
            server_us: micros(after.server_cpu - before.server_cpu),
            store_us: store.and_then(|(old, new)| micros(new - old)),
            sender_us: micros(after.publisher_cpu - before.publisher_cpu),
            rss_mb: rounded(measured.rss_mb),
            wal_bytes_per_event: counters
                .and_then(|(old, new)| per(new.wal_bytes - old.wal_bytes, events)),
            statements_per_event: statements.and_then(|statements| per(statements, events)),
        })
    }
}

impl Answered {
    fn took_us(&self) -> i64 {
        self.at_us - self.start_us
    }
}

fn accepted(answers: &[Answered], window: Window) -> impl Iterator<Item = &Answered> {
    answers
        .iter()
        .filter(move |answered| is_accepted(answered.status) && window.has(answered.at_us))
}

/// Of requests that began in the window.
fn acknowledged(answers: &[Answered], window: Window) -> anyhow::Result<Latency> {
    let begun = answers.iter().filter(|answered| window.has(answered.start_us));
    latency(begun.filter(|answered| is_accepted(answered.status)).map(Answered::took_us))
}

fn refused(answers: &[Answered]) -> BTreeMap<u16, usize> {
    let mut refused = BTreeMap::new();
    for answered in answers.iter().filter(|answered| !is_accepted(answered.status)) {
        *refused.entry(answered.status).or_default() += 1;
    }
    refused
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = match self.store {
            StoreKind::Postgres => "Postgres",
            StoreKind::Embedded => "embedded store",
        };
        let figure = |value: Option<f64>| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
        };
        let Latency { p50, p99, max } = self.ack_ms;
        writeln!(f, "{store}, {} B, {} connections", self.payload, self.connections)?;
        writeln!(f, "accepted        {:>10.0} /s", self.accepted_per_s)?;
        writeln!(f, "answer          {p50:>10.2} / {p99:.2} / {max:.1} ms (p50/p99/max)")?;
        if self.forged_per_s > 0.0 {
            let Latency { p50, p99, max } = self.forged_ms;
            writeln!(f, "forged, refused {:>10.0} /s", self.forged_per_s)?;
            writeln!(f, "their answer    {p50:>10.2} / {p99:.2} / {max:.1} ms (p50/p99/max)")?;
            writeln!(f, "not refused     {:>10}", self.forged_not_refused)?;
        }
        if self.slow > 0 {
            writeln!(f, "slow senders    {:>10}", self.slow)?;
        }
        writeln!(
            f,
            "CPU per event   {:>10} us server, {} us store, {} us sender",
            figure(self.server_us),
            figure(self.store_us),
            figure(self.sender_us)
        )?;
        writeln!(f, "memory, peak    {:>10.0} MB", self.rss_mb)?;
        if let Some(bytes) = self.wal_bytes_per_event {
            writeln!(f, "write-ahead log {bytes:>10.0} B per event")?;
        }
        for (status, requests) in &self.refused {
            writeln!(f, "status {status:<8} {requests:>10}")?;
        }
        if self.not_sent > 0 {
            writeln!(f, "not sent        {:>10}", self.not_sent)?;
        }
        write!(f, "unknown later   {:>10} of {} looked at", self.lost, self.checked)
    }
}
