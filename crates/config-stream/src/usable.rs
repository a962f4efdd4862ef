//! What a plane has to say of a resource before it counts as usable.

use crate::wire::Record;
use std::{fmt, sync::Arc};
use turnbuckle_domain::node_limits;

type Check = dyn Fn(&Record) -> Result<(), String> + Send + Sync;

/// Whether a plane can build what it needs of a resource. Asked when the resource comes, so that one
/// that cannot be built is refused like one that cannot be read: its version before stays, over
/// restarts too, and `node get` shows it. The default takes everything that can be read.
#[derive(Clone, Default)]
pub struct Usable(Option<Arc<Check>>);

impl Usable {
    /// Asks this function, which answers a refusal with the reason: one line that quotes no values.
    #[must_use]
    pub fn new(check: impl Fn(&Record) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(check)))
    }

    /// Why the resource cannot be used, at most as long as a report takes.
    pub(crate) fn check(&self, record: &Record) -> Result<(), String> {
        let Some(check) = &self.0 else { return Ok(()) };
        check(record).map_err(|reason| {
            let line = reason.chars().filter(|c| !c.is_control());
            line.take(node_limits::REASON_CHARS).collect()
        })
    }
}

impl fmt::Debug for Usable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Usable({})", self.0.is_some())
    }
}
