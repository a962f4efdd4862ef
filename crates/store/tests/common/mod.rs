//! What the contract suites of this crate share: a macro, and resources of a configuration.

use std::{collections::BTreeMap, time::Duration};
use turnbuckle_domain::{
    AuditId, ChangeContext, Endpoint, EndpointId, EndpointState, EndpointTarget, HttpTarget, Key,
    KeyAlgorithm, KeyId, KeyRing, Labels, Meta, ResourceId, Revision, Role, SealedSecret,
    SignatureProfile, Tenant, TenantId, Timestamp,
};
use uuid::Uuid;

/// Runs each function on both backends.
macro_rules! on_both_backends {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let fixture = crate::fixture::Fixture::sqlite().await;
                super::$name(&fixture).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let Some(fixture) = crate::fixture::Fixture::postgres().await else { return };
                super::$name(&fixture).await;
            })+
        }
    };
}
pub(crate) use on_both_backends;

pub(crate) const fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

pub(crate) fn id(text: &str) -> ResourceId {
    ResourceId::new(text).unwrap()
}

pub(crate) fn labels() -> Labels {
    Labels::new([("team".to_owned(), "payments/eu".to_owned())]).unwrap()
}

pub(crate) fn meta() -> Meta {
    Meta { created_at: at(1), updated_at: at(1), revision: Revision::ZERO }
}

/// Somebody who may do everything.
pub(crate) fn by() -> ChangeContext {
    ChangeContext {
        id: AuditId::from_uuid(Uuid::now_v7()),
        at: at(2),
        subject: "alice".to_owned(),
        role: Role::Admin,
        method: "turnbuckle.v1.Tests/Change".to_owned(),
        request_id: "r-1".to_owned(),
        reason: String::new(),
        validate_only: false,
        request: None,
    }
}

pub(crate) fn tenant(slug: &str) -> Tenant {
    Tenant {
        id: TenantId::from_uuid(Uuid::now_v7()),
        slug: id(slug),
        display_name: "Ácme, Inc.".to_owned(),
        labels: labels(),
        meta: meta(),
    }
}

pub(crate) fn endpoint(tenant: TenantId, slug: &str) -> Endpoint {
    Endpoint {
        id: EndpointId::from_uuid(Uuid::now_v7()),
        tenant,
        slug: id(slug),
        display_name: "Orders".to_owned(),
        target: EndpointTarget::Http(HttpTarget {
            url: "https://receiver.test/hooks?a=1".to_owned(),
            timeout: Duration::from_millis(1500),
            headers: BTreeMap::from([("x-team".to_owned(), "a \"b\" ü".to_owned())]),
            header_prefix: "webhook".to_owned(),
        }),
        signature_profile: SignatureProfile::TimestampedHex,
        retry_policy: None,
        max_in_flight: 64,
        state: EndpointState::Disabled { reason: "not yet".to_owned() },
        labels: labels(),
        meta: meta(),
    }
}

pub(crate) fn key() -> Key {
    let uuid = Uuid::now_v7();
    let sealed = SealedSecret::from_bytes(uuid.as_bytes().to_vec());
    let fingerprint = "0123456789abcdef".to_owned();
    Key::staged(KeyId::from_uuid(uuid), KeyAlgorithm::HmacSha256, fingerprint, None, sealed, at(1))
}

pub(crate) fn ring() -> KeyRing {
    KeyRing::with_first(key(), at(1))
}
