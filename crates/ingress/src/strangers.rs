//! What any path is answered before anything of a request is proven: that of a path that nobody has.
//!
//! Whether a path is somebody's must not be seen by whoever guesses, or has found, one. So a path that
//! nobody has is treated like that of a source without limits of its own, and a request that is not
//! proven to be its sender's gets the answer that the same request would have got there.

use crate::{
    limits::{Admission, SourceLoad},
    memory::Owner,
};
use std::{
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
    sync::Arc,
};
use tokio::time::Instant;
use turnbuckle_domain::IntakeLimits;

/// Loads that paths share out between them: two paths of one guesser rarely meet in one, and which do
/// is not known outside.
const LOADS: usize = 256;
/// Addresses remembered for each: as many as send within a second.
const ADDRESSES_MAX: usize = 1_024;

/// Loads of paths, whether somebody has them or not.
pub(crate) struct Strangers {
    loads: Vec<Arc<SourceLoad>>,
    hash: RandomState,
    limits: IntakeLimits,
}

/// A path as a stranger finds it.
pub(crate) struct Stranger {
    /// What its bodies count for, when nobody has the path.
    pub(crate) owner: Owner,
    /// None: too much from this address.
    pub(crate) admission: Option<Admission>,
}

impl Default for Strangers {
    fn default() -> Self {
        // Only what one address does counts: what others send must not be seen.
        let limits = IntakeLimits { requests_per_second: u32::MAX, ..IntakeLimits::default() };
        let load = || Arc::new(SourceLoad::of_addresses(ADDRESSES_MAX));
        let loads = std::iter::repeat_with(load).take(LOADS).collect();
        Self { loads, hash: RandomState::new(), limits }
    }
}

impl Strangers {
    /// Counts a request to a path.
    pub(crate) fn meet(&self, path: &str, peer: IpAddr, now: Instant) -> Stranger {
        let number = usize::try_from(self.hash.hash_one(path) % LOADS as u64).unwrap_or(0);
        let load = self.loads.get(number);
        let admission = load.and_then(|load| load.admit(&self.limits, peer, now));
        Stranger { owner: Owner::Stranger(number), admission }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_limited_as_at_a_source_without_limits_of_its_own() {
        let (strangers, source) = (Strangers::default(), Arc::new(SourceLoad::default()));
        let (peer, now) = ("192.0.2.1".parse().unwrap(), Instant::now());
        let mut held = Vec::new();
        for _ in 0..100 {
            let one = strangers.meet("/in/x", peer, now).admission;
            let other = source.admit(&IntakeLimits::default(), peer, now);
            assert_eq!(one.is_some(), other.is_some());
            held.push((one, other));
        }
        drop(held);
        for _ in 0..300 {
            let one = strangers.meet("/in/x", peer, now).admission.is_some();
            assert_eq!(one, source.admit(&IntakeLimits::default(), peer, now).is_some());
        }
        // Another address is none the worse.
        assert!(strangers.meet("/in/x", "192.0.2.2".parse().unwrap(), now).admission.is_some());
    }
}
