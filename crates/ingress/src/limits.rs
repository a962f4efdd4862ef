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

/// Receipts of unproven requests of one source at once: all that an operator looks at who sets it up.
const UNPROVEN_BURST: u32 = 100;
/// And one more for each such time, whatever comes: some 260,000 in the 30 days that they are kept.
const UNPROVEN_EACH: Duration = Duration::from_secs(10);
/// Bad signatures of one source at once that are explained: as much work again as the refusal itself.
const EXPLAINED_BURST: u32 = 50;
/// And one more for each such time.
const EXPLAINED_EACH: Duration = Duration::from_millis(50);

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
pub(crate) struct SourceLoad(Mutex<Load>);

struct Load {
    all: Option<Bucket>,
    addresses: HashMap<IpAddr, Address>,
    addresses_most: usize,
    unproven: Allowance,
    skipped: u64,
    explained: Allowance,
}

/// Something that may be done now and then, and at first often.
struct Allowance {
    left: f64,
    at: Option<Instant>,
}

impl Allowance {
    const fn of(burst: u32) -> Self {
        Self { left: burst as f64, at: None }
    }

    fn take(&mut self, burst: u32, each: Duration, now: Instant) -> bool {
        let since = self.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let grown = since.as_secs_f64() / each.as_secs_f64();
        self.left = (self.left + grown).min(f64::from(burst));
        self.at = Some(now);
        let has = self.left >= 1.0;
        if has {
            self.left -= 1.0;
        }
        has
    }
}

impl Default for SourceLoad {
    fn default() -> Self {
        Self::of_addresses(ADDRESSES_MAX)
    }
}

/// A request that was let in. Dropping it makes room.
pub(crate) struct Admission {
    load: Arc<SourceLoad>,
    address: IpAddr,
}

impl SourceLoad {
    /// One that remembers at most so many addresses.
    pub(crate) fn of_addresses(most: usize) -> Self {
        Self(Mutex::new(Load {
            all: None,
            addresses: HashMap::new(),
            addresses_most: most,
            unproven: Allowance::of(UNPROVEN_BURST),
            skipped: 0,
            explained: Allowance::of(EXPLAINED_BURST),
        }))
    }

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
        if load.addresses.len() >= load.addresses_most && !load.addresses.contains_key(&address) {
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

    /// Whether a receipt of a request that nobody has proven is written, and how many before it were
    /// not.
    pub(crate) fn unproven_receipt(&self, now: Instant) -> Option<u64> {
        let mut load = self.lock();
        if load.unproven.take(UNPROVEN_BURST, UNPROVEN_EACH, now) {
            return Some(std::mem::take(&mut load.skipped));
        }
        load.skipped += 1;
        None
    }

    /// Whether a bad signature is tried with the keys that are not taken any more.
    pub(crate) fn may_explain(&self, now: Instant) -> bool {
        self.lock().explained.take(EXPLAINED_BURST, EXPLAINED_EACH, now)
    }

    fn lock(&self) -> MutexGuard<'_, Load> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Load {
    /// Forgets addresses that are as good as new.
    fn make_room(&mut self, limits: &IntakeLimits, now: Instant) {
        if self.addresses.len() < self.addresses_most {
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
    fn a_flood_of_unproven_requests_leaves_some_receipts_and_their_number() {
        let (load, began) = (SourceLoad::default(), Instant::now());
        let (mut written, mut skipped) = (0_u64, 0);
        // Ten thousand a second for a minute.
        for number in 0..600_000_u32 {
            let now = began + Duration::from_micros(100) * number;
            if let Some(before) = load.unproven_receipt(now) {
                written += 1;
                skipped += before;
            }
        }
        assert!((100..=107).contains(&written), "{written}");
        let last = load.unproven_receipt(began + Duration::from_secs(120));
        assert_eq!(skipped + last.unwrap() + written, 600_000);
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
