//! Configuration as the delivery plane uses it: an immutable index, swapped as a whole.
//!
//! ```text
//!  ConfigSource ── changes since r ──► follower ── new index ──► readers (no locks)
//!                                        └── applied revision ──► Propagation, dispatcher
//! ```

mod endpoint;
mod follower;
mod index;
mod route;
mod signer;
mod versions;

pub use endpoint::EndpointEntry;
pub use follower::{ConfigFollower, ConfigHandle};
pub use index::{ConfigIndex, TypeRules};
pub use route::{Route, Routes};
pub use signer::Signer;
pub use versions::{VersionCheck, Versions};
