//! Secrets that senders choose themselves and tell once, in a handshake.

use crate::{Error, ResourceId, Revision, TenantId};
use async_trait::async_trait;

/// A secret that a sender offers. `Debug` hides it.
#[derive(Clone, Copy)]
pub struct OfferedSecret<'a> {
    /// Whose source.
    pub tenant: TenantId,
    /// Which source, by the last part of its name.
    pub source: &'a ResourceId,
    /// The handshake that brings it.
    pub handshake: &'a str,
    /// As the sender wrote it.
    pub text: &'a str,
}

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learned {
    /// It is the first key of the source's ring, durable.
    Taken {
        /// The configuration that has it.
        revision: Revision,
    },
    /// The ring has, or had, a key: nothing is ever replaced this way.
    RingInUse,
    /// The source's scheme cannot use it.
    Unusable,
}

/// Keeps offered secrets as keys.
#[async_trait]
pub trait SecretLearning: Send + Sync + 'static {
    /// Puts an offered secret on an empty ring as its active key, sealed and recorded like any
    /// other. Of two offers at once one is taken.
    ///
    /// # Errors
    /// When the store does not answer, or the source is gone.
    async fn learn(&self, offer: OfferedSecret<'_>) -> Result<Learned, Error>;
}

impl std::fmt::Debug for OfferedSecret<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OfferedSecret").field("source", &self.source).finish_non_exhaustive()
    }
}
