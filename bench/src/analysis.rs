//! From what was sent and what arrived to figures.

use crate::{
    publisher::{Published, Sent},
    receiver::Arrival,
    targets::Targets,
};
use anyhow::Context as _;
use hdrhistogram::Histogram;

/// Longest latency told apart from longer ones.
const LATENCY_MAX_US: u64 = 30 * 60 * 1_000_000;
/// Digits of a latency.
const DIGITS: u8 = 3;

/// Distribution of a latency, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

/// A span of wall-clock time, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) from_us: i64,
    pub(crate) to_us: i64,
}

impl Window {
    pub(crate) const fn has(self, at_us: i64) -> bool {
        self.from_us <= at_us && at_us < self.to_us
    }

    #[expect(clippy::cast_precision_loss, reason = "a window has far fewer than 2^52 microseconds")]
    pub(crate) fn seconds(self) -> f64 {
        (self.to_us - self.from_us) as f64 / 1e6
    }
}

/// Who got what, for the whole run.
pub(crate) struct Analysis {
    targets: Targets,
    sent: Vec<Sent>,
    /// First arrival of each delivery, 0 when there was none.
    first_us: Vec<i64>,
    /// Arrivals at healthy endpoints after the first.
    pub(crate) duplicates: u64,
    /// Deliveries of acknowledged events to healthy endpoints that never arrived.
    pub(crate) lost: u64,
}

impl Analysis {
    pub(crate) fn new(
        targets: Targets,
        published: &Published,
        arrivals: &[Arrival],
    ) -> anyhow::Result<Self> {
        let sent = published.sent.clone();
        let events = sent.iter().map(|sent| sent.event).max().map_or(0, |last| last + 1);
        let mut first_us = vec![0; usize::try_from(events)? * targets.per_event()];
        let mut duplicates = 0;
        for arrival in arrivals {
            let first = targets
                .slot(arrival.event, arrival.endpoint)
                .and_then(|slot| first_us.get_mut(slot))
                .with_context(|| format!("nobody sent what arrived: {arrival:?}"))?;
            if *first == 0 {
                *first = arrival.at_us;
            } else {
                *first = arrival.at_us.min(*first);
                duplicates += u64::from(arrival.endpoint >= targets.hang);
            }
        }
        let mut analysis = Self { targets, sent, first_us, duplicates, lost: 0 };
        let accepted = analysis.sent.iter().filter(|sent| sent.accepted_us.is_some());
        let lost = accepted
            .flat_map(|sent| analysis.deliveries(sent.event))
            .filter(|(is_healthy, first_us)| *is_healthy && *first_us == 0);
        analysis.lost = u64::try_from(lost.count())?;
        Ok(analysis)
    }

    /// Whether each delivery of an event is to a healthy endpoint, and when it arrived first.
    fn deliveries(&self, event: u32) -> impl Iterator<Item = (bool, i64)> {
        self.targets.of(event).map(move |(endpoint, is_healthy)| {
            let slot = self.targets.slot(event, endpoint);
            let first = slot.and_then(|slot| self.first_us.get(slot)).copied();
            (is_healthy, first.unwrap_or(0))
        })
    }

    /// Events acknowledged in the window.
    pub(crate) fn accepted_in(&self, window: Window) -> usize {
        let accepted = self.sent.iter().filter_map(|sent| sent.accepted_us);
        accepted.filter(|at_us| window.has(*at_us)).count()
    }

    /// Deliveries that arrived first in the window, at healthy endpoints.
    pub(crate) fn delivered_in(&self, window: Window) -> usize {
        let all = self.sent.iter().flat_map(|sent| self.deliveries(sent.event));
        all.filter(|(is_healthy, first_us)| *is_healthy && window.has(*first_us)).count()
    }

    /// Events that were refused, or whose answer was lost.
    pub(crate) fn refused(&self) -> usize {
        self.sent.iter().filter(|sent| sent.accepted_us.is_none()).count()
    }

    /// From start to acknowledgement, of events started in the window.
    pub(crate) fn publish(&self, window: Window) -> anyhow::Result<Latency> {
        let started = self.sent.iter().filter(|sent| window.has(sent.start_us));
        latency(started.filter_map(|sent| Some(sent.accepted_us? - sent.start_us)))
    }

    /// From start to first arrival, of events started in the window.
    pub(crate) fn end_to_end(&self, window: Window, healthy_only: bool) -> anyhow::Result<Latency> {
        let started = self.sent.iter().filter(|sent| window.has(sent.start_us));
        latency(started.flat_map(|sent| {
            self.deliveries(sent.event)
                .filter(move |(is_healthy, first)| *first > 0 && (*is_healthy || !healthy_only))
                .map(move |(_, first_us)| first_us - sent.start_us)
        }))
    }
}

/// The distribution of microseconds.
pub(crate) fn latency(values: impl Iterator<Item = i64>) -> anyhow::Result<Latency> {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, LATENCY_MAX_US, DIGITS)?;
    // The histogram rounds; the worst case is worth its exact value.
    let mut max = 0;
    for value in values {
        // The wall clock may be set back by a few microseconds between two processes' readings.
        let value = u64::try_from(value).unwrap_or(0);
        histogram.saturating_record(value);
        max = value.max(max);
    }
    let quantile = |q| millis(histogram.value_at_quantile(q));
    Ok(Latency { p50: quantile(0.5), p99: quantile(0.99), max: millis(max) })
}

#[expect(clippy::cast_precision_loss, reason = "half an hour of microseconds fits")]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Window = Window { from_us: 1_000, to_us: 1_001_000 };

    fn sent(event: u32, start_us: i64, accepted_us: Option<i64>) -> Sent {
        Sent { event, start_us, accepted_us }
    }

    fn analysis(targets: Targets, sent: Vec<Sent>, arrivals: &[(u32, u16, i64)]) -> Analysis {
        let arrivals: Vec<Arrival> = arrivals
            .iter()
            .map(|(event, endpoint, at_us)| Arrival {
                event: *event,
                endpoint: *endpoint,
                at_us: *at_us,
            })
            .collect();
        let published = Published { sent, ..Published::default() };
        Analysis::new(targets, &published, &arrivals).unwrap()
    }

    #[test]
    fn only_acknowledged_events_at_healthy_endpoints_can_be_lost() {
        let targets = Targets { endpoints: 2, hang: 1, fan_out: false };
        let events = vec![
            sent(0, 2_000, Some(3_000)), // goes to the hanging endpoint
            sent(1, 2_000, Some(3_000)),
            sent(2, 2_000, Some(3_000)),
            sent(3, 2_000, None),
        ];
        let result = analysis(targets, events, &[]);
        assert_eq!((result.lost, result.refused()), (1, 1));
    }

    #[test]
    fn a_second_arrival_is_a_duplicate_and_the_first_one_counts() {
        let targets = Targets { endpoints: 2, hang: 0, fan_out: true };
        let arrivals = [(0, 0, 9_000), (0, 1, 5_000), (0, 0, 4_000)];
        let result = analysis(targets, vec![sent(0, 2_000, Some(3_000))], &arrivals);
        assert_eq!((result.lost, result.duplicates), (0, 1));
        assert_eq!(result.delivered_in(SECOND), 2);
        let latency = result.end_to_end(SECOND, true).unwrap();
        assert_eq!((latency.p50, latency.max), (2.0, 3.0));
    }

    #[test]
    fn what_hangs_is_out_of_the_healthy_latency() {
        let targets = Targets { endpoints: 2, hang: 1, fan_out: false };
        let events = vec![sent(0, 2_000, Some(2_500)), sent(1, 2_000, Some(2_500))];
        let result = analysis(targets, events, &[(0, 0, 900_000), (1, 1, 3_000)]);
        assert_eq!(result.end_to_end(SECOND, true).unwrap().max, 1.0);
        assert!(result.end_to_end(SECOND, false).unwrap().max > 890.0);
        assert_eq!(result.publish(SECOND).unwrap().p50, 0.5);
    }

    #[test]
    fn the_window_is_half_open() {
        let targets = Targets { endpoints: 1, hang: 0, fan_out: false };
        let events = vec![sent(0, 500, Some(999)), sent(1, 500, Some(1_000))];
        assert_eq!(analysis(targets, events, &[]).accepted_in(SECOND), 1);
    }

    #[test]
    fn an_arrival_that_nobody_sent_is_an_error() {
        let targets = Targets { endpoints: 1, hang: 0, fan_out: false };
        let arrival = Arrival { event: 9, endpoint: 0, at_us: 1 };
        assert!(Analysis::new(targets, &Published::default(), &[arrival]).is_err());
    }
}
