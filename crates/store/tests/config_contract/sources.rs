//! Sources and their key rings.

use crate::common::{at, by, id, labels, meta, on_both_backends};
use crate::fixture::{Fixture, refusal};
use sea_orm::{ConnectionTrait as _, Statement};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use turnbuckle_domain::{
    AuditTrail as _, ChangeContext, ConfigSource as _, ConfigStore as _, Dedup, IngestPath,
    IngestToken, JsonPath, Key, KeyAlgorithm, KeyId, KeyOwner, KeyRing, KeyState, Revision,
    SchemeChoice, SchemeDocument, SealedSecret, Source, SourceId, SourceSettings, Tenant, TenantId,
    Tombstones as _, ValueSource, source_limits,
};
use uuid::Uuid;

on_both_backends!(
    what_is_stored_of_a_source_comes_back,
    a_source_can_be_changed_and_its_name_is_free_when_it_is_deleted,
    a_path_leads_to_one_source_of_all_tenants,
    a_ring_verifies_and_keeps_its_states,
    of_two_concurrent_rotations_of_a_source_one_is_stale_and_no_key_is_lost,
    the_keys_of_a_deleted_source_verify_nothing_and_stay_sealed,
    a_tenant_with_sources_is_not_deleted,
    no_tenant_sees_the_sources_of_another,
    a_delta_holds_changed_sources_and_rings,
    impossible_sources_and_keys_cannot_be_stored,
    the_record_of_a_source_holds_no_secret,
    what_is_only_validated_leaves_no_trace,
    the_material_of_revoked_keys_is_destroyed_when_it_is_due,
);

const DAY: Duration = Duration::from_secs(24 * 3600);

fn token() -> IngestToken {
    let mut bytes = [0; IngestToken::LENGTH];
    // The random half of an id is enough to make two tokens differ.
    bytes[..16].copy_from_slice(Uuid::now_v7().as_bytes());
    IngestToken::from_random(bytes)
}

pub(crate) fn source(tenant: TenantId, slug: &str) -> Source {
    let mut path = IngestPath::new(token());
    path.rotate(token(), DAY, at(5));
    Source {
        id: SourceId::from_uuid(Uuid::now_v7()),
        tenant,
        slug: id(slug),
        display_name: "Git \"Hub\" ü".to_owned(),
        scheme: SchemeChoice::Preset("github".to_owned()),
        scheme_settings: BTreeMap::from([("webhook_id".to_owned(), "marker-setting".to_owned())]),
        path,
        public_url: Some("https://hooks.test/in?key=marker-url".to_owned()),
        settings: SourceSettings {
            dedup: Dedup {
                event_id: vec![ValueSource::header("x-github-delivery")],
                excluded_fields: vec![JsonPath::parse("a[\"b c\"]").unwrap()],
                ..Dedup::default()
            },
            ..SourceSettings::default()
        },
        disabled: None,
        labels: labels(),
        meta: meta(),
    }
}

pub(crate) fn key() -> Key {
    let uuid = Uuid::now_v7();
    let sealed = SealedSecret::from_bytes(uuid.as_bytes().to_vec());
    let fingerprint = "0123456789abcdef".to_owned();
    Key::staged(
        KeyId::from_uuid(uuid),
        KeyAlgorithm::SharedSecret,
        fingerprint,
        None,
        sealed,
        at(1),
    )
}

fn public_key() -> Key {
    let text = format!("-----BEGIN PUBLIC KEY-----\n{}\n", "A".repeat(700));
    Key { algorithm: KeyAlgorithm::PublicKey, public_key: Some(text), ..key() }
}

pub(crate) async fn made(fixture: &Fixture, owner: &Tenant, slug: &str) -> Source {
    let ring = KeyRing::with_first(key(), at(1));
    fixture.config.create_source(source(owner.id, slug), ring, &by()).await.unwrap()
}

async fn what_is_stored_of_a_source_comes_back(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let github = made(fixture, &acme, "github").await;
    assert_eq!(github.meta.revision, Revision(2));
    assert_eq!(config.source(acme.id, &github.slug).await.unwrap(), Some(github.clone()));
    let document = "ä".repeat(source_limits::SCHEME_BYTES / 2);
    let own = Source {
        scheme: SchemeChoice::Custom(SchemeDocument::new(document).unwrap()),
        path: IngestPath::new(token()),
        public_url: None,
        ..source(acme.id, "own")
    };
    let own = config.create_source(own, KeyRing::default(), &by()).await.unwrap();
    assert_eq!(config.source(acme.id, &own.slug).await.unwrap(), Some(own.clone()));
    let ring = config.key_ring(acme.id, own.id.into()).await.unwrap();
    assert_eq!(ring, KeyRing { revision: own.meta.revision, ..KeyRing::default() });
    let listed = config.sources(acme.id, Some("github"), 10).await.unwrap();
    assert_eq!(listed, [own]);
    let taken = config.create_source(source(acme.id, "github"), KeyRing::default(), &by()).await;
    assert_eq!(refusal(taken), ("ALREADY_EXISTS", "tenants/acme/sources/github".to_owned()));
}

async fn a_source_can_be_changed_and_its_name_is_free_when_it_is_deleted(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let mut github = made(fixture, &acme, "github").await;
    let before = github.meta.revision;
    github.settings.answers.accepted = 200;
    github.scheme = SchemeChoice::Custom(SchemeDocument::new("{}").unwrap());
    github.path.rotate(token(), Duration::ZERO, at(9));
    let unseen = config.update_source(github.clone(), before, None, &by()).await;
    let ring = "tenants/acme/sources/github/keyRing".to_owned();
    assert_eq!(refusal(unseen), ("ETAG_MISMATCH", ring));
    let github = config.update_source(github, before, Some(before), &by()).await.unwrap();
    assert_eq!(config.source(acme.id, &github.slug).await.unwrap(), Some(github.clone()));
    let stale = config.update_source(github.clone(), before, None, &by()).await;
    assert_eq!(refusal(stale), ("ETAG_MISMATCH", "tenants/acme/sources/github".to_owned()));
    let revision = config.delete_source(&github, at(9), &by()).await.unwrap();
    assert_eq!(config.source(acme.id, &github.slug).await.unwrap(), None);
    let late = config.update_source(github.clone(), revision, None, &by()).await;
    assert_eq!(refusal(late).0, "NOT_FOUND");
    made(fixture, &acme, "github").await;
}

async fn a_path_leads_to_one_source_of_all_tenants(fixture: &Fixture) {
    let config = &fixture.config;
    let (acme, other) = (fixture.tenant("acme").await, fixture.tenant("other").await);
    let github = made(fixture, &acme, "github").await;
    let mut twin = source(other.id, "github");
    twin.path = github.path.clone();
    let taken = config.create_source(twin.clone(), KeyRing::default(), &by()).await;
    assert!(taken.is_err());
    config.delete_source(&github, at(9), &by()).await.unwrap();
    config.create_source(twin, KeyRing::default(), &by()).await.unwrap();
}

async fn a_ring_verifies_and_keeps_its_states(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let github = made(fixture, &acme, "github").await;
    let owner = KeyOwner::Source(github.id);
    let mut ring = config.key_ring(acme.id, owner).await.unwrap();
    let first = ring.keys[0].id;
    ring.rotate(public_key(), DAY, false, at(10)).unwrap();
    ring.stage(key(), at(11)).unwrap();
    ring.revoke_incoming(first, "leaked", at(12)).unwrap();
    let expected = ring.revision;
    let stored =
        config.update_key_ring(acme.id, owner, ring.clone(), expected, &by()).await.unwrap();
    assert_eq!(stored.keys, ring.keys);
    assert_eq!(stored.revision, fixture.revision().await);
    assert_eq!(config.key_ring(acme.id, owner).await.unwrap(), stored);
    let states: Vec<KeyState> = stored.keys.iter().map(|key| key.state).collect();
    assert_eq!(states, [KeyState::Staged, KeyState::Active, KeyState::Revoked]);
    assert!(stored.keys[2].secret.is_some(), "its use could not be noticed");
    // The source itself did not change.
    assert_eq!(config.source(acme.id, &github.slug).await.unwrap(), Some(github));
}

async fn of_two_concurrent_rotations_of_a_source_one_is_stale_and_no_key_is_lost(
    fixture: &Fixture,
) {
    let acme = fixture.tenant("acme").await;
    let owner = KeyOwner::Source(made(fixture, &acme, "github").await.id);
    let before = fixture.config.key_ring(acme.id, owner).await.unwrap();
    let rotations: Vec<_> = (0..2)
        .map(|_| {
            let (config, mut ring) = (Arc::clone(&fixture.config), before.clone());
            let expected = ring.revision;
            ring.rotate(key(), DAY, false, at(10)).unwrap();
            tokio::spawn(async move {
                config.update_key_ring(acme.id, owner, ring, expected, &by()).await
            })
        })
        .collect();
    let (mut won, mut stale): (Vec<KeyRing>, Vec<_>) = (Vec::new(), Vec::new());
    for rotation in rotations {
        match rotation.await.unwrap() {
            Ok(ring) => won.push(ring),
            lost => stale.push(refusal(lost)),
        }
    }
    assert_eq!(stale, [("ETAG_MISMATCH", "tenants/acme/sources/github/keyRing".to_owned())]);
    let after = fixture.config.key_ring(acme.id, owner).await.unwrap();
    assert_eq!(won, std::slice::from_ref(&after));
    assert!(after.keys.iter().any(|key| key.id == before.keys[0].id && key.secret.is_some()));
}

async fn the_keys_of_a_deleted_source_verify_nothing_and_stay_sealed(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let github = made(fixture, &acme, "github").await;
    let owner = KeyOwner::Source(github.id);
    let mut ring = config.key_ring(acme.id, owner).await.unwrap();
    let first = ring.keys[0].id;
    ring.rotate(key(), DAY, false, at(10)).unwrap();
    ring.revoke_incoming(first, "leaked", at(12)).unwrap();
    let expected = ring.revision;
    let ring = config.update_key_ring(acme.id, owner, ring, expected, &by()).await.unwrap();
    let kept = made(fixture, &acme, "kept").await;
    config.delete_source(&github, at(20), &by()).await.unwrap();

    let gone = config.key_ring(acme.id, owner).await;
    assert_eq!(refusal(gone), ("NOT_FOUND", "tenants/acme/sources/github".to_owned()));
    let late = config.update_key_ring(acme.id, owner, ring.clone(), ring.revision, &by()).await;
    assert_eq!(refusal(late).0, "NOT_FOUND");
    for (question, answer) in [
        ("select count(*) from verification_key where secret is not null", 3),
        ("select count(*) from verification_key where revoke_reason = 'leaked'", 1),
        ("select count(*) from verification_key where revoke_reason = 'source deleted'", 0),
    ] {
        let asked = Statement::from_string(fixture.db.get_database_backend(), question);
        let row = fixture.db.query_one_raw(asked).await.unwrap().unwrap();
        assert_eq!(row.try_get_by_index::<i64>(0).unwrap(), answer, "{question}");
    }
    let delta = config.changes_since(Revision::ZERO).await.unwrap();
    assert_eq!(delta.source_key_rings.len(), 1);
    assert_eq!(delta.source_key_rings[0].0, kept.id);
}

async fn a_tenant_with_sources_is_not_deleted(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let github = made(fixture, &acme, "github").await;
    let refused = config.delete_tenant(&acme, at(9), &by()).await.unwrap_err();
    assert!(refused.to_string().contains("in use by tenants/acme/sources/github"), "{refused}");
    config.delete_source(&github, at(9), &by()).await.unwrap();
    config.delete_tenant(&acme, at(9), &by()).await.unwrap();
    let late = config.create_source(source(acme.id, "late"), KeyRing::default(), &by()).await;
    assert_eq!(refusal(late), ("NOT_FOUND", "tenants/acme".to_owned()));
}

async fn no_tenant_sees_the_sources_of_another(fixture: &Fixture) {
    let config = &fixture.config;
    let (acme, other) = (fixture.tenant("acme").await, fixture.tenant("other").await);
    let github = made(fixture, &acme, "github").await;
    assert_eq!(config.source(other.id, &github.slug).await.unwrap(), None);
    assert!(config.sources(other.id, None, 10).await.unwrap().is_empty());
    let ring = config.key_ring(acme.id, github.id.into()).await.unwrap();
    let foreign = config.key_ring(other.id, github.id.into()).await;
    assert_eq!(refusal(foreign).0, "NOT_FOUND");
    let expected = ring.revision;
    let foreign = config.update_key_ring(other.id, github.id.into(), ring, expected, &by()).await;
    assert_eq!(refusal(foreign).0, "NOT_FOUND");
    let moved = Source { tenant: other.id, ..github };
    let expected = moved.meta.revision;
    assert_eq!(refusal(config.update_source(moved, expected, None, &by()).await).0, "NOT_FOUND");
}

async fn a_delta_holds_changed_sources_and_rings(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let github = made(fixture, &acme, "github").await;
    let orders = fixture.endpoint(&acme, "orders").await;
    let known = fixture.revision().await;
    let owner = KeyOwner::Source(github.id);
    let mut ring = config.key_ring(acme.id, owner).await.unwrap();
    ring.stage(key(), at(9)).unwrap();
    let expected = ring.revision;
    let ring = config.update_key_ring(acme.id, owner, ring, expected, &by()).await.unwrap();
    let delta = config.changes_since(known).await.unwrap();
    assert!(delta.sources.is_empty() && delta.key_rings.is_empty());
    assert_eq!(delta.source_key_rings, [(github.id, ring)]);

    let known = delta.revision;
    config.delete_source(&github, at(9), &by()).await.unwrap();
    let delta = config.changes_since(known).await.unwrap();
    assert_eq!(delta.sources.len(), 1);
    assert!(delta.sources[0].deleted && delta.sources[0].value.id == github.id);
    assert!(delta.source_key_rings.is_empty());
    let all = config.changes_since(Revision::ZERO).await.unwrap();
    assert!(all.sources.is_empty() && all.source_key_rings.is_empty());
    assert_eq!(all.key_rings[0].0, orders.id);
}

async fn impossible_sources_and_keys_cannot_be_stored(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    made(fixture, &acme, "github").await;
    for impossible in [
        "update source set preset = null",
        "update source set scheme = '{}'",
        "update source set ingest_token = 'short'",
        "update source set previous_token = null",
        "update source set public_url = ''",
        "update source set slug = ''",
        "update source set revision = 0",
        "update verification_key set secret = null",
        "update verification_key set algorithm = 'hmac-sha256'",
        "update verification_key set algorithm = 'public-key'",
        "update verification_key set state = 'retiring'",
        "update verification_key set revoke_reason = 'x'",
        "update verification_key set position = -1",
    ] {
        let refused = fixture.db.execute_unprepared(impossible).await;
        assert!(refused.is_err(), "{impossible}");
    }
    let mut two = KeyRing::with_first(key(), at(1));
    two.keys.push(two.keys[0].clone());
    two.keys[1].id = key().id;
    let refused = fixture.config.create_source(source(acme.id, "two"), two, &by()).await;
    assert_eq!(refusal(refused).0, "INTERNAL");
    assert_eq!(fixture.config.source(acme.id, &id("two")).await.unwrap(), None);
}

async fn the_record_of_a_source_holds_no_secret(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let mut github = made(fixture, &acme, "github").await;
    let before = github.meta.revision;
    github.path.rotate(token(), DAY, at(9));
    github.settings.answers.accepted = 204;
    let github = config.update_source(github, before, None, &by()).await.unwrap();
    config.delete_source(&github, at(9), &by()).await.unwrap();
    let entries = config.audit_entries(acme.id, &Default::default(), None, 10).await.unwrap();
    assert_eq!(entries.len(), 4);
    let own = entries.iter().filter(|entry| entry.resource == "tenants/acme/sources/github");
    assert_eq!(own.count(), 3);
    let text = format!("{entries:?}");
    for hidden in ["marker-", github.path.token.as_str()] {
        assert!(!text.contains(hidden), "{text}");
    }
    let changed: Vec<&str> =
        entries[1].changes.iter().map(|change| change.field.as_str()).collect();
    assert_eq!(
        changed,
        ["ingest_path", "previous_ingest_path_expire_time", "settings.answers.accepted"]
    );
    // Its keys go with it, by fingerprint.
    assert!(entries[0].changes.iter().any(|change| change.field.ends_with(".fingerprint")));
}

async fn what_is_only_validated_leaves_no_trace(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let known = fixture.revision().await;
    let dry = ChangeContext { validate_only: true, ..by() };
    config.create_source(source(acme.id, "github"), KeyRing::default(), &dry).await.unwrap();
    assert_eq!(config.source(acme.id, &id("github")).await.unwrap(), None);
    assert_eq!(fixture.revision().await, known);
}

async fn the_material_of_revoked_keys_is_destroyed_when_it_is_due(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let mut rings = Vec::new();
    for (slug, revoked_at) in [("late", 30), ("early", 20), ("never", 0)] {
        let source = made(fixture, &acme, slug).await;
        let mut ring = config.key_ring(acme.id, source.id.into()).await.unwrap();
        let (first, seen) = (ring.keys[0].id, ring.revision);
        ring.stage(key(), at(10)).unwrap();
        if revoked_at > 0 {
            assert!(ring.revoke_incoming(first, "leaked", at(revoked_at)).unwrap());
        }
        let owner = source.id.into();
        rings.push((
            source,
            config.update_key_ring(acme.id, owner, ring, seen, &by()).await.unwrap(),
        ));
    }
    let name = |slug: &str| Some(format!("tenants/acme/sources/{slug}/keyRing"));
    assert_eq!(config.destroy_revoked(at(20), &by()).await.unwrap(), None);
    // One ring at a time, the key that was revoked first.
    assert_eq!(config.destroy_revoked(at(31), &by()).await.unwrap(), name("early"));
    assert_eq!(config.destroy_revoked(at(31), &by()).await.unwrap(), name("late"));
    assert_eq!(config.destroy_revoked(at(31), &by()).await.unwrap(), None);
    for (source, before) in rings {
        let after = config.key_ring(acme.id, source.id.into()).await.unwrap();
        let kept: Vec<bool> = after.keys.iter().map(|key| key.secret.is_some()).collect();
        let untouched = source.slug.as_str() == "never";
        assert_eq!(kept, [true, untouched], "{}", source.slug);
        assert_eq!(after.revision == before.revision, untouched);
    }
}
