//! Configuration on its way to nodes: what is sent, and the node's end of the stream.
//!
//! ```text
//!  control plane ── snapshot, changes, checkpoints ──► link ──► replica ──► ConfigSource ──► planes
//!       ▲                                               │          └─► last-known-good file
//!       └────────── applied revision, refusals ◄── Reporter
//! ```
//!
//! # Invariants
//! - Within one epoch the revision of a node never goes down (I14).
//! - What a message does not name stays. Only a complete snapshot, whose count and hash fit, takes
//!   away what it lacks.
//! - A snapshot that would take away more than half waits for an operator's word.
//! - A resource that cannot be used keeps its version before, and changes no other one. It is kept
//!   too, over restarts: it comes only once.
//! - Who followed the changes has what a snapshot of the same revision has, no more and no less.
//! - Nothing counts as missing unless the store was read after the question was asked: a node that
//!   hears nothing knows nothing.
//! - Secrets travel and rest sealed; the file is sealed as a whole besides (I7).

mod file;
#[cfg(test)]
mod fixture;
mod heard;
mod link;
mod metrics;
mod replica;
mod report;
mod source;
mod state;
mod usable;
pub mod wire;

pub use file::{FileError, LastKnownGood};
pub use heard::HeardReports;
pub use report::{InUse, RemoteReports, Reporter, StoreReports};
pub use source::{StreamParts, StreamSource};
pub use usable::Usable;
