//! Which event goes where.

/// The endpoints of a run; the first `hang` of them never answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Targets {
    pub(crate) endpoints: u16,
    pub(crate) hang: u16,
    pub(crate) fan_out: bool,
}

impl Targets {
    /// Deliveries that an event becomes.
    pub(crate) fn per_event(self) -> usize {
        if self.fan_out { usize::from(self.endpoints) } else { 1 }
    }

    /// Event types: one for all, or one for each endpoint.
    pub(crate) fn event_types(self) -> Vec<String> {
        let count = if self.fan_out { 1 } else { self.endpoints };
        (0..count).map(|index| format!("bench.e{index}")).collect()
    }

    /// The endpoints of an event, each with whether it is healthy.
    pub(crate) fn of(self, event: u32) -> impl Iterator<Item = (u16, bool)> {
        let (first, last) = if self.fan_out {
            (0, self.endpoints - 1)
        } else {
            let index = u16::try_from(event % u32::from(self.endpoints)).unwrap_or(0);
            (index, index)
        };
        (first..=last).map(move |endpoint| (endpoint, endpoint >= self.hang))
    }

    /// Where in a table of deliveries one stands; `None` when the event does not go there.
    pub(crate) fn slot(self, event: u32, endpoint: u16) -> Option<usize> {
        let position = self.of(event).position(|(target, _)| target == endpoint)?;
        Some(usize::try_from(event).ok()? * self.per_event() + position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_events_take_turns_and_the_first_endpoints_hang() {
        let targets = Targets { endpoints: 3, hang: 1, fan_out: false };
        let of = |event| targets.of(event).collect::<Vec<_>>();
        assert_eq!((of(0), of(4)), (vec![(0, false)], vec![(1, true)]));
        assert_eq!((targets.slot(4, 1), targets.slot(4, 2)), (Some(4), None));
        assert_eq!(targets.event_types().len(), 3);
    }

    #[test]
    fn fanned_out_events_go_everywhere_under_one_type() {
        let targets = Targets { endpoints: 3, hang: 0, fan_out: true };
        assert_eq!(targets.of(7).count(), 3);
        assert_eq!((targets.slot(7, 2), targets.slot(7, 3)), (Some(23), None));
        assert_eq!(targets.event_types(), ["bench.e0"]);
    }
}
