//! A lane: the in-memory queue of one endpoint, and what the store still holds for it.

use super::{
    input::Job,
    limits::{
        HANDOFF_LATE_MAX, LANE_BYTES_MAX, LANE_QUEUE_MAX, LANE_REFILL_AT, LANE_ROWS_MIN,
        RETRY_TIMES_MAX,
    },
};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet, VecDeque},
};
use turnbuckle_domain::{DeliveryId, EndpointId, LaneClaim, Shard, Timestamp};
use uuid::Uuid;

/// Before every delivery.
const START: (Timestamp, DeliveryId) =
    (Timestamp::from_micros(i64::MIN), DeliveryId::from_uuid(Uuid::nil()));

pub(crate) struct Lane {
    pub(crate) endpoint: EndpointId,
    pub(crate) shard: Shard,
    queue: VecDeque<Job>,
    queued_bytes: usize,
    /// Queued, in flight, or settled but not yet committed: what a claim must not bring again.
    held: HashSet<DeliveryId>,
    pub(crate) in_flight: usize,
    /// The store may hold due deliveries that are not here.
    pub(crate) backlog: bool,
    /// A claim is under way; what overflows meanwhile keeps `backlog` set.
    claiming: bool,
    /// Settled while the claim was under way: the claim may have read them before.
    settled_in_claim: HashSet<DeliveryId>,
    overflowed: bool,
    /// Where the last claim ended. Goes back when something came to light behind it.
    cursor: (Timestamp, DeliveryId),
    /// The last delivery that any claim brought. Never goes back: a hand-off before it may have been
    /// overtaken by a claim.
    claimed_to: (Timestamp, DeliveryId),
    /// When the dispatcher next looks at this lane, if it does.
    pub(crate) armed: Option<Timestamp>,
    /// How many reads of the configuration had begun when its endpoint was first missed.
    pub(crate) unknown_since: Option<u64>,
    /// Its endpoint is disabled or deleted: what waits for a later time is to be ended now.
    closing: bool,
    /// When our own retries are due.
    retries: BinaryHeap<Reverse<Timestamp>>,
    /// In the dispatcher's ready list.
    pub(crate) ready: bool,
    /// In the dispatcher's hungry list.
    pub(crate) hungry: bool,
    /// Starts nothing before this: the endpoint is unknown yet, or cannot sign.
    pub(crate) suspended_until: Option<Timestamp>,
}

impl Lane {
    pub(crate) fn new(endpoint: EndpointId) -> Self {
        Self {
            endpoint,
            shard: Shard::of(endpoint),
            queue: VecDeque::new(),
            queued_bytes: 0,
            held: HashSet::new(),
            in_flight: 0,
            backlog: false,
            claiming: false,
            settled_in_claim: HashSet::new(),
            overflowed: false,
            cursor: START,
            claimed_to: START,
            armed: None,
            unknown_since: None,
            closing: false,
            retries: BinaryHeap::new(),
            ready: false,
            hungry: false,
            suspended_until: None,
        }
    }

    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn holds(&self, id: DeliveryId) -> bool {
        self.held.contains(&id)
    }

    /// Nothing is left to remember.
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty() && !self.backlog && !self.claiming && self.retries.is_empty()
    }

    /// Takes a delivery straight from its commit. When there is no room, or older ones still wait
    /// in the store, it stays there.
    pub(crate) fn hand_off(&mut self, job: Job, has_room: bool) -> Result<(), Job> {
        if (job.delivery.due_at, job.delivery.id) <= self.claimed_to {
            // A claim has been past it: it may have been sent already, while this was on its way.
            // The store knows.
            self.cursor = START;
            self.note_overflow();
            return Err(job);
        }
        let has_room = self.held.len() < LANE_ROWS_MIN || (has_room && self.has_room());
        if !has_room || self.backlog || self.claiming {
            self.note_overflow();
            return Err(job);
        }
        // Not held: what is held is not behind `claimed_to`, and was not handed off before.
        self.push(job);
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.queue.len() < LANE_QUEUE_MAX && self.queued_bytes < LANE_BYTES_MAX
    }

    fn push(&mut self, job: Job) -> bool {
        let is_new = self.held.insert(job.delivery.id);
        if is_new {
            self.queued_bytes += job.weight;
            self.queue.push_back(job);
        }
        is_new
    }

    pub(crate) fn note_overflow(&mut self) {
        self.backlog = true;
        self.overflowed = true;
    }

    /// Puts a delivery back in front: its turn did not happen.
    pub(crate) fn put_back(&mut self, job: Job) {
        self.queued_bytes += job.weight;
        self.queue.push_front(job);
    }

    pub(crate) fn pop(&mut self) -> Option<Job> {
        let job = self.queue.pop_front()?;
        self.queued_bytes -= job.weight;
        Some(job)
    }

    /// Takes a delivery out whose row is gone. None when it is not waiting here.
    pub(crate) fn take_out(&mut self, id: DeliveryId) -> Option<Job> {
        let index = self.queue.iter().position(|job| job.delivery.id == id)?;
        let job = self.queue.remove(index)?;
        self.queued_bytes -= job.weight;
        self.settled(id);
        Some(job)
    }

    /// What to ask the store for, when it is time to ask.
    pub(crate) fn wanted_claim(&self) -> Option<LaneClaim> {
        let is_full = self.queue.len() > LANE_REFILL_AT || self.queued_bytes > LANE_BYTES_MAX / 2;
        if !self.backlog || self.claiming || is_full {
            return None;
        }
        let room = LANE_QUEUE_MAX - self.queue.len();
        Some(LaneClaim {
            endpoint: self.endpoint,
            shard: self.shard,
            after: self.cursor,
            limit: u16::try_from(room).unwrap_or(u16::MAX),
        })
    }

    pub(crate) fn claim_started(&mut self) {
        self.claiming = true;
        self.overflowed = false;
    }

    pub(crate) fn claim_failed(&mut self) {
        self.claiming = false;
        self.settled_in_claim.clear();
    }

    /// A claim is over. Fewer rows than asked for: the store has no more that are due, but for what
    /// overflowed meanwhile.
    pub(crate) fn claim_ended(&mut self, asked: u16, got: usize) {
        if !self.claiming {
            return;
        }
        self.claim_failed();
        if got < usize::from(asked) {
            self.backlog = self.overflowed;
            if self.closing {
                // The cursor stands in the future; what is published from now on comes before it.
                self.closing = false;
                self.cursor = START;
            }
        }
    }

    /// Whether a row of a claim is to be taken: not when it is here already, not when it was settled
    /// after the claim had read it, and not when the shard went and came back in between.
    pub(crate) fn wants(&self, id: DeliveryId) -> bool {
        self.claiming && !self.held.contains(&id) && !self.settled_in_claim.contains(&id)
    }

    /// A row of a claim. False when it is not wanted.
    pub(crate) fn claimed(&mut self, job: Job) -> bool {
        let is_wanted = self.wants(job.delivery.id);
        if self.claiming {
            self.advance((job.delivery.due_at, job.delivery.id));
        }
        is_wanted && self.push(job)
    }

    fn advance(&mut self, row: (Timestamp, DeliveryId)) {
        self.cursor = self.cursor.max(row);
        if !self.closing {
            self.claimed_to = self.claimed_to.max(row);
        }
    }

    /// Moves past a row that never becomes a job.
    pub(crate) fn skip_to(&mut self, due_at: Timestamp, id: DeliveryId) {
        self.advance((due_at, id));
        self.held.insert(id);
    }

    pub(crate) fn settled(&mut self, id: DeliveryId) {
        self.held.remove(&id);
        if self.claiming {
            self.settled_in_claim.insert(id);
        }
    }

    /// Discovery saw this first pending delivery, due by now.
    pub(crate) fn discovered(&mut self, due_at: Timestamp, first: DeliveryId, shared: bool) {
        let unknown = !self.holds(first);
        if unknown && (due_at, first) <= self.cursor {
            // It came to light behind the cursor: a slow commit of another node, or a manual retry.
            self.cursor = START;
        }
        // Other publishers may have put more behind one that is here already.
        if unknown || shared {
            self.backlog = true;
        }
    }

    /// Something is due that may stand behind the cursor.
    pub(crate) fn came_to_light(&mut self) {
        self.cursor = START;
        self.note_overflow();
    }

    /// Discovery saw that something waits for an endpoint that is disabled or deleted.
    pub(crate) fn close(&mut self) {
        if !self.closing {
            self.closing = true;
            self.cursor = START;
        }
        self.backlog = true;
    }

    pub(crate) const fn is_closing(&self) -> bool {
        self.closing
    }

    /// Gives a delivery back whose time has not come after all.
    pub(crate) fn forget(&mut self, id: DeliveryId) {
        self.held.remove(&id);
        self.closing = false;
        self.cursor = START;
    }

    /// Remembers when a retry of ours is due.
    pub(crate) fn retry_at(&mut self, due_at: Timestamp) {
        if self.retries.len() < RETRY_TIMES_MAX {
            self.retries.push(Reverse(due_at));
        }
    }

    /// Forgets retries that are due; true when there were some.
    pub(crate) fn take_due_retries(&mut self, now: Timestamp) -> bool {
        let before = self.retries.len();
        while self.retries.peek().is_some_and(|Reverse(at)| *at <= now) {
            self.retries.pop();
        }
        let any = self.retries.len() < before;
        if any {
            self.note_overflow();
        }
        any
    }

    pub(crate) fn next_retry(&self) -> Option<Timestamp> {
        self.retries.peek().map(|Reverse(at)| *at)
    }

    /// Nothing is left to remember, and no hand-off that a claim overtook can still be on its way.
    pub(crate) fn can_go(&self, now: Timestamp) -> bool {
        self.is_idle() && (self.claimed_to == START || self.claimed_to.0 + HANDOFF_LATE_MAX < now)
    }

    /// The worker loses the shard: what is queued belongs to somebody else now. Answers how many
    /// deliveries and payload bytes that were. What is in flight or unsettled is still held.
    pub(crate) fn drain(&mut self) -> (usize, usize) {
        let (count, bytes) = (self.queue.len(), self.queued_bytes);
        for job in self.queue.drain(..) {
            self.held.remove(&job.delivery.id);
        }
        self.queued_bytes = 0;
        self.claim_failed();
        self.backlog = false;
        self.overflowed = false;
        self.cursor = START;
        self.retries.clear();
        (count, bytes)
    }
}

#[cfg(test)]
mod tests;
