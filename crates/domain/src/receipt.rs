//! Receipts: what an ingress decided about each request that named a known source, and why.

use crate::{
    Error, EventUid, KeyId, KeyState, ReceiptId, Source, SourceId, StoreError, Taken, TenantId,
    Timestamp,
};
use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bounds of receipts, each with its reason.
pub mod receipt_limits {
    use std::time::Duration;

    /// How long receipts are kept when nothing is chosen: longer than every known sender tries again.
    pub const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
    /// Shortest time that they are kept: a sender's complaint of yesterday can be answered.
    pub const KEPT_MIN: Duration = Duration::from_secs(24 * 3600);
    /// Longest time that they are kept: a year, and what it takes to notice that it is over.
    pub const KEPT_MAX: Duration = Duration::from_secs(400 * 24 * 3600);
    /// Receipts taken away at once: a bound for the time of one statement.
    pub const PRUNED_AT_ONCE: u16 = 5_000;
    /// Longest reason: one line for an operator.
    pub const REASON_CHARS: usize = 300;
    /// Longest value of a kept header.
    pub const HEADER_CHARS: usize = 512;
}

/// What was decided about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReceiptDecision {
    /// Its events are stored.
    Accepted,
    /// All of its events were known.
    Duplicate,
    /// A known id with other content: answered as a duplicate, not processed.
    Anomaly,
    /// A question of the sender, answered.
    Handshake,
    /// Its events, or some of them, were refused by the rules and the request is kept.
    DeadLetter,
    /// It was refused.
    Refused,
    /// The store did not answer in time; the sender was told to try again. What was being stored may
    /// have been.
    Unavailable,
}

impl ReceiptDecision {
    /// All decisions.
    pub const ALL: [Self; 7] = [
        Self::Accepted,
        Self::Duplicate,
        Self::Anomaly,
        Self::Handshake,
        Self::DeadLetter,
        Self::Refused,
        Self::Unavailable,
    ];

    /// The name stored and shown.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::Anomaly => "anomaly",
            Self::Handshake => "handshake",
            Self::DeadLetter => "dead-letter",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.as_str() == text)
    }
}

/// The record of one request. Holds no signature and no secret; a payload only as the source says.
#[derive(Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Names it; carries its time.
    pub id: ReceiptId,
    /// Whose source.
    pub tenant: TenantId,
    /// Which source.
    pub source: SourceId,
    /// Last part of the source's name then.
    pub source_slug: String,
    /// When the request was read.
    pub received_at: Timestamp,
    /// What was decided.
    pub decision: ReceiptDecision,
    /// Why, in an operator's words; empty when nothing is to be said.
    pub reason: String,
    /// The status answered.
    pub status: u16,
    /// The sender's id of the event, of a batch the first one.
    pub event_id: String,
    /// Whether a signature covers that id; none when there is no id.
    pub event_id_signed: Option<bool>,
    /// The event, of a batch the first one.
    pub event: Option<EventUid>,
    /// Events in the request.
    pub events: u32,
    /// The key that verified it.
    pub key: Option<KeyId>,
    /// What state that key was in.
    pub key_state: Option<KeyState>,
    /// How far the signed time was behind ours, in milliseconds; negative when it was ahead.
    pub skew_ms: Option<i64>,
    /// Bytes of the body.
    pub body_bytes: u32,
    /// SHA-256 of the body.
    pub body_hash: [u8; 32],
    /// The headers that the source keeps.
    pub headers: Vec<(String, String)>,
    /// The body, where the source keeps it, or for a dead letter.
    pub payload: Option<Bytes>,
    /// Until when the payload is kept.
    pub payload_until: Option<Timestamp>,
    /// With a payload: what else its events are made of, so that it can be taken again.
    pub context: Option<ReplayContext>,
}

/// What the events of a request are made of besides its body. Only what the settings of its source read;
/// never signatures.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplayContext {
    /// The media type.
    pub content_type: String,
    /// The id that the scheme read.
    pub message_id: Option<String>,
    /// Headers that the settings read, with their values.
    pub headers: Vec<(String, String)>,
    /// Parameters of the URL that the settings read, with their values.
    pub query: Vec<(String, String)>,
}

/// Hides headers and payload.
impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receipt")
            .field("id", &self.id)
            .field("source", &self.source)
            .field("decision", &self.decision)
            .field("reason", &self.reason)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// Which receipts to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiptFilter {
    /// Only of this source.
    pub source: Option<SourceId>,
    /// Only with this decision.
    pub decision: Option<ReceiptDecision>,
    /// Only with this id of the sender.
    pub event_id: Option<String>,
}

/// Where receipts are kept.
#[async_trait]
pub trait ReceiptLog: Send + Sync + 'static {
    /// Keeps receipts, in one transaction. Durable when it returns `Ok`.
    async fn record_receipts(&self, receipts: &[Receipt]) -> Result<(), StoreError>;

    /// One receipt with its payload.
    async fn receipt(&self, tenant: TenantId, id: ReceiptId)
    -> Result<Option<Receipt>, StoreError>;

    /// Receipts without their payloads, newest first; `after` is the id of the last one seen.
    async fn receipts(
        &self,
        tenant: TenantId,
        filter: &ReceiptFilter,
        after: Option<ReceiptId>,
        limit: u16,
    ) -> Result<Vec<Receipt>, StoreError>;

    /// Takes away receipts of before `oldest`, at most [`receipt_limits::PRUNED_AT_ONCE`], and the
    /// as many payloads whose time is over. Answers how many went, of whichever went more: at the bound
    /// there may be others left.
    async fn prune_receipts(&self, oldest: Timestamp, now: Timestamp) -> Result<u64, StoreError>;
}

/// Takes a kept request through the mapping of its source again. Its signature and its time were right
/// when it came, and are not looked at.
#[async_trait]
pub trait ReceiptReplay: Send + Sync + 'static {
    /// What became of each of its events, durable when it returns. Unless `only_new`, they are new
    /// events whatever is known of their ids.
    ///
    /// # Errors
    /// When the settings of the source make no event of it, or the store does not answer.
    async fn replay(
        &self,
        source: &Source,
        receipt: &Receipt,
        only_new: bool,
    ) -> Result<Vec<Taken>, Error>;
}
