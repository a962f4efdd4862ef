//! The order of subjects, the same for every backend: which events of a batch ask for it, what the rule
//! says of them, and the row of a subject.

use crate::first::Plan;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use turnbuckle_domain::{
    Append, AppendResult, Arrival, DeliveryId, EndpointId, EventOrder, EventUid, HeldEvent, Move,
    NewDelivery, OrderInstruction, Placed, StoreError, SubjectOrder, TenantId, Timestamp,
};
use uuid::Uuid;

/// What names a subject: tenant, source, subject. Sorted, so that writers take their locks in one order.
pub(crate) type Subject = (TenantId, String, String);

/// An event whose order is watched.
pub(crate) struct Watched<'a> {
    index: usize,
    append: &'a Append,
    subject: &'a str,
    arrival: Arrival,
}

impl<'a> Watched<'a> {
    fn of(index: usize, append: &'a Append) -> Option<Self> {
        let event = &append.event;
        let (subject, sequence) = (event.subject.as_deref()?, event.sequence?);
        let instruction: OrderInstruction = append.order?;
        let arrival = Arrival { event: event.uid, sequence, at: event.accepted_at, instruction };
        Some(Self { index, append, subject, arrival })
    }

    fn key(&self) -> Subject {
        let event = &self.append.event;
        (event.tenant, event.source.clone(), self.subject.to_owned())
    }
}

/// Whether something of a batch asks for an order. Nearly always nothing does.
pub(crate) fn is_watched(append: &Append) -> bool {
    append.order.is_some() && Watched::of(0, append).is_some()
}

/// The events of a batch whose order is watched and that are not repeats, in the order of the batch.
pub(crate) fn watched<'a>(
    batch: &'a [Append],
    plan: &Plan,
    refused: &HashSet<EventUid>,
) -> Vec<Watched<'a>> {
    let is_new = |index: &&usize| !refused.contains(&batch[**index].event.uid);
    let mut chosen: Vec<usize> = plan.writers.iter().filter(is_new).copied().collect();
    chosen.sort_unstable();
    chosen.into_iter().filter_map(|index| Watched::of(index, &batch[index])).collect()
}

/// The subjects of these events, each once.
pub(crate) fn subjects(watched: &[Watched<'_>]) -> Vec<Subject> {
    let subjects: BTreeSet<Subject> = watched.iter().map(Watched::key).collect();
    subjects.into_iter().collect()
}

/// A delivery of a watched event, and when it is due.
pub(crate) struct DueDelivery<'a> {
    pub(crate) append: &'a Append,
    pub(crate) delivery: &'a NewDelivery,
    pub(crate) due_at: Timestamp,
}

/// An event of before that waited, and where its deliveries go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TenantMove {
    pub(crate) tenant: TenantId,
    pub(crate) moved: Move,
    /// Which of the placed events moved it.
    by: usize,
}

impl TenantMove {
    /// First and last possible id of the deliveries.
    pub(crate) const fn range(&self) -> (DeliveryId, DeliveryId) {
        DeliveryId::range_of(self.moved.event)
    }
}

/// What the rule says of a batch.
pub(crate) struct Decided<'a> {
    /// How each subject stands now.
    pub(crate) states: BTreeMap<Subject, SubjectOrder>,
    pub(crate) moves: Vec<TenantMove>,
    watched: Vec<Watched<'a>>,
    placed: Vec<Placed>,
}

/// Asks the rule about each event in turn. `states` has those subjects that are known.
pub(crate) fn decide(
    watched: Vec<Watched<'_>>,
    states: BTreeMap<Subject, SubjectOrder>,
) -> Decided<'_> {
    let places: HashMap<EventUid, usize> =
        watched.iter().enumerate().map(|(place, one)| (one.arrival.event, place)).collect();
    let mut decided = Decided { states, moves: Vec::new(), watched, placed: Vec::new() };
    let mut moved_before: HashMap<EventUid, usize> = HashMap::new();
    for (by, one) in decided.watched.iter().enumerate() {
        let state = decided.states.entry(one.key()).or_default();
        let placing = state.place(&one.arrival);
        decided.placed.push(Placed {
            order: placing.order,
            due_at: placing.due_at,
            gaps: placing.gaps,
            released: Vec::new(),
        });
        for moved in placing.moves {
            if let Some(placed) =
                places.get(&moved.event).and_then(|at| decided.placed.get_mut(*at))
            {
                // Of this very batch: it is written where it ends.
                placed.due_at = moved.to;
                placed.order = moved.to.map_or(Some(EventOrder::AfterFinal), |_| placed.order);
                continue;
            }
            let next = decided.moves.len();
            let at = *moved_before.entry(moved.event).or_insert(next);
            match decided.moves.get_mut(at) {
                Some(before) => {
                    before.moved = Move { from: before.moved.from, ..moved };
                    before.by = by;
                }
                None => {
                    let tenant = one.append.event.tenant;
                    decided.moves.push(TenantMove { tenant, moved, by });
                }
            }
        }
    }
    decided
}

impl<'a> Decided<'a> {
    /// Deliveries to be made, of events that have some.
    pub(crate) fn deliveries(&self) -> impl Iterator<Item = DueDelivery<'a>> {
        self.watched.iter().zip(&self.placed).flat_map(|(one, placed)| {
            let append = one.append;
            let due = placed.due_at.into_iter();
            due.flat_map(move |due_at| {
                append.deliveries.iter().map(move |delivery| DueDelivery {
                    append,
                    delivery,
                    due_at,
                })
            })
        })
    }

    /// What is to be noted with events: of this batch, and of those that waited for nothing.
    pub(crate) fn notes(&self) -> impl Iterator<Item = (TenantId, EventUid, EventOrder)> {
        let placed = self.watched.iter().zip(&self.placed).filter_map(|(one, placed)| {
            let event = &one.append.event;
            placed.order.map(|order| (event.tenant, event.uid, order))
        });
        let withdrawn = self.moves.iter().filter(|moved| moved.moved.to.is_none());
        placed.chain(
            withdrawn.map(|TenantMove { tenant, moved, .. }| {
                (*tenant, moved.event, EventOrder::AfterFinal)
            }),
        )
    }

    /// When what is withdrawn was withdrawn.
    pub(crate) fn at(&self) -> Timestamp {
        self.watched.iter().map(|one| one.arrival.at).max().unwrap_or_default()
    }

    /// What became of each event, with the endpoints of deliveries that were moved.
    pub(crate) fn finish(
        mut self,
        moved: impl IntoIterator<Item = (EventUid, EndpointId)>,
    ) -> Vec<(usize, Placed)> {
        let released = self.moves.iter().filter(|moved| moved.moved.is_release);
        let by: HashMap<EventUid, usize> =
            released.map(|moved| (moved.moved.event, moved.by)).collect();
        for (event, endpoint) in moved {
            if let Some(placed) = by.get(&event).and_then(|by| self.placed.get_mut(*by))
                && !placed.released.contains(&endpoint)
            {
                placed.released.push(endpoint);
            }
        }
        self.watched.iter().map(|one| one.index).zip(self.placed).collect()
    }
}

/// Puts what became of the watched events into the answers of their batch.
pub(crate) fn answer(results: &mut [AppendResult], placed: Vec<(usize, Placed)>) {
    for (index, placed) in placed {
        if let Some(result) = results.get_mut(index)
            && *result == AppendResult::Accepted
        {
            *result = AppendResult::Placed(placed);
        }
    }
}

/// The row of a subject.
pub(crate) struct Row {
    pub(crate) last_sequence: i64,
    pub(crate) last_due_us: i64,
    pub(crate) is_final: bool,
    pub(crate) held: Option<String>,
    pub(crate) forget_at_us: i64,
}

impl Row {
    /// Reads a row.
    ///
    /// # Errors
    /// When no code of ours wrote it.
    pub(crate) fn decode(self) -> Result<SubjectOrder, Malformed> {
        Ok(SubjectOrder {
            last: Some(self.last_sequence),
            last_due: Timestamp::from_micros(self.last_due_us),
            is_final: self.is_final,
            held: self.held.as_deref().map_or_else(|| Ok(Vec::new()), parse)?,
            forget_at: Timestamp::from_micros(self.forget_at_us),
        })
    }

    /// None for a subject of which nothing is known.
    pub(crate) fn of(state: &SubjectOrder) -> Option<Self> {
        Some(Self {
            last_sequence: state.last?,
            last_due_us: state.last_due.micros(),
            is_final: state.is_final,
            held: text(&state.held),
            forget_at_us: state.forget_at.micros(),
        })
    }
}

/// A cell that no code of ours wrote.
#[derive(Debug, thiserror::Error)]
#[error("impossible value in subject_order.held")]
pub(crate) struct Malformed;

impl From<Malformed> for StoreError {
    fn from(error: Malformed) -> Self {
        Self::Internal(error.into())
    }
}

type Cell = (i64, Uuid, i64, i64, bool);

fn text(held: &[HeldEvent]) -> Option<String> {
    if held.is_empty() {
        return None;
    }
    let cell = |held: &HeldEvent| -> Cell {
        let (deadline, until) = (held.deadline.micros(), held.until.micros());
        (held.sequence, held.event.uuid(), deadline, until, held.is_final)
    };
    let cells: Vec<Cell> = held.iter().map(cell).collect();
    // Numbers, ids and truth values: nothing here can fail to be written.
    serde_json::to_string(&cells).ok()
}

fn parse(text: &str) -> Result<Vec<HeldEvent>, Malformed> {
    let cells: Vec<Cell> = serde_json::from_str(text).map_err(|_| Malformed)?;
    let held = |(sequence, event, deadline, until, is_final): Cell| HeldEvent {
        sequence,
        event: EventUid::from_uuid(event),
        deadline: Timestamp::from_micros(deadline),
        until: Timestamp::from_micros(until),
        is_final,
    };
    Ok(cells.into_iter().map(held).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::order_limits;

    #[test]
    fn what_waits_round_trips_and_fits_its_cell() {
        assert_eq!(text(&[]), None);
        let longest = HeldEvent {
            sequence: i64::MIN,
            event: EventUid::from_uuid(Uuid::max()),
            deadline: Timestamp::from_micros(i64::MIN),
            until: Timestamp::from_micros(i64::MIN),
            is_final: false,
        };
        let all = [longest; order_limits::HELD];
        let written = text(&all).unwrap();
        assert!(written.len() <= 16_384, "{}", written.len());
        assert_eq!(parse(&written).unwrap(), all);
        for malformed in ["", "{}", "[1]", r#"[[1,"x",2,3,true]]"#] {
            assert!(parse(malformed).is_err(), "{malformed}");
        }
    }
}
