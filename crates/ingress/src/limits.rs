//! What bounds a source before anything of a request is believed.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;
use turnbuckle_domain::IntakeLimits;

/// Addresses remembered for one source. Those that send nothing for a second are forgotten first; when
/// all of them send, a new one is told to wait.
const ADDRESSES_MAX: usize = 8_192;
/// Tokens refill for this long while nobody comes: the burst that a rate allows.
const BURST: Duration = Duration::from_secs(1);

/// A rate, as tokens that refill.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Bucket {
    fn full(rate: u32, now: Instant) -> Self {
        Self { tokens: f64::from(rate) * BURST.as_secs_f64(), at: now }
    }

    fn refill(&mut self, rate: u32, now: Instant) {
        let most = f64::from(rate) * BURST.as_secs_f64();
        let grown = now.saturating_duration_since(self.at).as_secs_f64() * f64::from(rate);
        self.tokens = (self.tokens + grown).min(most.max(1.0));
        self.at = now;
    }

    fn take(&mut self, rate: u32, now: Instant) -> bool {
        self.refill(rate, now);
        let has = self.tokens >= 1.0;
        if has {
            self.tokens -= 1.0;
        }
        has
    }
}

struct Address {
    bucket: Bucket,
    under_way: u32,
}

/// Rates and requests under way of one source. Outlives changes of the source's settings.
#[derive(Default)]
pub(crate) struct SourceLoad(Mutex<Load>);

#[derive(Default)]
struct Load {
    all: Option<Bucket>,
    addresses: HashMap<IpAddr, Address>,
}

/// A request that was let in. Dropping it makes room.
pub(crate) struct Admission {
    load: Arc<SourceLoad>,
    address: IpAddr,
}

impl SourceLoad {
    /// Lets a request in, or not: too many a second, or too many at once from its address.
    pub(crate) fn admit(
        self: &Arc<Self>,
        limits: &IntakeLimits,
        peer: IpAddr,
        now: Instant,
    ) -> Option<Admission> {
        let address = block_of(peer);
        let mut load = self.lock();
        load.make_room(limits, now);
        if load.addresses.len() >= ADDRESSES_MAX && !load.addresses.contains_key(&address) {
            return None;
        }
        let rate = limits.requests_per_second_per_address;
        let fresh = || Address { bucket: Bucket::full(rate, now), under_way: 0 };
        let own = load.addresses.entry(address).or_insert_with(fresh);
        // The address first: who sends too much must not use up what is for all.
        if own.under_way >= limits.connections_per_address || !own.bucket.take(rate, now) {
            return None;
        }
        let rate = limits.requests_per_second;
        let all = load.all.get_or_insert_with(|| Bucket::full(rate, now));
        if !all.take(rate, now) {
            return None;
        }
        if let Some(own) = load.addresses.get_mut(&address) {
            own.under_way += 1;
        }
        drop(load);
        Some(Admission { load: Arc::clone(self), address })
    }

    fn lock(&self) -> MutexGuard<'_, Load> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Load {
    /// Forgets addresses that are as good as new.
    fn make_room(&mut self, limits: &IntakeLimits, now: Instant) {
        if self.addresses.len() < ADDRESSES_MAX {
            return;
        }
        let most = f64::from(limits.requests_per_second_per_address) * BURST.as_secs_f64();
        self.addresses.retain(|_, address| {
            address.bucket.refill(limits.requests_per_second_per_address, now);
            address.under_way > 0 || address.bucket.tokens < most
        });
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(own) = self.load.lock().addresses.get_mut(&self.address) {
            own.under_way = own.under_way.saturating_sub(1);
        }
    }
}

/// One customer of a network has a whole /64 of IPv6.
pub(crate) fn block_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn limits(all: u32, each: u32, at_once: u32) -> IntakeLimits {
        IntakeLimits {
            requests_per_second: all,
            requests_per_second_per_address: each,
            connections_per_address: at_once,
            ..IntakeLimits::default()
        }
    }

    #[test]
    fn one_address_cannot_use_up_what_is_for_all() {
        let (load, now) = (Arc::new(SourceLoad::default()), Instant::now());
        let limits = limits(10, 4, 100);
        let from = |peer| (0..20).filter(|_| load.admit(&limits, peer, now).is_some()).count();
        assert_eq!((from(A), from(B)), (4, 4));
        // A second later there is room again.
        let later = now + Duration::from_secs(1);
        assert!(load.admit(&limits, A, later).is_some());
    }

    #[test]
    fn a_rate_holds_over_all_addresses() {
        let (load, now) = (Arc::new(SourceLoad::default()), Instant::now());
        let limits = limits(3, 100, 100);
        let admitted = (0..20).filter(|number| {
            let peer = if number % 2 == 0 { A } else { B };
            load.admit(&limits, peer, now).is_some()
        });
        assert_eq!(admitted.count(), 3);
    }

    #[test]
    fn requests_under_way_count_until_they_end() {
        let (load, now) = (Arc::new(SourceLoad::default()), Instant::now());
        let limits = limits(100, 100, 1);
        let first = load.admit(&limits, A, now);
        assert!(first.is_some());
        assert!(load.admit(&limits, A, now).is_none());
        assert!(load.admit(&limits, B, now).is_some());
        drop(first);
        assert!(load.admit(&limits, A, now).is_some());
    }

    #[test]
    fn a_flood_of_addresses_takes_bounded_memory_and_is_forgotten() {
        let (load, now) = (Arc::new(SourceLoad::default()), Instant::now());
        let limits = limits(100_000, 5, 5);
        for number in 0..20_000_u32 {
            let peer = IpAddr::V4(std::net::Ipv4Addr::from_bits(number));
            drop(load.admit(&limits, peer, now));
        }
        assert!(load.lock().addresses.len() <= ADDRESSES_MAX);
        assert!(load.admit(&limits, A, now + Duration::from_secs(2)).is_some());
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let one: IpAddr = "2001:db8:1:2:aaaa::1".parse().unwrap();
        let two: IpAddr = "2001:db8:1:2:bbbb::2".parse().unwrap();
        let far: IpAddr = "2001:db8:1:3::1".parse().unwrap();
        assert_eq!(block_of(one), block_of(two));
        assert_ne!(block_of(one), block_of(far));
        assert_eq!(block_of("::ffff:192.0.2.1".parse().unwrap()), A);
    }
}
