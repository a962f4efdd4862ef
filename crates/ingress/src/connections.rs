//! Who is connected: bounded for all together and for each address, and never at the price of somebody
//! who has something to say.
//!
//! A connection that says nothing costs its owner nothing. So when there is no more room, the one that
//! has been silent for longest goes, of the address that has most of them, and the new one comes in.

use crate::limits::block_of;
use metrics::gauge;
use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio_util::sync::CancellationToken;

/// Connections at once: each may hold a head in memory.
const CONNECTIONS_MAX: usize = 8_192;
/// Connections of one address, unless it is a trusted proxy: no sixteen hosts can close the door.
const ADDRESS_CONNECTIONS_MAX: usize = CONNECTIONS_MAX / 16;

/// Connections by address.
#[derive(Default)]
pub(crate) struct Connections(Mutex<Open>);

#[derive(Default)]
struct Open {
    all: usize,
    by_address: HashMap<IpAddr, Own>,
    next: u64,
}

#[derive(Default)]
struct Own {
    open: usize,
    /// Those that have no request under way, the longest silent first.
    silent: BTreeMap<u64, CancellationToken>,
}

/// One connection's place. Dropping it makes room.
pub(crate) struct Place {
    connections: Arc<Connections>,
    address: IpAddr,
    /// Its number while it is silent.
    silent: Mutex<Option<u64>>,
    closing: CancellationToken,
}

impl Connections {
    /// A place, where there is one or can be made one.
    pub(crate) fn take(self: &Arc<Self>, peer: IpAddr, is_proxy: bool) -> Option<Arc<Place>> {
        let address = block_of(peer);
        let closing = CancellationToken::new();
        let mut open = self.open();
        let own = open.by_address.get(&address).map_or(0, |own| own.open);
        if !is_proxy && own >= ADDRESS_CONNECTIONS_MAX && !open.close_silent(address) {
            return None;
        }
        if open.all >= CONNECTIONS_MAX {
            let most = open.by_address.iter().max_by_key(|(_, own)| own.silent.len());
            let most = most.map(|(address, _)| *address)?;
            if !open.close_silent(most) {
                return None;
            }
        }
        let number = open.number();
        let own = open.by_address.entry(address).or_default();
        own.open += 1;
        own.silent.insert(number, closing.clone());
        open.all += 1;
        gauge!("turnbuckle_ingress_connections").set(open.all as f64);
        drop(open);
        let (connections, silent) = (Arc::clone(self), Mutex::new(Some(number)));
        Some(Arc::new(Place { connections, address, silent, closing }))
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Tells the longest silent connection of an address to go; false when none is silent. It counts
    /// until it has gone, which it does at once.
    fn close_silent(&mut self, address: IpAddr) -> bool {
        let own = self.by_address.get_mut(&address);
        let Some((_, closing)) = own.and_then(|own| own.silent.pop_first()) else { return false };
        closing.cancel();
        true
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl Place {
    /// A request has come.
    pub(crate) fn speaks(&self) {
        let number = self.own_number().take();
        let mut open = self.connections.open();
        if let (Some(number), Some(own)) = (number, open.by_address.get_mut(&self.address)) {
            own.silent.remove(&number);
        }
    }

    /// It is answered.
    pub(crate) fn falls_silent(&self) {
        let mut open = self.connections.open();
        let number = open.number();
        if let Some(own) = open.by_address.get_mut(&self.address) {
            own.silent.insert(number, self.closing.clone());
        }
        drop(open);
        *self.own_number() = Some(number);
    }

    /// Waits until somebody else needs the place.
    pub(crate) async fn is_needed(&self) {
        self.closing.cancelled().await;
    }

    fn own_number(&self) -> MutexGuard<'_, Option<u64>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.speaks();
        let mut open = self.connections.open();
        open.all -= 1;
        if let Some(own) = open.by_address.get_mut(&self.address) {
            own.open -= 1;
            if own.open == 0 {
                open.by_address.remove(&self.address);
            }
        }
        gauge!("turnbuckle_ingress_connections").set(open.all as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: usize) -> IpAddr {
        IpAddr::V4(std::net::Ipv4Addr::from_bits(u32::try_from(number).unwrap()))
    }

    /// As the listener does: a connection that is told to go, goes.
    fn go(places: &mut Vec<Arc<Place>>) -> usize {
        let before = places.len();
        places.retain(|place| !place.closing.is_cancelled());
        before - places.len()
    }

    #[test]
    fn silent_connections_never_close_the_door() {
        let connections = Arc::new(Connections::default());
        let mut held = Vec::new();
        for host in 0..18 {
            for _ in 0..ADDRESS_CONNECTIONS_MAX + 8 {
                held.push(connections.take(address(host), false).unwrap());
                go(&mut held);
            }
        }
        assert!(held.len() <= CONNECTIONS_MAX);
        // Somebody who has just come in stays, whatever comes after.
        let mut honest = vec![connections.take(address(99_999), false).unwrap()];
        for _ in 0..ADDRESS_CONNECTIONS_MAX * 2 {
            held.push(connections.take(address(7), false).unwrap());
            go(&mut held);
        }
        assert_eq!(go(&mut honest), 0);
    }

    #[test]
    fn one_address_has_its_share_and_a_trusted_proxy_more() {
        let connections = Arc::new(Connections::default());
        let speaking = |is_proxy| {
            let place = connections.take(address(1), is_proxy)?;
            place.speaks();
            Some(place)
        };
        let mut held: Vec<_> = std::iter::from_fn(|| speaking(false)).collect();
        assert_eq!(held.len(), ADDRESS_CONNECTIONS_MAX);
        held.extend(std::iter::from_fn(|| speaking(true)));
        assert_eq!(held.len(), CONNECTIONS_MAX);
        assert!(connections.take(address(2), false).is_none());
        // One that is answered makes room for another.
        held[0].falls_silent();
        assert!(connections.take(address(2), false).is_some());
        assert_eq!(go(&mut held), 1);
        drop(held);
        assert!(connections.open().by_address.is_empty() && connections.open().all == 0);
    }
}
