//! The nouns, rules and ports of Turnbuckle. No I/O, no transport, no ORM.
//!
//! ```text
//!                 ┌───────────── domain ─────────────┐
//!  control-plane ─┤ nouns   Event Endpoint Delivery … ├─ store (Postgres, embedded)
//!       delivery ─┤ rules   decide, KeyRing, patterns │
//!        ingress ─┤ ports   EventLog, DeliveryQueue … ├─ runtime (clock, randomness, sealing)
//!                 └──────────────────────────────────┘
//! ```
//!
//! # Invariants
//! Numbered, so that code, tests and reviews can name them.
//! - **I1** Nothing is acknowledged before it is durable.
//! - **I2** Every accepted event reaches exactly one terminal state per endpoint: delivered, dead,
//!   cancelled or filtered; none stays running longer than lease + one rescue period.
//! - **I3** At most one extra send per crash, lost lease or lost answer; every send of a delivery
//!   carries the same id and body bytes.
//! - **I4** A late writer changes nothing: every state write is guarded by the lease token.
//! - **I5** Nothing leaves for a disabled or deleted endpoint once the worker has applied the change.
//! - **I6** A slow, dead or flooded endpoint takes only its own slots.
//! - **I7** Secrets, signatures, URL credentials and payloads appear in no log, metric, trace, error
//!   or Debug text; secrets at rest are encrypted with a key id.
//! - **I8** No byte goes to a refused address; the address that was judged is the one dialled.
//! - **I9** Signatures cover the exact bytes sent; verification runs on the exact bytes received.
//! - **I10** Memory per request is bounded before authentication, and per response during delivery.
//! - **I11** Clock steps neither lose, nor stall, nor fire early by more than the step.
//! - **I12** No tenant sees, wakes, replays or slows another tenant's rows.
//! - **I13** Poison rows become terminal after N tries and never stop a batch.
//! - **I14** At most two keys of a ring sign; a request is signed by every key valid at its time and
//!   by none that is not; a data plane never applies a lower revision after a higher one.
//! - **I15** One `(tenant, source, event_id)` has one effect inside its dedup window; another payload
//!   under the same id is an anomaly.

mod api_token;
mod attempt;
mod audit;
mod caller;
mod channel;
mod config;
mod config_store;
mod dedup;
mod delivery;
mod denial;
mod endpoint;
mod error;
mod event;
mod event_type_version;
mod fetch;
mod filter;
mod health;
mod id;
mod intake;
mod key;
mod key_rotation;
mod key_standing;
mod key_usage;
mod labels;
mod learning;
mod name;
mod node;
mod operation;
mod order;
mod pattern;
mod ports;
mod processing;
mod pull;
mod quota;
mod random;
mod receipt;
mod replay;
mod request;
mod reserved;
mod retry;
mod retry_preview;
mod sealed;
mod secret;
mod source;
mod time;
mod tombstone;
mod unreadable;

pub use api_token::{
    ApiToken, ApiTokenHash, ApiTokenSecret, ApiTokenState, ApiTokenStore, Revocation,
    api_token_limits,
};
pub use attempt::{Attempt, AttemptOutcome, Phase, RequestFault, Unreachable};
pub use audit::{
    AuditEntry, AuditFilter, AuditHead, AuditOutcome, AuditTrail, Audited, ChainCheck, ChainFault,
    ChangeContext, Fault, FieldChange, Fields, audit_limits, chain_hash, diff, verify_chain,
};
pub use caller::{Caller, Permission, Role};
pub use channel::{Channel, Channels, InvalidChannel};
pub use config::{ConfigDelta, ConfigPosition, Deletable, Epoch, Meta, Revision, SourcePosition};
pub use config_store::{ConfigSource, ConfigStore};
pub use dedup::{DedupRule, SignedBody, dedup_limits, id_mark};
pub use delivery::{Delivery, DeliveryState, FinishReason, LiveDelivery, Shard};
pub use denial::{Denial, DenialLog, DenialReason, PLATFORM};
pub use endpoint::{
    Endpoint, EndpointState, EndpointTarget, EventType, HttpTarget, PayloadFormat, PullTarget,
    SignatureProfile, Subscription, Tenant, limits,
};
pub use error::{Error, Precondition, Violation, Violations};
pub use event::{Event, EventDraft, event_limits};
pub use event_type_version::{
    Compatibility, EventTypeVersion, InvalidVersionName, UnknownVersion, VersionName, VersionsSeen,
    version_limits,
};
pub use fetch::{DocumentFetch, FetchFault, FetchedDocument};
pub use filter::{Filter, FilterError, FilterInput, filter_limits};
pub use health::{
    AttemptEvidence, DisableCause, DisableRule, EndpointHealth, Failing, HealthChange, HealthStore,
    Notice, health_limits,
};
pub use id::{
    ApiTokenId, AuditId, DeliveryId, EndpointId, EventTypeId, EventTypeVersionId, EventUid,
    IdGenerator, KeyId, ReceiptId, ReplayId, RetryPolicyId, SourceId, SubscriptionId, TenantId,
    WorkerId,
};
pub use intake::{EventIntake, IntakeEvent, IntakeRefusal, Taken};
pub use key::{
    Acceptance, Key, KeyAlgorithm, KeyOwner, KeyRing, KeyState, RotationPause, incoming_limits,
    key_limits,
};
pub use key_rotation::{StepAnswers, rotation_limits};
pub use key_standing::{
    AppliedRevisions, Evidence, KeyStanding, NodeApplied, RetireVerdict, RotationStage, Standing,
};
pub use key_usage::{
    AnswerClass, AnswerCounts, KeyPlace, KeyTest, KeyTraffic, KeyUsageStore, KeyUse,
    KeyVerifications, RingUsage, SignedAnswers, Signers, key_usage_limits,
};
pub use labels::Labels;
pub use learning::{Learned, OfferedSecret, SecretLearning};
pub use name::{ResourceId, TypeName};
pub use node::{
    HeldSnapshot, NodeId, NodeReport, NodeReports, NodeRole, RefusedResource, ReportSink,
    node_limits,
};
pub use operation::{OperationKind, OperationalEvent};
pub use order::{
    Arrival, EventOrder, GapEnds, HeldEvent, Move, OrderInstruction, Placed, Placing, SubjectOrder,
    order_limits,
};
pub use pattern::TypePattern;
pub use ports::{
    Append, AppendResult, CLAIM_BYTES_MAX, Claimed, DeliveryFilter, DeliveryQueue, DeliveryView,
    EventFilter, EventLog, Finished, Heartbeat, History, LaneClaim, NewDelivery, Next, PendingLane,
    Propagation, Settled, Settlement, ShardLease, StoreError, TargetPolicy, WakeHint,
};
pub use processing::{Processing, ProcessingState};
pub use pull::{
    Lapsed, LeaseExtension, LeaseToken, Leased, PullClaim, PullQueue, PullSettlement,
    extended_until, pull_limits,
};
pub use quota::Quotas;
pub use random::{Random, SeededRandom};
pub use receipt::{
    Receipt, ReceiptDecision, ReceiptFilter, ReceiptLog, ReceiptReplay, ReplayContext,
    receipt_limits,
};
pub use replay::{
    Looked, ReopenedStates, Reopening, Replay, ReplayCounts, ReplayCreated, ReplayEnd,
    ReplayFilter, ReplayLease, ReplayRow, ReplayScope, ReplayState, ReplayStep, ReplayStore,
    ReplayTurned, ReplayWalk, Rerouted, StepDone, StepPlan, replay_limits,
};
pub use request::{InvalidRequestId, Made, RequestKey, RequestLog, request_limits};
pub use reserved::Reserved;
pub use retry::{Backoff, Decision, Jitter, Progress, RetryPolicy, RetryRule, retry_limits};
pub use retry_preview::PlannedAttempt;
pub use sealed::{
    KeyringCanary, RewrapBatch, RewrapProgress, SealedRecord, SealedRecords, SecretRewrapper,
    rewrap_limits,
};
pub use secret::{SealContext, SealError, SealedSecret, SecretSealer};
pub use source::{
    AnswerBody, Answers, Dedup, DuplicateAnswer, EventMapping, FinalStates, HandshakeChoice,
    IngestPath, IngestToken, IntakeLimits, JsonPath, JsonStep, Ordering, OrderingPolicy,
    OrderingRule, ReceiptSettings, SchemeChoice, SchemeDocument, Source, SourceSettings,
    TimestampWindow, UnknownVersionMode, Unprocessable, ValuePart, ValueSource, WithoutId,
    may_hold_credential, source_limits,
};
pub use time::{Clock, Timestamp};
pub use tombstone::{KEPT_DELETED, Kept, KeptPlace, Tombstones};
pub use unreadable::{ResourceKind, UnreadableResource, Unreadables};
