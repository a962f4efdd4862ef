//! Sources that are deleted and come back, changes of scheme beside changes of keys, and use of keys.

use crate::common::{at, by, on_both_backends};
use crate::fixture::{Fixture, refusal};
use crate::sources::{key, source};
use sea_orm::{ConnectionTrait as _, Statement};
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    ConfigSource as _, ConfigStore as _, Key, KeyId, KeyOwner, KeyRing, KeyUsageStore as _,
    KeyVerifications, Quotas, SchemeChoice, SchemeDocument, Source, Tenant, Tombstones as _,
};
use turnbuckle_store::config::ConfigDb;

on_both_backends!(
    a_source_comes_back_with_its_path_and_its_keys,
    a_source_comes_back_only_under_a_free_name_and_within_its_quota,
    a_purge_destroys_the_keys_and_the_path,
    a_disabled_source_says_why_until_it_is_enabled,
    a_scheme_and_a_key_that_does_not_fit_it_never_meet,
    counts_of_what_keys_verified_add_up,
);

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn made(fixture: &Fixture, owner: &Tenant, slug: &str) -> Source {
    let ring = KeyRing::with_first(key(), at(1));
    fixture.config.create_source(source(owner.id, slug), ring, &by()).await.unwrap()
}

async fn number(fixture: &Fixture, question: &str) -> i64 {
    let asked = Statement::from_string(fixture.db.get_database_backend(), question);
    let row = fixture.db.query_one_raw(asked).await.unwrap().unwrap();
    row.try_get_by_index::<i64>(0).unwrap()
}

async fn a_source_comes_back_with_its_path_and_its_keys(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let github = made(fixture, &acme, "github").await;
    let owner = KeyOwner::Source(github.id);
    let ring = config.key_ring(acme.id, owner).await.unwrap();
    let gone_at = config.delete_source(&github, at(9), &by()).await.unwrap();
    assert_eq!(refusal(config.key_ring(acme.id, owner).await).0, "NOT_FOUND");
    let gone = config.changes_since(github.meta.revision).await.unwrap();
    assert!(gone.sources[0].deleted && gone.source_key_rings.is_empty());

    let kept = config.deleted_source(acme.id, &github.slug).await.unwrap().unwrap();
    assert_eq!((kept.value.id, kept.deleted_at), (github.id, Some(at(9))));
    let listed = config.kept_sources(acme.id, None, 10).await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&kept));
    let back = config.undelete_source(&kept.value, at(10), &by()).await.unwrap();
    assert_eq!((back.path.clone(), back.meta.updated_at), (github.path.clone(), at(10)));
    assert_eq!(config.source(acme.id, &github.slug).await.unwrap(), Some(back.clone()));
    assert_eq!(config.key_ring(acme.id, owner).await.unwrap().keys, ring.keys);
    let delta = config.changes_since(gone_at).await.unwrap();
    assert!(!delta.sources[0].deleted);
    assert_eq!(delta.source_key_rings[0].1.keys, ring.keys);
    // It is brought back once.
    let again = config.undelete_source(&kept.value, at(11), &by()).await;
    assert_eq!(refusal(again).0, "NOT_FOUND");
}

async fn a_source_comes_back_only_under_a_free_name_and_within_its_quota(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let first = made(fixture, &acme, "github").await;
    config.delete_source(&first, at(9), &by()).await.unwrap();
    let first = config.kept_source(acme.id, first.id).await.unwrap().unwrap().value;
    let second = made(fixture, &acme, "github").await;
    let taken = config.undelete_source(&first, at(10), &by()).await;
    assert_eq!(refusal(taken), ("NAME_TAKEN", "tenants/acme/sources/github".to_owned()));
    config.delete_source(&second, at(11), &by()).await.unwrap();
    made(fixture, &acme, "other").await;
    let few =
        ConfigDb::new(fixture.db.clone()).with_quotas(Quotas { sources: 1, ..Quotas::DEFAULT });
    let refused = few.undelete_source(&first, at(12), &by()).await.unwrap_err();
    assert_eq!(refused.reason(), "QUOTA_EXCEEDED");
    let globex = fixture.tenant("globex").await;
    assert_eq!(config.kept_source(globex.id, first.id).await.unwrap(), None);
    let foreign = Source { tenant: globex.id, ..first.clone() };
    assert_eq!(refusal(config.undelete_source(&foreign, at(12), &by()).await).0, "NOT_FOUND");
    config.undelete_source(&first, at(13), &by()).await.unwrap();
}

async fn a_purge_destroys_the_keys_and_the_path(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let github = made(fixture, &acme, "github").await;
    made(fixture, &acme, "kept").await;
    config.delete_source(&github, at(9), &by()).await.unwrap();
    let sealed = "select count(*) from verification_key where secret is not null";
    assert_eq!(number(fixture, sealed).await, 2, "they stay sealed");
    assert_eq!(config.purge_one(at(9), &by()).await.unwrap(), None, "not due");
    let purged = config.purge_one(at(10), &by()).await.unwrap();
    assert_eq!(purged.as_deref(), Some("tenants/acme/sources/github"));
    assert_eq!(number(fixture, sealed).await, 1);
    let revoked = "select count(*) from verification_key where revoke_reason = 'source deleted'";
    assert_eq!(number(fixture, revoked).await, 1);
    for marker in ["marker-setting", "marker-url", github.path.token.as_str()] {
        let left = format!(
            "select count(*) from source where purged_at_us is not null and (scheme_settings like \
             '%{marker}%' or coalesce(public_url, '') like '%{marker}%' or ingest_token = '{marker}')"
        );
        assert_eq!(number(fixture, &left).await, 0, "{marker}");
    }
    assert_eq!(config.deleted_source(acme.id, &github.slug).await.unwrap(), None);
    assert_eq!(config.purge_one(at(99), &by()).await.unwrap(), None);
    // Who follows can still read what it is told.
    let delta = config.changes_since(github.meta.revision).await.unwrap();
    assert!(delta.unreadable.is_empty(), "{:?}", delta.unreadable);
}

async fn a_disabled_source_says_why_until_it_is_enabled(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let github = made(fixture, &acme, "github").await;
    for disabled in [Some("they flood us".to_owned()), Some(String::new()), None] {
        let now = config.source(acme.id, &github.slug).await.unwrap().unwrap();
        let expected = now.meta.revision;
        let changed = Source { disabled: disabled.clone(), ..now };
        let changed = config.update_source(changed, expected, None, &by()).await.unwrap();
        assert_eq!(changed.disabled, disabled);
        let delta = config.changes_since(expected).await.unwrap();
        assert_eq!(delta.sources[0].value.disabled, disabled);
        assert!(delta.source_key_rings.is_empty(), "its keys are as they were");
    }
}

/// A key that only the own scheme can use, by its fingerprint.
fn fitting(scheme: &str, place: usize) -> Key {
    Key { fingerprint: format!("{scheme}-{place}"), ..key() }
}

fn own() -> SchemeChoice {
    SchemeChoice::Custom(SchemeDocument::new("{}").unwrap())
}

/// One writer changes the scheme to and fro, as long as the keys it sees fit; another one stages keys
/// that fit the scheme it sees. Whatever way they interleave, no key is on a ring that it does not fit.
async fn a_scheme_and_a_key_that_does_not_fit_it_never_meet(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let github =
        config.create_source(source(acme.id, "github"), KeyRing::default(), &by()).await.unwrap();
    let owner = KeyOwner::Source(github.id);
    let name = |scheme: &SchemeChoice| match scheme {
        SchemeChoice::Preset(_) => "preset",
        SchemeChoice::Custom(_) => "own",
    };
    let (tenant, slug) = (acme.id, github.slug.clone());
    let fits = |ring: &KeyRing, scheme: &str| {
        ring.accepting(at(5)).iter().all(|key| key.fingerprint.starts_with(scheme))
    };
    let schemes = {
        let (config, slug) = (Arc::clone(config), slug.clone());
        tokio::spawn(async move {
            let mut changed = 0;
            for _ in 0..60 {
                let now = config.source(tenant, &slug).await.unwrap().unwrap();
                let ring = config.key_ring(tenant, owner).await.unwrap();
                let next = match now.scheme {
                    SchemeChoice::Preset(_) => own(),
                    SchemeChoice::Custom(_) => SchemeChoice::Preset("github".to_owned()),
                };
                tokio::task::yield_now().await;
                if fits(&ring, name(&next)) {
                    let expected = now.meta.revision;
                    let next = Source { scheme: next, ..now };
                    let seen = Some(ring.revision);
                    changed += usize::from(
                        config.update_source(next, expected, seen, &by()).await.is_ok(),
                    );
                }
            }
            changed
        })
    };
    let keys = {
        let (config, slug) = (Arc::clone(config), slug.clone());
        tokio::spawn(async move {
            let mut staged = 0;
            for place in 0..60 {
                // As a caller and the use case: the etag is known before the scheme is read.
                let seen = config.key_ring(tenant, owner).await.unwrap().revision;
                let now = config.source(tenant, &slug).await.unwrap().unwrap();
                let mut next = KeyRing { revision: seen, ..KeyRing::default() };
                if place % 3 != 0 {
                    next.stage(fitting(name(&now.scheme), place), at(5)).unwrap();
                }
                tokio::task::yield_now().await;
                staged += usize::from(
                    config.update_key_ring(tenant, owner, next, seen, &by()).await.is_ok(),
                );
            }
            staged
        })
    };
    let mut looks = 0;
    while !(schemes.is_finished() && keys.is_finished()) || looks == 0 {
        let delta = config.changes_since(turnbuckle_domain::Revision::ZERO).await.unwrap();
        let scheme = name(&delta.sources[0].value.scheme);
        assert!(fits(&delta.source_key_rings[0].1, scheme), "look {looks}");
        looks += 1;
    }
    assert!(schemes.await.unwrap() > 0 && keys.await.unwrap() > 0);
}

async fn counts_of_what_keys_verified_add_up(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let github = made(fixture, &acme, "github").await;
    let ring = config.key_ring(acme.id, KeyOwner::Source(github.id)).await.unwrap();
    let known = ring.keys[0].id;
    let gone = KeyId::from_uuid(uuid::Uuid::now_v7());
    let revision = fixture.revision().await;
    let one = |key, requests, seconds| KeyVerifications {
        tenant: acme.id,
        source: github.id,
        key,
        requests,
        last_used_at: at(seconds),
    };
    config.add_key_verifications(&[]).await.unwrap();
    config
        .add_key_verifications(&[one(known, 3, 50), one(gone, 1, 7), one(known, 4, 40)])
        .await
        .unwrap();
    let writers = (0..4).map(|writer| {
        let (config, batch) = (Arc::clone(config), vec![one(known, 10, 100 - writer)]);
        tokio::spawn(async move { config.add_key_verifications(&batch).await.unwrap() })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let usage = config.source_usage(acme.id, github.id).await.unwrap();
    let traffic = usage.of(known).unwrap();
    assert_eq!((traffic.signatures, traffic.last_used_at), (47, Some(at(100))));
    assert_eq!((usage.keys.len(), usage.answers.len()), (2, 0));
    // Keys that no ring remembers are forgotten, and nothing of this is configuration.
    config.forget_answers(at(200), DAY).await.unwrap();
    let usage = config.source_usage(acme.id, github.id).await.unwrap();
    assert_eq!((usage.keys.len(), usage.of(gone)), (1, None));
    let globex = fixture.tenant("globex").await;
    assert!(config.source_usage(globex.id, github.id).await.unwrap().keys.is_empty());
    assert_eq!(fixture.revision().await.0, revision.0 + 1);
}
