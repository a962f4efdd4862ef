//! The HTTP ingress: where third parties send their webhooks.
//!
//! ```text
//!  third party ─► limits ─► source ─► handshake? ─► signature and time ─► event ─► EventIntake ─► answer
//!                             │           over the exact bytes             │    dedup + commit
//!                             └─ index of sources, swapped as a whole      └─► receipt, in groups
//! ```
//!
//! # Invariants
//! - **I1** No 2xx is answered for anything that is not durable: neither an event nor a dead letter.
//! - **I7** Signatures, keys and payloads are in no log, metric or answer; a receipt has a payload only
//!   where its source says so.
//! - **I9** Verification runs on the exact bytes received, before parsing and before dedup.
//! - **I10** Memory is bounded before anything is verified: headers, body, all bodies together,
//!   connections.
//! - **I15** One id of a source has one effect; other content under it is an anomaly, answered as a
//!   repeat and never processed.
//! - An unknown path and a bad signature are answered alike.
//! - This crate knows no SQL and no other plane.

mod answer;
mod body;
mod config;
mod connections;
mod event;
mod fetched;
mod grpc;
mod heavy;
mod key_meter;
mod keys;
mod limits;
mod listener;
mod memory;
mod metrics;
mod pipeline;
mod plane;
mod proxies;
mod receipts;
mod replay;
mod spikes;
mod strangers;
mod unread;
mod verify;

pub use config::{SourceHandle, SourceIndex, check_source};
pub use plane::{IngressParts, IngressPlane};
pub use proxies::TrustedProxies;
pub use replay::Replays;
