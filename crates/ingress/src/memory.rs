//! Memory for bodies: bounded for all of them together, for each tenant and for each source.
//!
//! Nothing of a body is proven before its last byte, so whoever knows a path can fill what is set aside
//! for it, slowly and for nothing. The shares see to it that this costs only that source.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use turnbuckle_domain::{SourceId, TenantId};

pub(crate) const KIB: usize = 1024;
/// KiB of all bodies together: sixty of the largest, a quarter of a million of the usual.
const ALL_KIB: usize = 256 * KIB;
/// KiB of one tenant's bodies: it may have any number of sources.
const TENANT_KIB: usize = ALL_KIB / 4;
/// KiB of one source's bodies: eight of the largest at once.
const SOURCE_KIB: usize = ALL_KIB / 8;

/// Whose a body is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Owner {
    Source(TenantId, SourceId),
    /// Of a path that nobody has: nothing of it is kept, and it counts for itself as if it were.
    Stranger(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Account {
    All,
    Tenant(TenantId),
    Source(SourceId),
    Stranger(usize),
}

/// What is taken, in KiB.
type Ledger = HashMap<Account, usize>;

/// Memory for bodies.
#[derive(Clone, Default)]
pub(crate) struct BodyMemory(Arc<Mutex<Ledger>>);

/// A part of it. Dropping it gives it back.
pub(crate) struct Share {
    memory: BodyMemory,
    owner: Owner,
    kib: usize,
}

impl Owner {
    const fn accounts(self) -> [(Account, usize); 3] {
        match self {
            Self::Source(tenant, source) => [
                (Account::Source(source), SOURCE_KIB),
                (Account::Tenant(tenant), TENANT_KIB),
                (Account::All, ALL_KIB),
            ],
            Self::Stranger(number) => {
                let own = (Account::Stranger(number), SOURCE_KIB);
                [own, own, own]
            }
        }
    }
}

impl BodyMemory {
    /// Sets so many bytes aside, if there is room.
    pub(crate) fn share(&self, owner: Owner, bytes: usize) -> Option<Share> {
        let mut share = Share { memory: self.clone(), owner, kib: 0 };
        share.grow(bytes).then_some(share)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Grows to so many bytes; false, and as before, when there is no room.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let more = bytes.div_ceil(KIB).saturating_sub(self.kib);
        let mut ledger = self.memory.ledger();
        let accounts = self.owner.accounts();
        // When nothing is left for anybody, a path that nobody has is told so too.
        let bounds = accounts.iter().chain([&(Account::All, ALL_KIB)]);
        let taken = |account| ledger.get(account).copied().unwrap_or(0);
        if bounds.into_iter().any(|(account, most)| taken(account) + more > *most) {
            return false;
        }
        for account in distinct(&accounts) {
            *ledger.entry(account).or_default() += more;
        }
        drop(ledger);
        self.kib += more;
        true
    }

    /// Gives back all but so many bytes.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let less = self.kib.saturating_sub(bytes.div_ceil(KIB));
        let mut ledger = self.memory.ledger();
        for account in distinct(&self.owner.accounts()) {
            if let Some(taken) = ledger.get_mut(&account) {
                *taken = taken.saturating_sub(less);
                if *taken == 0 {
                    ledger.remove(&account);
                }
            }
        }
        drop(ledger);
        self.kib -= less;
    }
}

fn distinct(accounts: &[(Account, usize); 3]) -> impl Iterator<Item = Account> + use<> {
    let [(first, _), (second, _), (third, _)] = *accounts;
    let others = [second, third].into_iter().filter(move |other| *other != first);
    std::iter::once(first).chain(others)
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const MIB: usize = 1024 * KIB;

    fn source(tenant: u128, source: u128) -> Owner {
        let tenant = TenantId::from_uuid(Uuid::from_u128(tenant));
        Owner::Source(tenant, SourceId::from_uuid(Uuid::from_u128(source)))
    }

    /// As many shares as there is room for.
    fn fill(memory: &BodyMemory, owner: Owner, bytes: usize) -> Vec<Share> {
        std::iter::from_fn(|| memory.share(owner, bytes)).take(10_000).collect()
    }

    #[test]
    fn one_source_and_one_tenant_leave_room_for_others() {
        let memory = BodyMemory::default();
        let held = fill(&memory, source(1, 1), 4 * MIB);
        assert_eq!(held.len(), 8);
        assert!(memory.share(source(1, 1), 1).is_none());
        // The same tenant by many sources.
        let more: Vec<_> =
            (2..50).flat_map(|number| fill(&memory, source(1, number), 4 * MIB)).collect();
        assert_eq!(more.len(), 8);
        assert!(memory.share(source(2, 100), 4 * MIB).is_some());
    }

    #[test]
    fn everything_is_given_back_and_nothing_is_remembered() {
        let memory = BodyMemory::default();
        let mut share = memory.share(source(1, 1), 10).unwrap();
        assert!(share.grow(3 * MIB));
        assert!(!share.grow(33 * MIB));
        share.shrink(KIB);
        let strangers = fill(&memory, Owner::Stranger(7), MIB);
        assert_eq!(strangers.len(), 32);
        assert_eq!(memory.ledger()[&Account::All], 1);
        drop((share, strangers));
        assert!(memory.ledger().is_empty());
    }

    #[test]
    fn all_together_are_bounded_for_known_and_unknown() {
        let memory = BodyMemory::default();
        let held: Vec<_> =
            (0..20).flat_map(|number| fill(&memory, source(number, number), MIB)).collect();
        assert_eq!(held.len(), 256);
        assert!(memory.share(source(99, 99), 1).is_none());
        assert!(memory.share(Owner::Stranger(1), 1).is_none());
    }
}
