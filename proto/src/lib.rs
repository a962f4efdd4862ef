//! Generated code of Turnbuckle's gRPC contract, and nothing else.
//!
//! ```text
//!  turnbuckle/v1/*.proto ──protox──► descriptors ──tonic-prost-build──► v1::{messages, clients, servers}
//!                                        └──► DESCRIPTORS: reflection, method options, JSON form
//! ```
//!
//! # Invariants
//! - No hand-written logic: conversions live with the crates that need them.
//! - The descriptor set carries every option, so what the server enforces is what the proto says.

/// The `turnbuckle.v1` package.
#[expect(clippy::all, clippy::too_many_lines, reason = "generated")]
pub mod v1 {
    tonic::include_proto!("turnbuckle.v1");
}

/// The encoded `FileDescriptorSet` of the package with all options and comments.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
