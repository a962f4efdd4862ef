//! Room that is set aside for something on its way.

use std::{fmt, sync::Arc};

/// A part of a bounded resource, such as memory for bodies, that is given back when the last copy of
/// this is dropped. It travels with what it was set aside for: whoever stops waiting for that gives
/// nothing back which is still in use.
#[derive(Clone, Default)]
pub struct Reserved(Option<Arc<dyn Send + Sync>>);

impl Reserved {
    /// Holds a share until the last copy is dropped.
    #[must_use]
    pub fn new(share: impl Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(share)))
    }
}

impl fmt::Debug for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Reserved" } else { "Reserved(nothing)" })
    }
}
