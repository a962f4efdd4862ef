//! Sources as the ingress uses them: an immutable index, swapped as a whole.

mod entry;
mod follower;
mod index;

pub use entry::check_source;
pub(crate) use entry::{Compiled, SourceEntry};
pub(crate) use follower::SourceFollower;
pub use follower::SourceHandle;
pub use index::SourceIndex;
