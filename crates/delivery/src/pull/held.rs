//! What a stream holds: leased deliveries until something becomes of them.

use std::collections::{BTreeSet, HashMap};
use turnbuckle_domain::{DeliveryId, LeaseToken, LiveDelivery, Timestamp};

/// A delivery that a consumer has.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) delivery: LiveDelivery,
    pub(crate) token: LeaseToken,
    pub(crate) leased_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    /// Of its payload.
    pub(crate) bytes: usize,
    /// Whether it has left for the consumer.
    pub(crate) is_sent: bool,
}

impl Held {
    /// The name of the lease on the wire.
    pub(crate) fn lease_token(&self) -> String {
        format!("{}.{}", self.delivery.id, self.token.0)
    }
}

/// Reads the name of a lease. None for what is none of ours.
pub(crate) fn parse_lease_token(text: &str) -> Option<(DeliveryId, LeaseToken)> {
    let (id, token) = text.split_once('.')?;
    Some((id.parse().ok()?, LeaseToken(token.parse().ok()?)))
}

/// The deliveries that one stream holds.
#[derive(Default)]
pub(crate) struct HeldSet {
    by_id: HashMap<DeliveryId, Held>,
    by_expiry: BTreeSet<(Timestamp, DeliveryId)>,
    bytes: usize,
}

impl HeldSet {
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn insert(&mut self, held: Held) {
        self.bytes += held.bytes;
        self.by_expiry.insert((held.expires_at, held.delivery.id));
        if let Some(before) = self.by_id.insert(held.delivery.id, held) {
            // An earlier lease of the same delivery, which must have ended.
            self.by_expiry.remove(&(before.expires_at, before.delivery.id));
            self.bytes -= before.bytes;
        }
    }

    /// The delivery under this very lease.
    pub(crate) fn get(&self, id: DeliveryId, token: LeaseToken) -> Option<&Held> {
        self.by_id.get(&id).filter(|held| held.token == token)
    }

    pub(crate) fn take(&mut self, id: DeliveryId, token: LeaseToken) -> Option<Held> {
        self.get(id, token)?;
        let held = self.by_id.remove(&id)?;
        self.by_expiry.remove(&(held.expires_at, id));
        self.bytes -= held.bytes;
        Some(held)
    }

    pub(crate) fn mark_sent(&mut self, id: DeliveryId) {
        if let Some(held) = self.by_id.get_mut(&id) {
            held.is_sent = true;
        }
    }

    pub(crate) fn extend(&mut self, id: DeliveryId, token: LeaseToken, until: Timestamp) {
        if let Some(held) = self.by_id.get_mut(&id).filter(|held| held.token == token) {
            self.by_expiry.remove(&(held.expires_at, id));
            held.expires_at = until;
            self.by_expiry.insert((until, id));
        }
    }

    /// When the first lease ends.
    pub(crate) fn next_expiry(&self) -> Option<Timestamp> {
        self.by_expiry.first().map(|(at, _)| *at)
    }

    /// Forgets what has expired by now; answers how many payload bytes that were.
    pub(crate) fn drop_expired(&mut self, now: Timestamp) -> usize {
        let before = self.bytes;
        while let Some((at, id)) = self.by_expiry.first().copied()
            && at <= now
        {
            self.by_expiry.pop_first();
            if let Some(held) = self.by_id.remove(&id) {
                self.bytes -= held.bytes;
            }
        }
        before - self.bytes
    }

    pub(crate) fn take_all(&mut self) -> Vec<Held> {
        self.by_expiry.clear();
        self.bytes = 0;
        self.by_id.drain().map(|(_, held)| held).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use turnbuckle_domain::{EndpointId, PayloadFormat, Shard, TenantId};
    use uuid::Uuid;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::EPOCH + Duration::from_secs(seconds)
    }

    fn held(number: u128, token: i64, expires_at: Timestamp) -> Held {
        let endpoint = EndpointId::from_uuid(Uuid::from_u128(9));
        let delivery = LiveDelivery {
            id: DeliveryId::from_uuid(Uuid::from_u128(number)),
            tenant: TenantId::from_uuid(Uuid::from_u128(1)),
            endpoint,
            shard: Shard::of(endpoint),
            format: PayloadFormat::Envelope,
            due_at: expires_at,
            attempts: 0,
            round_start: 0,
            round_at: at(0),
        };
        let token = LeaseToken(token);
        Held { delivery, token, leased_at: at(0), expires_at, bytes: 10, is_sent: true }
    }

    #[test]
    fn a_lease_is_known_by_its_delivery_and_its_token() {
        let mut set = HeldSet::default();
        let one = held(1, 7, at(30));
        let (id, text) = (one.delivery.id, one.lease_token());
        assert_eq!(parse_lease_token(&text), Some((id, LeaseToken(7))));
        for bad in ["", "x", "1.2", &text.replace(".7", ".x"), &text.replace('.', "-")] {
            assert_eq!(parse_lease_token(bad), None, "{bad}");
        }
        set.insert(one);
        assert!(set.take(id, LeaseToken(6)).is_none());
        assert!(set.take(id, LeaseToken(7)).is_some());
        assert!(set.take(id, LeaseToken(7)).is_none());
        assert_eq!((set.len(), set.bytes(), set.next_expiry()), (0, 0, None));
    }

    #[test]
    fn what_expired_is_forgotten_and_what_was_extended_is_not() {
        let mut set = HeldSet::default();
        for number in 1..=3 {
            set.insert(held(number, 1, at(10)));
        }
        let second = DeliveryId::from_uuid(Uuid::from_u128(2));
        set.extend(second, LeaseToken(1), at(20));
        set.extend(second, LeaseToken(5), at(90));
        assert_eq!(set.drop_expired(at(10)), 20);
        assert_eq!((set.len(), set.bytes(), set.next_expiry()), (1, 10, Some(at(20))));
        assert_eq!(set.take_all().len(), 1);
        assert_eq!((set.bytes(), set.next_expiry()), (0, None));
    }
}
