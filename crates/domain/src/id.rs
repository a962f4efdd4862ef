//! Typed ids: a UUIDv7 inside, a prefix outside.

use crate::{Clock, Random, Timestamp};
use data_encoding::{Encoding, Specification};
use std::{
    fmt,
    str::FromStr,
    sync::{Arc, LazyLock},
};
use uuid::Uuid;

/// Crockford's alphabet, lower case: sorts like the bytes and has no look-alikes.
static BASE32: LazyLock<Encoding> = LazyLock::new(|| {
    let mut specification = Specification::new();
    specification.symbols.push_str("0123456789abcdefghjkmnpqrstvwxyz");
    match specification.encoding() {
        Ok(encoding) => encoding,
        // Unreachable: the alphabet is a constant of the right length without repeats.
        Err(_) => data_encoding::BASE32HEX_NOPAD,
    }
});

/// The text is not an id of the expected kind.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not an id of the form {prefix}_ and 26 characters")]
pub struct InvalidId {
    prefix: &'static str,
}

macro_rules! typed_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// What the text form starts with.
            pub const PREFIX: &'static str = $prefix;

            /// Wraps a UUID that is known to name this kind of thing.
            #[must_use]
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The UUID inside.
            #[must_use]
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}_{}", $prefix, BASE32.encode(self.0.as_bytes()))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let invalid = InvalidId { prefix: $prefix };
                let rest = text
                    .strip_prefix($prefix)
                    .and_then(|rest| rest.strip_prefix('_'))
                    .ok_or(InvalidId { prefix: $prefix })?;
                let bytes = BASE32.decode(rest.as_bytes()).map_err(|_| invalid)?;
                Uuid::from_slice(&bytes).map(Self).map_err(|_| InvalidId { prefix: $prefix })
            }
        }
    };
}

typed_id!(/// Names a tenant.
    TenantId, "ten");
typed_id!(/// Names an event type of a tenant.
    EventTypeId, "ety");
typed_id!(/// Names a version of an event type.
    EventTypeVersionId, "etv");
typed_id!(/// Names an endpoint.
    EndpointId, "ep");
typed_id!(/// Names a subscription.
    SubscriptionId, "sub");
typed_id!(/// Names a retry policy.
    RetryPolicyId, "rp");
typed_id!(/// Names a source.
    SourceId, "src");
typed_id!(/// Names a key of a ring.
    KeyId, "key");
typed_id!(/// Names an entry of the audit record.
    AuditId, "aud");
typed_id!(/// Names an API token.
    ApiTokenId, "tok");
typed_id!(/// Names an accepted event. Not the sender's `event_id`.
    EventUid, "evt");
typed_id!(/// Names the record of a request that an ingress saw.
    ReceiptId, "rcp");
typed_id!(/// Names a replay.
    ReplayId, "rpl");
typed_id!(/// Names a delivery; also sent to the receiver, constant over its attempts.
    DeliveryId, "dlv");
impl DeliveryId {
    /// When its event was accepted, to the millisecond.
    #[must_use]
    pub fn time(self) -> Timestamp {
        let millis = self.0.as_u128() >> 80;
        Timestamp::from_micros(i64::try_from(millis).unwrap_or(i64::MAX / 1000) * 1000)
    }

    /// First and last possible id of an event's deliveries.
    #[must_use]
    pub const fn range_of(event: EventUid) -> (Self, Self) {
        let time = event.0.as_u128() >> 64 << 64;
        (Self(Uuid::from_u128(time)), Self(Uuid::from_u128(time | 0xffff_ffff_ffff_ffff)))
    }
}

typed_id!(/// Names one run of a worker: a restarted process is another worker.
    WorkerId, "wrk");

/// Makes UUIDv7 ids from the clock and the randomness port, ordered by time to the microsecond.
#[derive(Clone)]
pub struct IdGenerator {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl IdGenerator {
    /// Takes time and randomness from these ports.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { clock, random }
    }

    /// A fresh UUIDv7. The 12 bits after the milliseconds hold the fraction of a
    /// millisecond, so that ids of one process sort as they were made.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        let micros = u64::try_from(self.clock.now().micros()).unwrap_or(0);
        let mut tail = [0; 10];
        self.random.fill(&mut tail);
        let fraction = (micros % 1000) * 4096 / 1000;
        tail[0] = u8::try_from(fraction >> 8).unwrap_or(0);
        tail[1] = u8::try_from(fraction & 0xff).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(micros / 1000, &tail).into_uuid()
    }

    /// A delivery id that carries its event's time, whenever it is made: the deliveries of an event
    /// are found in a narrow range of ids, without an index of their own.
    #[must_use]
    pub fn delivery_of(&self, event: EventUid) -> DeliveryId {
        let mut bytes = self.uuid().into_bytes();
        bytes[..8].copy_from_slice(&event.0.as_bytes()[..8]);
        DeliveryId(Uuid::from_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeededRandom;
    use std::sync::atomic::{AtomicI64, Ordering};

    struct Ticking(AtomicI64);

    impl Clock for Ticking {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.0.fetch_add(1, Ordering::Relaxed))
        }
    }

    #[test]
    fn text_form_round_trips_and_rejects_other_kinds() {
        let id = EndpointId::from_uuid(Uuid::from_u128(0x0192_3456_789a_7bcd_8ef0_1234_5678_9abc));
        let text = id.to_string();
        assert_eq!(text.len(), "ep_".len() + 26);
        assert_eq!(text.parse::<EndpointId>(), Ok(id));
        assert!(text.parse::<TenantId>().is_err());
        assert!("ep_".parse::<EndpointId>().is_err());
        assert!("ep_zzzzzzzzzzzzzzzzzzzzzzzzzz".parse::<EndpointId>().is_err());
    }

    #[test]
    fn ids_sort_in_the_order_they_were_made() {
        let clock = Arc::new(Ticking(AtomicI64::new(1_800_000_000_000_000)));
        let ids = IdGenerator::new(clock, Arc::new(SeededRandom::from_number(7)));
        let made: Vec<Uuid> = (0..5000).map(|_| ids.uuid()).collect();
        assert!(made.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(made.iter().all(|id| id.get_version_num() == 7));
    }
}
