//! Material of revoked keys of sources.

use crate::api::{ACME, Api};
use std::time::Duration;
use turnbuckle_client::proto as v1;
use turnbuckle_control_plane::Swept;
use turnbuckle_domain::{KeyRing, KeyState, ResourceId};

const DAY: Duration = Duration::from_secs(24 * 3600);
const SECRET: &str = "first-secret-of-16";

async fn ring(api: &Api) -> KeyRing {
    let slug = |text: &str| ResourceId::new(text).unwrap();
    let tenant = api.store.tenant(&slug("acme")).await.unwrap().unwrap();
    let source = api.store.source(tenant.id, &slug("git")).await.unwrap().unwrap();
    api.store.key_ring(tenant.id, source.id.into()).await.unwrap()
}

async fn revoke_the_only_key(api: &Api) {
    let verification = Some(v1::source::Verification::Preset("github".to_owned()));
    let request = v1::CreateSourceRequest {
        parent: ACME.to_owned(),
        source_id: "git".to_owned(),
        source: Some(v1::Source { verification, ..Default::default() }),
        secret: SECRET.to_owned(),
        ..Default::default()
    };
    Box::pin(api.client.create_source(request)).await.unwrap();
    let mut keys = api.client.keys();
    let name = format!("{ACME}/sources/git/keyRing");
    let ring = keys.get_key_ring(v1::GetKeyRingRequest { name }).await.unwrap().into_inner();
    let request = v1::RevokeKeyRequest {
        name: ring.keys[0].name.clone(),
        etag: ring.etag,
        reason: "leaked".to_owned(),
        ..Default::default()
    };
    keys.revoke_key(request).await.unwrap();
}

#[tokio::test]
async fn a_revoked_key_loses_its_material_after_thirty_days_though_nobody_touches_the_ring() {
    let api = Api::start().await;
    revoke_the_only_key(&api).await;
    let before = ring(&api).await;
    assert_eq!(before.keys[0].state, KeyState::Revoked);
    assert!(before.keys[0].secret.is_some(), "kept to tell who uses it");
    api.clock.advance(30 * DAY);
    assert_eq!(api.sweeper.run().await.unwrap().destroyed, 0);
    assert_eq!(ring(&api).await, before);

    api.clock.advance(Duration::from_micros(1));
    assert_eq!(api.sweeper.run().await.unwrap().destroyed, 1);
    let after = ring(&api).await;
    assert!(after.revision > before.revision, "nodes read it anew");
    let mut expected = before.clone();
    (expected.keys[0].secret, expected.revision) = (None, after.revision);
    assert_eq!(after, expected, "nothing else is changed");
    assert_eq!(api.sweeper.run().await.unwrap(), Swept::default());

    let request = v1::ListAuditEventsRequest { parent: ACME.to_owned(), ..Default::default() };
    let entries = api.client.audit().list_audit_events(request).await.unwrap().into_inner();
    let text = format!("{entries:?}");
    assert!(text.contains("revoked 30 days ago"), "{text}");
    assert!(text.contains(&before.keys[0].fingerprint) && !text.contains(SECRET), "{text}");
}

#[tokio::test]
async fn the_material_of_a_deleted_source_goes_too() {
    let api = Api::start().await;
    revoke_the_only_key(&api).await;
    api.clock.advance(20 * DAY);
    let name = format!("{ACME}/sources/git");
    let request = v1::DeleteSourceRequest { name: name.clone(), ..Default::default() };
    api.client.sources().delete_source(request).await.unwrap();
    api.clock.advance(10 * DAY + Duration::from_micros(1));
    assert_eq!(api.sweeper.run().await.unwrap().destroyed, 1);
    let request = v1::UndeleteSourceRequest { name, ..Default::default() };
    api.client.sources().undelete_source(request).await.unwrap();
    let back = ring(&api).await;
    assert_eq!((back.keys[0].state, back.keys[0].secret.is_some()), (KeyState::Revoked, false));
}
