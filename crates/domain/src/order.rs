//! The order of the events of one subject: where an event stands, and what becomes of it.
//!
//! ```text
//!  sequence ≤ last ......... stale        pass    nothing is looked at
//!  sequence = last + 1 ..... in order     mark    goes on, with a note when it is not the next one
//!  sequence > last + 1 ..... gap          drop    stale ones are recorded and go no further
//!  after a final state ..... after final  hold    as drop; a gap waits, up to a time
//! ```
//! The rule is pure: a store locks the state of a subject, asks it, and writes what it says in the
//! transaction of the event.

use crate::{EndpointId, EventUid, OrderingPolicy, Timestamp};
use std::time::Duration;

/// Bounds of ordering, each with its reason.
pub mod order_limits {
    use std::time::Duration;

    /// Events of one subject that wait for a gap. Together they are one cell of its row, which is
    /// written with every event of the subject. Past it the oldest gap is given up.
    pub const HELD: usize = 64;
    /// Subjects forgotten at once: a bound for the time of one statement.
    pub const PRUNED_AT_ONCE: u16 = 5_000;
    /// Forgetting happens on these steps, so that the index on it is not written with every event.
    pub const FORGET_STEP: Duration = Duration::from_secs(3_600);
    /// How far an event is put off so that it is due after the one before it, which may have been
    /// accepted by a clock that is ahead. Clocks that are further apart are broken, and nobody waits for
    /// them.
    pub const CLOCK_SKEW: Duration = Duration::from_secs(5);
    /// How far from its time a held event may go, so that a new one finds its place among the others
    /// without moving them all.
    pub const HOLD_SLACK: Duration = Duration::from_millis(1);
    /// How far before the next one a held event goes: [`HELD`] of them are within the slack.
    pub const HOLD_STEP: Duration = Duration::from_micros(15);
}

/// The least time between two events of a subject.
const ONE: Duration = Duration::from_micros(1);

/// How an event stood to the order of its subject, when it was not simply the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventOrder {
    /// Its sequence is not above the last one.
    Stale,
    /// Sequences before it are missing.
    Gap,
    /// The subject had reached a final state.
    AfterFinal,
    /// Sequences before it were missing, and it waits or has waited for them.
    Held,
}

impl EventOrder {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Stale, Self::Gap, Self::AfterFinal, Self::Held];

    /// The name stored, sent and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::Gap => "gap",
            Self::AfterFinal => "after-final",
            Self::Held => "held",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|order| order.as_str() == text)
    }

    /// What receivers are told. None for one that waited: it came in its turn, or when the time was
    /// over, which nobody knows yet when it is stored.
    #[must_use]
    pub const fn told(self) -> Option<&'static str> {
        match self {
            Self::Held => None,
            told => Some(told.as_str()),
        }
    }
}

/// What is to be done about the order of an event. It has a subject and a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderInstruction {
    /// What is done when it is not the next one.
    pub policy: OrderingPolicy,
    /// Whether it brings its subject into a final state.
    pub is_final: bool,
    /// How long the subject is remembered from here.
    pub retention: Duration,
}

/// What became of an event with an [`OrderInstruction`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placed {
    /// How it stood; none: it was the next one, or the first.
    pub order: Option<EventOrder>,
    /// When its deliveries are due; none: there are none.
    pub due_at: Option<Timestamp>,
    /// Gaps that ended with it.
    pub gaps: GapEnds,
    /// Endpoints for which something that waited is due now.
    pub released: Vec<EndpointId>,
}

/// How gaps ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GapEnds {
    /// The missing event came.
    pub closed: u32,
    /// It did not come in time.
    pub timed_out: u32,
    /// Too many waited for it.
    pub overfull: u32,
}

/// An event that waits for a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldEvent {
    /// Its sequence.
    pub sequence: i64,
    /// Which one.
    pub event: EventUid,
    /// When it has waited long enough.
    pub deadline: Timestamp,
    /// When its deliveries are due: at the earliest deadline of it and all behind it, give or take
    /// [`order_limits::HOLD_SLACK`], and after those before it.
    pub until: Timestamp,
    /// Whether it brings its subject into a final state.
    pub is_final: bool,
}

/// What is known of the order of a subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectOrder {
    /// The highest sequence that went on. None: nothing is known.
    pub last: Option<i64>,
    /// When the last one that went on was due: the next one is due after it, whoever accepted it.
    pub last_due: Timestamp,
    /// Whether a final state was reached.
    pub is_final: bool,
    /// What waits, by sequence. Only the last of them may be final.
    pub held: Vec<HeldEvent>,
    /// From when on nothing is known any more.
    pub forget_at: Timestamp,
}

/// An event that was not there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Which one.
    pub event: EventUid,
    /// Its sequence.
    pub sequence: i64,
    /// When it was accepted.
    pub at: Timestamp,
    /// What is to be done.
    pub instruction: OrderInstruction,
}

/// Where an event was put.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placing {
    /// How it stood; none: it was the next one, or the first.
    pub order: Option<EventOrder>,
    /// When its deliveries are due; none: it has none.
    pub due_at: Option<Timestamp>,
    /// What becomes of events that waited.
    pub moves: Vec<Move>,
    /// Gaps that ended.
    pub gaps: GapEnds,
}

/// An event that waited, and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// Which one.
    pub event: EventUid,
    /// When its deliveries were due. One that is due at another time was changed by somebody else, and
    /// stays as it is.
    pub from: Timestamp,
    /// When they are due now. None: never, because of a final state.
    pub to: Option<Timestamp>,
    /// Whether its turn has come.
    pub is_release: bool,
}

impl SubjectOrder {
    /// Puts an event into the order.
    pub fn place(&mut self, arrival: &Arrival) -> Placing {
        if self.forget_at <= arrival.at {
            *self = Self::default();
        }
        let mut placing = Placing { due_at: Some(arrival.at), ..Placing::default() };
        self.expire(arrival.at, &mut placing);
        let order = self.standing(arrival.sequence);
        match (order, arrival.instruction.policy) {
            (_, OrderingPolicy::Pass) => return placing,
            (None, _) => self.go_on(arrival, &mut placing),
            (Some(EventOrder::Gap), OrderingPolicy::Mark) => {
                placing.order = order;
                self.go_on(arrival, &mut placing);
            }
            // Sequences that only grow are enough here.
            (Some(EventOrder::Gap), OrderingPolicy::DropStale) => self.go_on(arrival, &mut placing),
            (Some(EventOrder::Gap), OrderingPolicy::Hold { timeout }) => {
                self.hold(arrival, timeout, &mut placing);
            }
            (Some(_), OrderingPolicy::Mark) => placing.order = order,
            (Some(_), OrderingPolicy::DropStale | OrderingPolicy::Hold { .. }) => {
                placing.order = order;
                placing.due_at = None;
            }
        }
        self.remember(arrival);
        placing
    }

    /// How a sequence stands; none: it is the next one, or the first.
    fn standing(&self, sequence: i64) -> Option<EventOrder> {
        let last = self.last?;
        if sequence <= last {
            return Some(EventOrder::Stale);
        }
        // What waits before it comes before it, whatever happens.
        let ends_before = |held: &HeldEvent| held.is_final && held.sequence < sequence;
        if self.is_final || self.held.last().is_some_and(ends_before) {
            return Some(EventOrder::AfterFinal);
        }
        if self.held.iter().any(|held| held.sequence == sequence) {
            return Some(EventOrder::Stale);
        }
        (last.checked_add(1) != Some(sequence)).then_some(EventOrder::Gap)
    }

    /// Whose time was over has gone by itself; the order goes on behind it.
    fn expire(&mut self, now: Timestamp, placing: &mut Placing) {
        while let Some(first) = self.held.first().copied().filter(|first| first.until <= now) {
            placing.gaps.timed_out += u32::from(!self.is_next(first.sequence));
            self.held.remove(0);
            self.reach(first.sequence, first.until, first.is_final);
        }
        self.release(now, placing);
    }

    /// An event goes on now, and what waited for it behind it.
    fn go_on(&mut self, arrival: &Arrival, placing: &mut Placing) {
        // Only after a change of the policy: what waits before it goes on with it.
        let before = self.held.partition_point(|held| held.sequence < arrival.sequence);
        let mut due_at = self.turn(arrival.at);
        for held in self.held.drain(..before) {
            placing.moves.push(held.released(due_at));
            due_at = due_at + ONE;
        }
        placing.due_at = Some(due_at);
        self.reach(arrival.sequence, due_at, arrival.instruction.is_final);
        let moved = placing.moves.len();
        self.release(arrival.at, placing);
        let has_released = placing.moves[moved..].iter().any(|moved| moved.is_release);
        placing.gaps.closed += u32::from(has_released);
    }

    /// An event waits for those before it.
    fn hold(&mut self, arrival: &Arrival, timeout: Duration, placing: &mut Placing) {
        let deadline = self.turn(arrival.at) + timeout;
        let held = HeldEvent {
            sequence: arrival.sequence,
            event: arrival.event,
            deadline,
            until: deadline,
            is_final: arrival.instruction.is_final,
        };
        let place = self.held.partition_point(|other| other.sequence < held.sequence);
        if held.is_final {
            self.withdraw(place, placing);
        }
        let until = self
            .held
            .get(place)
            .map_or(deadline, |next| deadline.min(next.until - order_limits::HOLD_STEP));
        self.held.insert(place, HeldEvent { until, ..held });
        if self.held.len() > order_limits::HELD {
            let first = self.held.remove(0);
            let due_at = self.turn(arrival.at);
            placing.moves.push(first.released(due_at));
            placing.gaps.overfull += 1;
            self.reach(first.sequence, due_at, first.is_final);
            self.release(arrival.at, placing);
        }
        self.set_times(arrival.at, placing);
        // It may be among those that were let go just now.
        let own = placing.moves.iter().rfind(|moved| moved.event == arrival.event).copied();
        placing.moves.retain(|moved| moved.event != arrival.event);
        placing.due_at = match (self.until(arrival.event), own) {
            (Some(until), _) => Some(until),
            (None, Some(moved)) => moved.to,
            (None, None) => Some(arrival.at),
        };
        placing.order = self.until(arrival.event).map(|_| EventOrder::Held);
    }

    /// Lets go what is next, one microsecond after the other; nothing after a final state.
    fn release(&mut self, now: Timestamp, placing: &mut Placing) {
        while !self.is_final
            && let Some(next) = self.held.first().copied().filter(|h| self.is_next(h.sequence))
        {
            let due_at = self.turn(now);
            self.held.remove(0);
            placing.moves.push(next.released(due_at));
            self.reach(next.sequence, due_at, next.is_final);
        }
        if self.is_final {
            self.withdraw(0, placing);
        }
    }

    /// What waits from this place on never goes.
    fn withdraw(&mut self, place: usize, placing: &mut Placing) {
        let withdrawn = |held: HeldEvent| Move {
            event: held.event,
            from: held.until,
            to: None,
            is_release: false,
        };
        placing.moves.extend(self.held.drain(place..).map(withdrawn));
    }

    /// Says when each goes if nothing comes: by its own deadline and that of all behind it, for none may
    /// be overtaken; one that misses nothing goes with the one before it.
    fn set_times(&mut self, now: Timestamp, placing: &mut Placing) {
        let mut latest = vec![Timestamp::MAX; self.held.len() + 1];
        for (place, held) in self.held.iter().enumerate().rev() {
            latest[place] = held.deadline.min(latest[place + 1]);
        }
        // One that is due later than now by more than clocks may differ binds nobody.
        let mut floor = self.turn(now);
        let (mut head, mut before) = (0, None);
        for (place, held) in self.held.iter_mut().enumerate() {
            if before.is_none_or(|before: i64| before.checked_add(1) != Some(held.sequence)) {
                head = place;
            }
            let (time, slack) = (latest[head], order_limits::HOLD_SLACK);
            let is_kept = held.until >= floor.max(time - slack) && held.until <= time + slack;
            let until = if is_kept { held.until } else { time.max(floor) };
            if until != held.until {
                let (event, from) = (held.event, held.until);
                placing.moves.push(Move { event, from, to: Some(until), is_release: false });
                held.until = until;
            }
            (floor, before) = (until + ONE, Some(held.sequence));
        }
    }

    fn until(&self, event: EventUid) -> Option<Timestamp> {
        self.held.iter().find(|held| held.event == event).map(|held| held.until)
    }

    fn is_next(&self, sequence: i64) -> bool {
        self.last.is_some_and(|last| last.checked_add(1) == Some(sequence))
    }

    /// When the next one is due, at the earliest: after the last one.
    fn turn(&self, now: Timestamp) -> Timestamp {
        let next = self.last_due + ONE;
        if next > now && next <= now + order_limits::CLOCK_SKEW { next } else { now }
    }

    fn reach(&mut self, sequence: i64, due_at: Timestamp, is_final: bool) {
        self.last = Some(sequence);
        self.last_due = due_at;
        self.is_final |= is_final;
    }

    /// Never forgotten before what waits has gone.
    fn remember(&mut self, arrival: &Arrival) {
        let kept = arrival.at + arrival.instruction.retention;
        let kept = self.held.last().map_or(kept, |held| held.until.max(kept));
        let step = i64::try_from(order_limits::FORGET_STEP.as_micros()).unwrap_or(i64::MAX);
        let steps = kept.micros().div_euclid(step).saturating_add(1);
        self.forget_at = Timestamp::from_micros(steps.saturating_mul(step));
    }
}

impl HeldEvent {
    const fn released(self, at: Timestamp) -> Move {
        Move { event: self.event, from: self.until, to: Some(at), is_release: true }
    }
}

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod table_tests;
