//! Versions of event types: made under what was seen, never changed, gone with their type.

use crate::common::{at, by, on_both_backends};
use crate::fixture::{Fixture, event_type, refusal, seen, version};
use sea_orm::{ConnectionTrait as _, DbBackend};
use std::sync::Arc;
use turnbuckle_domain::{
    AuditFilter, AuditTrail as _, ChangeContext, Compatibility, ConfigSource as _,
    ConfigStore as _, Error, EventType, EventTypeVersion, Revision, Tenant, VersionName,
    VersionsSeen, version_limits,
};

on_both_backends!(
    a_version_comes_back_as_it_was_sent,
    versions_are_listed_by_name_and_the_last_made_is_the_latest,
    a_version_is_made_only_under_what_its_caller_saw,
    of_concurrent_creators_who_saw_the_same_one_wins,
    a_taken_version_is_refused_until_it_is_deleted,
    the_latest_version_stays_while_the_type_asks_for_compatibility,
    an_event_type_has_a_bounded_number_of_versions,
    the_schemas_of_a_tenant_are_bounded_together,
    versions_go_with_their_type_and_with_their_tenant,
    no_tenant_sees_or_makes_versions_of_another,
    followers_see_versions_come_and_go,
    a_version_that_cannot_be_read_holds_nothing_else_back,
    a_version_that_is_only_validated_is_not_made,
    the_database_knows_the_bounds_too,
);

async fn paid(fixture: &Fixture) -> (Tenant, EventType) {
    let acme = fixture.tenant("acme").await;
    let new = event_type(acme.id, "order.paid");
    let paid = fixture.config.create_event_type(new, &by()).await.unwrap();
    (acme, paid)
}

async fn make(
    fixture: &Fixture,
    owner: &EventType,
    name: &str,
    latest: Option<&EventTypeVersion>,
) -> EventTypeVersion {
    try_make(fixture, version(owner, name), seen(owner, latest)).await.unwrap()
}

async fn try_make(
    fixture: &Fixture,
    new: EventTypeVersion,
    seen: VersionsSeen,
) -> Result<EventTypeVersion, Error> {
    fixture.config.create_event_type_version(new, seen, &by()).await
}

async fn latest(fixture: &Fixture, owner: &EventType) -> Option<String> {
    let latest = fixture.config.latest_event_type_version(owner.tenant, owner.id).await.unwrap();
    latest.map(|latest| latest.version.to_string())
}

async fn a_version_comes_back_as_it_was_sent(fixture: &Fixture) {
    let (acme, paid) = paid(fixture).await;
    let one = make(fixture, &paid, "1", None).await;
    assert_eq!(one.meta.revision, fixture.revision().await);
    let found = fixture.config.event_type_version(acme.id, paid.id, &one.version).await.unwrap();
    assert_eq!(found, Some(one));
    let other = VersionName::new("2").unwrap();
    assert_eq!(fixture.config.event_type_version(acme.id, paid.id, &other).await.unwrap(), None);
}

async fn versions_are_listed_by_name_and_the_last_made_is_the_latest(fixture: &Fixture) {
    let (acme, paid) = paid(fixture).await;
    assert_eq!(latest(fixture, &paid).await, None);
    let mut last = None;
    for name in ["2", "10", "1"] {
        last = Some(make(fixture, &paid, name, last.as_ref()).await);
        assert_eq!(latest(fixture, &paid).await.as_deref(), Some(name));
    }
    let mut listed = Vec::new();
    loop {
        let after = listed.last().map(String::as_str);
        let page = fixture.config.event_type_versions(acme.id, paid.id, after, 2).await.unwrap();
        if page.is_empty() {
            break;
        }
        listed.extend(page.iter().map(|version| version.version.to_string()));
    }
    assert_eq!(listed, ["1", "10", "2"]);
    // Others of the tenant are no concern of theirs.
    let other = event_type(acme.id, "order.lost");
    let other = fixture.config.create_event_type(other, &by()).await.unwrap();
    assert_eq!(latest(fixture, &other).await, None);
    make(fixture, &other, "1", None).await;
    assert_eq!(latest(fixture, &paid).await.as_deref(), Some("1"));
}

async fn a_version_is_made_only_under_what_its_caller_saw(fixture: &Fixture) {
    let (_, paid) = paid(fixture).await;
    let config = &fixture.config;
    let one = make(fixture, &paid, "1", None).await;
    let late = try_make(fixture, version(&paid, "2"), seen(&paid, None)).await;
    let name = || "tenants/acme/eventTypes/order.paid".to_owned();
    assert_eq!(refusal(late), ("ETAG_MISMATCH", name()));

    let looser = EventType { compatibility: Compatibility::None, ..paid.clone() };
    let changed = config.update_event_type(looser, paid.meta.revision, &by()).await.unwrap();
    let before = seen(&paid, Some(&one));
    let late = try_make(fixture, version(&paid, "2"), before).await;
    assert_eq!(refusal(late), ("ETAG_MISMATCH", name()));
    make(fixture, &changed, "2", Some(&one)).await;
}

async fn of_concurrent_creators_who_saw_the_same_one_wins(fixture: &Fixture) {
    let (_, paid) = paid(fixture).await;
    let creators: Vec<_> = (0..8)
        .map(|number| {
            let (config, paid) = (Arc::clone(&fixture.config), paid.clone());
            tokio::spawn(async move {
                let new = version(&paid, &number.to_string());
                config.create_event_type_version(new, seen(&paid, None), &by()).await
            })
        })
        .collect();
    let mut won = 0;
    for creator in creators {
        match creator.await.unwrap() {
            Ok(_) => won += 1,
            lost => assert_eq!(refusal(lost).0, "ETAG_MISMATCH"),
        }
    }
    assert_eq!(won, 1);
}

async fn a_taken_version_is_refused_until_it_is_deleted(fixture: &Fixture) {
    let (_, paid) = paid(fixture).await;
    let config = &fixture.config;
    let one = make(fixture, &paid, "1", None).await;
    let again = version(&paid, "1");
    let taken = try_make(fixture, again, seen(&paid, Some(&one))).await;
    let name = "tenants/acme/eventTypes/order.paid/versions/1".to_owned();
    assert_eq!(refusal(taken), ("ALREADY_EXISTS", name.clone()));
    let two = make(fixture, &paid, "2", Some(&one)).await;
    config.delete_event_type_version(&one, at(9), &by()).await.unwrap();
    let gone = config.delete_event_type_version(&one, at(9), &by()).await;
    assert_eq!(refusal(gone), ("NOT_FOUND", name));
    let anew = make(fixture, &paid, "1", Some(&two)).await;
    assert_ne!(anew.id, one.id);
    assert_eq!(latest(fixture, &paid).await.as_deref(), Some("1"));
}

async fn the_latest_version_stays_while_the_type_asks_for_compatibility(fixture: &Fixture) {
    let (_, paid) = paid(fixture).await;
    let config = &fixture.config;
    let one = make(fixture, &paid, "1", None).await;
    let two = make(fixture, &paid, "2", Some(&one)).await;
    let kept = config.delete_event_type_version(&two, at(9), &by()).await;
    let name = "tenants/acme/eventTypes/order.paid/versions/2".to_owned();
    assert_eq!(refusal(kept), ("LATEST_VERSION", name));
    config.delete_event_type_version(&one, at(9), &by()).await.unwrap();
    let looser = EventType { compatibility: Compatibility::None, ..paid.clone() };
    config.update_event_type(looser, paid.meta.revision, &by()).await.unwrap();
    config.delete_event_type_version(&two, at(9), &by()).await.unwrap();
    assert_eq!(latest(fixture, &paid).await, None);
}

async fn an_event_type_has_a_bounded_number_of_versions(fixture: &Fixture) {
    let (_, paid) = paid(fixture).await;
    let mut last = None;
    for number in 0..version_limits::VERSIONS {
        last = Some(make(fixture, &paid, &number.to_string(), last.as_ref()).await);
    }
    let more = version(&paid, "more");
    let refused =
        fixture.config.create_event_type_version(more, seen(&paid, last.as_ref()), &by()).await;
    let error = refused.unwrap_err();
    assert_eq!(error.reason(), "TOO_MANY_VERSIONS");
    assert!(error.to_string().contains("has 100 versions and can have no more"), "{error}");
    let first = VersionName::new("0").unwrap();
    let first = fixture.config.event_type_version(paid.tenant, paid.id, &first).await.unwrap();
    fixture.config.delete_event_type_version(&first.unwrap(), at(9), &by()).await.unwrap();
    make(fixture, &paid, "more", last.as_ref()).await;
}

async fn the_schemas_of_a_tenant_are_bounded_together(fixture: &Fixture) {
    let (acme, paid) = paid(fixture).await;
    let first = make(fixture, &paid, "1", None).await;
    let other = fixture.config.create_event_type(event_type(acme.id, "order.sent"), &by()).await;
    let other = other.unwrap();
    // Filled by hand up to the last kilobytes: a type alone cannot have as many versions.
    let (series, random_id, text) = match fixture.db.get_database_backend() {
        DbBackend::Postgres => {
            ("generate_series(1, 1024) s (n)", "gen_random_uuid()", "repeat('x', 65536)")
        }
        _ => (
            "(with recursive s (n) as (select 1 union all select n + 1 from s where n < 1024) \
             select n from s)",
            "randomblob(16)",
            "hex(zeroblob(32768))",
        ),
    };
    let fill = format!(
        "insert into event_type_version (id, tenant_id, event_type_id, version, schema, description, \
         created_at_us, updated_at_us, revision) select {random_id}, v.tenant_id, v.event_type_id, \
         'v' || n, {text}, '', 1, 1, 1 from event_type_version v, {series} where v.version = '1'"
    );
    fixture.db.execute_unprepared(&fill).await.unwrap();
    let refused = try_make(fixture, version(&other, "1"), seen(&other, None)).await.unwrap_err();
    assert!(refused.to_string().contains("schemas of tenants/acme"), "{refused}");
    assert_eq!(refused.reason(), "TOO_MANY_VERSIONS");
    // Another tenant has its own room, and so has this one once something is deleted.
    let globex = fixture.tenant("globex").await;
    let theirs = event_type(globex.id, "order.sent");
    let theirs = fixture.config.create_event_type(theirs, &by()).await.unwrap();
    make(fixture, &theirs, "1", None).await;
    fixture.config.delete_event_type(&paid, at(9), &by()).await.unwrap();
    make(fixture, &other, "1", None).await;
    assert_eq!(first.event_type, paid.id);
}

async fn versions_go_with_their_type_and_with_their_tenant(fixture: &Fixture) {
    let (acme, paid) = paid(fixture).await;
    let config = &fixture.config;
    let one = make(fixture, &paid, "1", None).await;
    let revision = config.delete_event_type(&paid, at(9), &by()).await.unwrap();
    let delta = config.changes_since(Revision(revision.0 - 1)).await.unwrap();
    let gone = &delta.event_type_versions[0];
    assert!(gone.deleted && gone.value.id == one.id && gone.value.meta.revision == revision);
    let entries = config.audit_entries(acme.id, &AuditFilter::default(), None, 1).await.unwrap();
    let change = entries[0].changes.iter().find(|change| change.field == "versions.1").unwrap();
    assert_eq!((change.before.clone(), change.after.as_ref()), (Some(one.id.to_string()), None));
    let orphan = try_make(fixture, version(&paid, "2"), seen(&paid, None)).await;
    let name = "tenants/acme/eventTypes/order.paid".to_owned();
    assert_eq!(refusal(orphan), ("NOT_FOUND", name));

    // The same name again is another type, without versions.
    let anew = event_type(acme.id, "order.paid");
    let anew = config.create_event_type(anew, &by()).await.unwrap();
    assert_eq!(latest(fixture, &anew).await, None);
    make(fixture, &anew, "1", None).await;
    config.delete_tenant(&acme, at(9), &by()).await.unwrap();
    assert_eq!(latest(fixture, &anew).await, None);
    let delta = config.changes_since(Revision::ZERO).await.unwrap();
    assert!(delta.event_type_versions.is_empty());
}

async fn no_tenant_sees_or_makes_versions_of_another(fixture: &Fixture) {
    let (_, paid) = paid(fixture).await;
    let config = &fixture.config;
    let other = fixture.tenant("other").await;
    let one = make(fixture, &paid, "1", None).await;
    assert_eq!(config.event_type_version(other.id, paid.id, &one.version).await.unwrap(), None);
    assert_eq!(config.latest_event_type_version(other.id, paid.id).await.unwrap(), None);
    assert_eq!(config.event_type_versions(other.id, paid.id, None, 9).await.unwrap(), []);
    let foreign = EventTypeVersion { tenant: other.id, ..version(&paid, "2") };
    let refused = config.create_event_type_version(foreign, seen(&paid, Some(&one)), &by()).await;
    assert_eq!(refusal(refused).0, "NOT_FOUND");
    let foreign = EventTypeVersion { tenant: other.id, ..one };
    let refused = config.delete_event_type_version(&foreign, at(9), &by()).await;
    assert_eq!(refusal(refused).0, "NOT_FOUND");
}

async fn followers_see_versions_come_and_go(fixture: &Fixture) {
    let (_, paid) = paid(fixture).await;
    let config = &fixture.config;
    let one = make(fixture, &paid, "1", None).await;
    let two = make(fixture, &paid, "2", Some(&one)).await;
    let all = config.changes_since(Revision::ZERO).await.unwrap().event_type_versions;
    let values: Vec<_> = all.into_iter().map(|row| (row.value, row.deleted)).collect();
    assert_eq!(values, [(one.clone(), false), (two.clone(), false)]);
    config.delete_event_type_version(&one, at(9), &by()).await.unwrap();
    let delta = config.changes_since(two.meta.revision).await.unwrap().event_type_versions;
    assert_eq!(delta.len(), 1);
    assert!(delta[0].deleted && delta[0].value.id == one.id);
}

async fn a_version_that_cannot_be_read_holds_nothing_else_back(fixture: &Fixture) {
    let (_, paid) = paid(fixture).await;
    let one = make(fixture, &paid, "1", None).await;
    let two = make(fixture, &paid, "2", Some(&one)).await;
    let broken = "update event_type_version set version = 'a b' where version = '1'";
    fixture.db.execute_unprepared(broken).await.unwrap();
    let delta = fixture.config.changes_since(Revision::ZERO).await.unwrap();
    let ids: Vec<_> = delta.event_type_versions.iter().map(|row| row.value.id).collect();
    assert_eq!(ids, [two.id]);
    assert_eq!(delta.event_types.len(), 1);
}

async fn a_version_that_is_only_validated_is_not_made(fixture: &Fixture) {
    let (acme, paid) = paid(fixture).await;
    let dry = ChangeContext { validate_only: true, ..by() };
    let before = fixture.revision().await;
    let new = version(&paid, "1");
    fixture.config.create_event_type_version(new, seen(&paid, None), &dry).await.unwrap();
    assert_eq!(latest(fixture, &paid).await, None);
    assert_eq!(fixture.revision().await, before);
    assert_eq!(fixture.config.audit_head(acme.id).await.unwrap().unwrap().sequence, 2);
}

async fn the_database_knows_the_bounds_too(fixture: &Fixture) {
    let (_, paid) = paid(fixture).await;
    make(fixture, &paid, "1", None).await;
    let longest = EventTypeVersion { schema: "ü".repeat(32 * 1024), ..version(&paid, "2") };
    let one = fixture.config.latest_event_type_version(paid.tenant, paid.id).await.unwrap();
    let now = seen(&paid, one.as_ref());
    let two = fixture.config.create_event_type_version(longest, now, &by()).await.unwrap();
    for schema in [String::new(), "ü".repeat(32 * 1024 + 1)] {
        let outside = EventTypeVersion { schema, ..version(&paid, "3") };
        let made =
            fixture.config.create_event_type_version(outside, seen(&paid, Some(&two)), &by()).await;
        assert!(matches!(made, Err(Error::Internal { .. })), "{made:?}");
    }
    for outside in [
        "update event_type set compatibility = 'forward'",
        "update event_type set unknown_version = ''",
    ] {
        fixture.db.execute_unprepared(outside).await.unwrap_err();
    }
}
