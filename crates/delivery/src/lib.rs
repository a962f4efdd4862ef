//! The delivery plane: publish API, delivery engine, delivery history.
//!
//! ```text
//!  gRPC Publish ─► check ─► route ─► group commit ─┬─ hand-off ─► lanes ─► attempt ─► settle
//!                          (index)    (EventLog)   └─ store ◄──── claim ◄──┘ (DeliveryQueue)
//!  gRPC Pull ◄─ stream ◄─ lease ◄──────────────────────┘ (PullQueue)
//! ```
//!
//! # Invariants
//! - **I1** A publish is answered after its commit.
//! - **I3** The body is a function of the stored event and the delivery's format; attempts differ in
//!   timestamp, signatures and attempt number only.
//! - **I4** Every result is written under the shard lease it ran under.
//! - **I5** The endpoint's state is read from the index at the moment an attempt starts.
//! - **I6** A lane starts at most its endpoint's slots; ready lanes take turns.
//! - **I8** Every connection is opened by [`egress::EgressGuard::connect`].
//! - **I10** Memory is bounded by named limits for lanes, held deliveries, payload bytes, answers.
//! - This crate knows no SQL and no other plane.

pub mod config;
pub mod egress;
mod engine;
mod format;
pub mod grpc;
mod health;
pub mod http;
mod intake_plane;
mod key_meter;
mod key_test;
mod metrics;
mod plane;
pub mod publish;
mod pull;
mod replay;

pub use engine::EngineSettings;
pub use intake_plane::{IntakeParts, start_intake};
pub use plane::{DeliveryPlane, OwnRevision, PlaneParts, WakeHandle};
