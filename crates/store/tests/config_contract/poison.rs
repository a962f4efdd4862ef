//! Rows that nobody can read (I13): they are named, and hold nothing else back.

use crate::api_tokens::token;
use crate::common::{at, by, endpoint, on_both_backends, ring};
use crate::fixture::{Fixture, event_type, retry_policy, seen, subscription, version};
use crate::sources::{key as source_key, source};
use sea_orm::{ConnectionTrait as _, DbBackend, TransactionTrait as _};
use turnbuckle_domain::{
    ApiTokenStore as _, ConfigDelta, ConfigSource as _, ConfigStore as _, KeyRing, ResourceKind,
    Revision, Tenant,
};

on_both_backends!(
    a_row_of_any_kind_that_cannot_be_read_is_named_and_holds_nothing_back,
    what_is_deleted_goes_though_nobody_can_read_it,
    a_row_that_is_written_anew_is_readable_again,
);

/// One row of each kind, and what makes it unreadable without breaking a check of the schema, or with
/// one that a newer program would have widened.
const DAMAGES: [(ResourceKind, &str, &str); 10] = [
    (ResourceKind::Tenant, "tenant", "labels = '[]' where slug = 'bad'"),
    (ResourceKind::EventType, "event_type", "type_name = 'a b' where type_name = 'order.bad'"),
    (ResourceKind::EventTypeVersion, "event_type_version", "version = 'a b' where version = 'bad'"),
    (ResourceKind::RetryPolicy, "retry_policy", "rule = '{' where slug = 'bad'"),
    (ResourceKind::Endpoint, "endpoint", "headers = 'x' where slug = 'bad'"),
    (ResourceKind::KeyRing, "signing_key", "algorithm = 'sm2'"),
    (ResourceKind::Subscription, "subscription", "patterns = '{}' where slug = 'bad'"),
    (ResourceKind::Source, "source", "settings = '' where slug = 'bad'"),
    (ResourceKind::SourceKeyRing, "verification_key", "algorithm = 'sm2'"),
    (ResourceKind::ApiToken, "api_token", "role = 'emperor' where slug = 'bad'"),
];

/// Two of everything, one of them called bad.
async fn filled(fixture: &Fixture) -> Tenant {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    fixture.tenant("bad").await;
    for name in ["good", "bad"] {
        let made = event_type(acme.id, &format!("order.{name}"));
        let made = config.create_event_type(made, &by()).await.unwrap();
        let first = version(&made, name);
        config.create_event_type_version(first, seen(&made, None), &by()).await.unwrap();
        config.create_retry_policy(retry_policy(acme.id, name), &by()).await.unwrap();
        let made = config.create_endpoint(endpoint(acme.id, name), ring(), &by()).await.unwrap();
        config.create_subscription(subscription(&made, name), &by()).await.unwrap();
        let keys = KeyRing::with_first(source_key(), at(1));
        config.create_source(source(acme.id, name), keys, &by()).await.unwrap();
        config.create_api_token(token(Some(acme.id), name), &by()).await.unwrap();
    }
    acme
}

/// Writes past every check.
async fn damage(fixture: &Fixture, table: &str, change: &str) {
    let hand = fixture.db.begin().await.unwrap();
    let is_postgres = hand.get_database_backend() == DbBackend::Postgres;
    let change = match table {
        "signing_key" => {
            format!("{change} where endpoint_id = (select id from endpoint where slug = 'bad')")
        }
        "verification_key" => {
            format!("{change} where source_id = (select id from source where slug = 'bad')")
        }
        _ => change.to_owned(),
    };
    let check = match is_postgres {
        true => format!("alter table {table} drop constraint if exists {table}_algorithm_check"),
        false => "pragma ignore_check_constraints = on".to_owned(),
    };
    hand.execute_unprepared(&check).await.unwrap();
    let done = hand.execute_unprepared(&format!("update {table} set {change}")).await.unwrap();
    assert_eq!(done.rows_affected(), 1, "{table}");
    if !is_postgres {
        hand.execute_unprepared("pragma ignore_check_constraints = off").await.unwrap();
    }
    hand.commit().await.unwrap();
}

fn counts(delta: &ConfigDelta) -> [usize; 10] {
    [
        delta.tenants.len(),
        delta.event_types.len(),
        delta.event_type_versions.len(),
        delta.retry_policies.len(),
        delta.endpoints.len(),
        delta.key_rings.len(),
        delta.subscriptions.len(),
        delta.sources.len(),
        delta.source_key_rings.len(),
        delta.api_tokens.len(),
    ]
}

async fn a_row_of_any_kind_that_cannot_be_read_is_named_and_holds_nothing_back(fixture: &Fixture) {
    filled(fixture).await;
    let newest = fixture.revision().await;
    let before = fixture.config.changes_since(Revision::ZERO).await.unwrap();
    assert_eq!((counts(&before), before.unreadable.len()), ([2; 10], 0));
    for (place, (kind, table, change)) in DAMAGES.into_iter().enumerate() {
        damage(fixture, table, change).await;
        let all = fixture.config.changes_since(Revision::ZERO).await.unwrap();
        assert_eq!(all.revision, newest, "{kind}");
        let expected = std::array::from_fn(|at| if at <= place { 1 } else { 2 });
        assert_eq!(counts(&all), expected, "{kind}");
        assert_eq!(all.unreadable.len(), place + 1, "{kind}");
        let named = all.unreadable.iter().find(|one| one.kind == kind).unwrap();
        let name = match kind {
            ResourceKind::EventType | ResourceKind::EventTypeVersion => "a b",
            _ => "bad",
        };
        assert_eq!((named.name.as_str(), named.deleted), (name, false), "{kind}");
        assert!(named.revision <= newest && named.revision > Revision::ZERO, "{kind}");
        assert!(named.reason.starts_with("column "), "{}", named.reason);
    }
    // What changes from now on is not held back either, and names them no more.
    let acme = fixture.config.tenant(&crate::common::id("acme")).await.unwrap().unwrap();
    fixture.endpoint(&acme, "later").await;
    let later = fixture.config.changes_since(newest).await.unwrap();
    assert_eq!((later.endpoints.len(), later.unreadable.len()), (1, 0));
    assert!(later.revision > newest);
}

async fn what_is_deleted_goes_though_nobody_can_read_it(fixture: &Fixture) {
    let acme = filled(fixture).await;
    let config = &fixture.config;
    let bad = config.endpoint(acme.id, &crate::common::id("bad")).await.unwrap().unwrap();
    let known = fixture.revision().await;
    config.delete_endpoint(&bad, at(9), &by()).await.unwrap();
    damage(fixture, "endpoint", "headers = 'x' where slug = 'bad'").await;
    let delta = config.changes_since(known).await.unwrap();
    assert!(delta.endpoints.is_empty());
    let gone = &delta.unreadable[0];
    assert_eq!((gone.kind, gone.id), (ResourceKind::Endpoint, bad.id.uuid()));
    assert!(gone.deleted);
    // Who knows nothing has nothing to take away.
    let all = config.changes_since(Revision::ZERO).await.unwrap();
    assert!(all.unreadable.is_empty());
}

async fn a_row_that_is_written_anew_is_readable_again(fixture: &Fixture) {
    filled(fixture).await;
    damage(fixture, "source", "settings = '' where slug = 'bad'").await;
    assert_eq!(fixture.config.changes_since(Revision::ZERO).await.unwrap().unreadable.len(), 1);
    let repaired =
        "settings = (select settings from source where slug = 'good') where slug = 'bad'";
    damage(fixture, "source", repaired).await;
    let all = fixture.config.changes_since(Revision::ZERO).await.unwrap();
    assert_eq!((all.sources.len(), all.unreadable.len()), (2, 0));
}
