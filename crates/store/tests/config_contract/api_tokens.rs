//! API tokens: rows that end without going away.

use crate::common::{at, by, id, on_both_backends, tenant};
use crate::fixture::{Fixture, refusal};
use sea_orm::{ConnectionTrait as _, Statement};
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    ApiToken, ApiTokenId, ApiTokenSecret, ApiTokenState, ApiTokenStore as _, AuditFilter,
    AuditTrail as _, ChangeContext, ConfigSource as _, ConfigStore as _, Meta, PLATFORM, Revision,
    Revocation, Role, TenantId, api_token_limits, verify_chain,
};
use uuid::Uuid;

on_both_backends!(
    what_is_stored_of_a_token_comes_back_and_its_text_is_nowhere,
    only_description_expiry_and_revocation_change,
    names_are_never_given_again,
    tenants_and_the_platform_do_not_see_each_others_tokens,
    lists_show_what_is_valid_or_everything,
    there_is_a_bound_of_valid_tokens,
    followers_see_tokens_come_and_end,
    uses_are_noted_without_a_revision_and_never_go_back,
    a_deleted_tenant_leaves_no_valid_token,
    an_entry_of_the_record_names_a_bounded_number_of_tokens,
    an_expired_token_ends_for_followers_and_in_snapshots,
    changes_of_platform_tokens_are_in_the_platforms_record,
    a_validated_token_leaves_nothing,
);

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A token made at one second that expires after a day.
pub(crate) fn token(owner: Option<TenantId>, slug: &str) -> ApiToken {
    let uuid = Uuid::now_v7();
    let mut random = [0; 32];
    random[..16].copy_from_slice(uuid.as_bytes());
    let secret = ApiTokenSecret::from_random(&random);
    ApiToken {
        id: ApiTokenId::from_uuid(uuid),
        tenant: owner,
        slug: id(slug),
        description: "for the büild".to_owned(),
        role: Role::Publisher,
        hash: secret.hash(),
        hint: secret.hint(),
        creator: "alice".to_owned(),
        expires_at: at(1) + DAY,
        revoked: None,
        last_used_at: None,
        meta: Meta { created_at: at(1), updated_at: at(1), revision: Revision::ZERO },
    }
}

async fn made(fixture: &Fixture, owner: Option<TenantId>, slug: &str) -> ApiToken {
    fixture.config.create_api_token(token(owner, slug), &by()).await.unwrap()
}

async fn revoke(fixture: &Fixture, token: &ApiToken) -> ApiToken {
    let revoked = Some(Revocation { at: at(5), reason: "leaked".to_owned() });
    let changed = ApiToken { revoked, ..token.clone() };
    fixture.config.update_api_token(changed, token.meta.revision, &by()).await.unwrap()
}

async fn what_is_stored_of_a_token_comes_back_and_its_text_is_nowhere(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let secret = ApiTokenSecret::from_random(&[0xc7; 32]);
    for owner in [Some(acme.id), None] {
        let mut new = token(owner, "ci");
        if owner.is_some() {
            (new.hash, new.hint) = (secret.hash(), secret.hint());
        }
        let made = fixture.config.create_api_token(new.clone(), &by()).await.unwrap();
        assert_eq!(made.meta.revision, fixture.revision().await);
        new.meta.revision = made.meta.revision;
        assert_eq!(made, new);
        assert_eq!(fixture.config.api_token(owner, &id("ci")).await.unwrap(), Some(new));
    }
    // Neither whole nor in part, in any column of text.
    let backend = fixture.db.get_database_backend();
    for sql in [
        "select slug || description || role || hint || creator from api_token",
        "select subject || method || resource || reason || changes from audit_event",
    ] {
        let rows = fixture.db.query_all_raw(Statement::from_string(backend, sql)).await.unwrap();
        assert!(!rows.is_empty());
        for row in rows {
            let text: String = row.try_get_by_index(0).unwrap();
            assert!(!text.contains("tbk_") && !text.contains("c7c7"), "{text}");
        }
    }
}

async fn only_description_expiry_and_revocation_change(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let first = made(fixture, Some(acme.id), "ci").await;
    let wanted = ApiToken {
        slug: id("other"),
        description: "changed".to_owned(),
        role: Role::Admin,
        hash: token(None, "x").hash,
        hint: "beef".to_owned(),
        creator: "mallory".to_owned(),
        expires_at: at(50),
        last_used_at: Some(at(9)),
        meta: Meta { created_at: at(99), updated_at: at(9), revision: Revision(77) },
        ..first.clone()
    };
    let seen = first.meta.revision;
    fixture.config.update_api_token(wanted, seen, &by()).await.unwrap();
    let stored = fixture.config.api_token(Some(acme.id), &first.slug).await.unwrap().unwrap();
    let expected = ApiToken {
        description: "changed".to_owned(),
        expires_at: at(50),
        meta: Meta { created_at: at(1), updated_at: at(9), revision: fixture.revision().await },
        ..first.clone()
    };
    assert_eq!(stored, expected);
    let name = || "tenants/acme/apiTokens/ci".to_owned();
    let stale = fixture.config.update_api_token(first.clone(), seen, &by()).await;
    assert_eq!(refusal(stale), ("ETAG_MISMATCH", name()));
    let revoked = revoke(fixture, &stored).await;
    let stored = fixture.config.api_token(Some(acme.id), &first.slug).await.unwrap().unwrap();
    assert_eq!(stored, revoked);
    let moved = ApiToken { tenant: None, ..revoked.clone() };
    let missing = fixture.config.update_api_token(moved, revoked.meta.revision, &by()).await;
    assert_eq!(refusal(missing), ("NOT_FOUND", "apiTokens/ci".to_owned()));
}

async fn names_are_never_given_again(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    for owner in [Some(acme.id), None] {
        let first = made(fixture, owner, "ci").await;
        let taken = fixture.config.create_api_token(token(owner, "ci"), &by()).await;
        assert_eq!(refusal(taken).0, "ALREADY_EXISTS");
        revoke(fixture, &first).await;
        let taken = fixture.config.create_api_token(token(owner, "ci"), &by()).await;
        assert_eq!(refusal(taken).0, "ALREADY_EXISTS");
    }
    let creators: Vec<_> = (0..4)
        .map(|_| {
            let config = Arc::clone(&fixture.config);
            tokio::spawn(async move { config.create_api_token(token(None, "x"), &by()).await })
        })
        .collect();
    let mut won = 0;
    for creator in creators {
        won += u32::from(creator.await.unwrap().is_ok());
    }
    assert_eq!(won, 1);
}

async fn tenants_and_the_platform_do_not_see_each_others_tokens(fixture: &Fixture) {
    let (acme, other) = (fixture.tenant("acme").await, fixture.tenant("other").await);
    for owner in [Some(acme.id), Some(other.id), None] {
        made(fixture, owner, "same").await;
    }
    made(fixture, Some(acme.id), "own").await;
    for (owner, count) in [(Some(acme.id), 2), (Some(other.id), 1), (None, 1)] {
        let listed = fixture.config.api_tokens(owner, None, None, 10).await.unwrap();
        assert_eq!(listed.len(), count);
        assert!(listed.iter().all(|token| token.tenant == owner));
    }
    for owner in [Some(other.id), None] {
        assert_eq!(fixture.config.api_token(owner, &id("own")).await.unwrap(), None);
    }
}

async fn lists_show_what_is_valid_or_everything(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let owner = Some(acme.id);
    for slug in ["b", "a-b", "a_a", "ab"] {
        made(fixture, owner, slug).await;
    }
    let ended = made(fixture, owner, "a").await;
    revoke(fixture, &ended).await;
    let slugs = async |valid_at, after: Option<&str>, limit| {
        let page = config.api_tokens(owner, valid_at, after, limit).await.unwrap();
        page.iter().map(|token| token.slug.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(slugs(None, None, 10).await, ["a", "a-b", "a_a", "ab", "b"]);
    assert_eq!(slugs(Some(at(2)), None, 10).await, ["a-b", "a_a", "ab", "b"]);
    assert_eq!(slugs(Some(at(2)), Some("a_a"), 1).await, ["ab"]);
    assert_eq!(slugs(Some(at(1) + DAY), None, 10).await, Vec::<String>::new());
}

async fn there_is_a_bound_of_valid_tokens(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let owner = Some(acme.id);
    let first = made(fixture, owner, "first").await;
    let more = usize::try_from(api_token_limits::VALID_MAX).unwrap() - 1;
    for number in 0..more {
        made(fixture, owner, &format!("t{number}")).await;
    }
    let above = fixture.config.create_api_token(token(owner, "above"), &by()).await;
    let name = "tenants/acme/apiTokens/above".to_owned();
    assert_eq!(refusal(above), ("LIMIT_REACHED", name));
    // Others have a bound of their own, and what has ended makes room.
    made(fixture, None, "above").await;
    revoke(fixture, &first).await;
    made(fixture, owner, "above").await;
    let mut later = token(owner, "later");
    later.meta.created_at = at(1) + DAY;
    fixture.config.create_api_token(later, &by()).await.unwrap();
}

async fn followers_see_tokens_come_and_end(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let known = fixture.revision().await;
    let own = made(fixture, Some(acme.id), "ci").await;
    let platform = made(fixture, None, "ci").await;
    let delta = config.changes_since(known).await.unwrap();
    assert_eq!(delta.api_tokens, [own.clone(), platform.clone()]);
    let known = delta.revision;
    let revoked = revoke(fixture, &own).await;
    let delta = config.changes_since(known).await.unwrap();
    assert_eq!(delta.api_tokens, [revoked]);
    // Who knows nothing needs no ended ones.
    let all = config.changes_since(Revision::ZERO).await.unwrap();
    assert_eq!(all.api_tokens, [platform]);
}

async fn uses_are_noted_without_a_revision_and_never_go_back(fixture: &Fixture) {
    let config = &fixture.config;
    let (one, two) = (made(fixture, None, "one").await, made(fixture, None, "two").await);
    let revision = fixture.revision().await;
    let head = config.audit_head(PLATFORM).await.unwrap();
    let unknown = ApiTokenId::from_uuid(Uuid::now_v7());
    config.note_api_token_uses(&[(one.id, at(100)), (unknown, at(1))]).await.unwrap();
    config.note_api_token_uses(&[(two.id, at(90)), (one.id, at(60))]).await.unwrap();
    config.note_api_token_uses(&[]).await.unwrap();
    for (token, used) in [(&one, at(100)), (&two, at(90))] {
        let stored = config.api_token(None, &token.slug).await.unwrap().unwrap();
        assert_eq!(stored, ApiToken { last_used_at: Some(used), ..token.clone() });
    }
    assert_eq!(fixture.revision().await, revision);
    assert_eq!(config.audit_head(PLATFORM).await.unwrap(), head);
    // A change keeps the use that its author has not seen.
    let changed = revoke(fixture, &one).await;
    assert_eq!(changed.last_used_at, Some(at(100)));
}

async fn a_deleted_tenant_leaves_no_valid_token(fixture: &Fixture) {
    let config = &fixture.config;
    let (acme, other) = (fixture.tenant("acme").await, fixture.tenant("other").await);
    let own = made(fixture, Some(acme.id), "ci").await;
    let kept = made(fixture, Some(other.id), "ci").await;
    let platform = made(fixture, None, "ci").await;
    let known = fixture.revision().await;
    config.delete_tenant(&acme, at(9), &by()).await.unwrap();
    let delta = config.changes_since(known).await.unwrap();
    let [ended] = delta.api_tokens.as_slice() else { panic!("{:?}", delta.api_tokens) };
    assert_eq!((ended.id, ended.revoked.as_ref().map(|end| end.at)), (own.id, Some(at(9))));
    let all = config.changes_since(Revision::ZERO).await.unwrap();
    assert_eq!(all.api_tokens, [kept, platform]);
    let all = AuditFilter::default();
    let newest = config.audit_entries(acme.id, &all, None, 1).await.unwrap().swap_remove(0);
    assert!(newest.changes.iter().any(|change| change.field == "apiTokens.ci"), "{newest:?}");
    let late = config.create_api_token(token(Some(acme.id), "late"), &by()).await;
    assert_eq!(refusal(late), ("NOT_FOUND", "tenants/acme".to_owned()));
}

async fn changes_of_platform_tokens_are_in_the_platforms_record(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let first = made(fixture, None, "deploy").await;
    revoke(fixture, &first).await;
    made(fixture, Some(acme.id), "ci").await;
    let all = AuditFilter::default();
    let entries = config.audit_entries(PLATFORM, &all, None, 10).await.unwrap();
    assert_eq!(entries.len(), 2);
    assert!(entries.iter().all(|entry| entry.resource == "apiTokens/deploy"));
    let fields: Vec<&str> = entries[0].changes.iter().map(|change| change.field.as_str()).collect();
    assert_eq!(fields, ["revoke_reason", "revoke_time"]);
    let head = config.audit_head(PLATFORM).await.unwrap().unwrap();
    assert_eq!(verify_chain(&head, entries), Ok(2));
    let own = config.audit_entries(acme.id, &all, None, 10).await.unwrap();
    assert_eq!(own[0].resource, "tenants/acme/apiTokens/ci");
}

async fn a_validated_token_leaves_nothing(fixture: &Fixture) {
    fixture.config.create_tenant(tenant("acme"), &by()).await.unwrap();
    let revision = fixture.revision().await;
    let only = ChangeContext { validate_only: true, ..by() };
    fixture.config.create_api_token(token(None, "ci"), &only).await.unwrap();
    assert_eq!(fixture.config.api_token(None, &id("ci")).await.unwrap(), None);
    assert_eq!(fixture.revision().await, revision);
    made(fixture, None, "ci").await;
}

async fn an_entry_of_the_record_names_a_bounded_number_of_tokens(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    for number in 0..101 {
        made(fixture, Some(acme.id), &format!("ci-{number}")).await;
    }
    config.delete_tenant(&acme, at(9), &by()).await.unwrap();
    let all = AuditFilter::default();
    let newest = config.audit_entries(acme.id, &all, None, 1).await.unwrap().swap_remove(0);
    let named = newest.changes.iter().filter(|it| it.field.starts_with("apiTokens.ci-")).count();
    assert_eq!(named, 100);
    assert!(newest.changes.iter().any(|it| it.field == "apiTokens.count"), "{newest:?}");
}

/// What nobody could use any more is in no snapshot, and who followed the changes has it no more either.
async fn an_expired_token_ends_for_followers_and_in_snapshots(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let later = ApiToken { expires_at: at(1) + 9 * DAY, ..token(None, "later") };
    let later = config.create_api_token(later, &by()).await.unwrap();
    let gone = made(fixture, None, "gone").await;
    revoke(fixture, &gone).await;
    let first = made(fixture, Some(acme.id), "first").await;
    let second = made(fixture, None, "second").await;
    let known = fixture.revision().await;
    assert_eq!(config.end_expired_api_token(at(1) + DAY, &by()).await.unwrap(), None);
    assert_eq!(fixture.revision().await, known, "nothing is due, and nothing changes");

    let now = at(1) + 3 * DAY;
    let ended = || ChangeContext { at: now, ..by() };
    let mut names = Vec::new();
    while let Some(name) = config.end_expired_api_token(now - DAY, &ended()).await.unwrap() {
        names.push(name);
    }
    names.sort();
    assert_eq!(names, ["apiTokens/second", "tenants/acme/apiTokens/first"]);
    let all = config.changes_since(Revision::ZERO).await.unwrap();
    assert_eq!(all.api_tokens, [later]);
    let mut told: Vec<ApiTokenId> = Vec::new();
    for token in config.changes_since(known).await.unwrap().api_tokens {
        assert!(token.revoked.is_some());
        assert_eq!(token.state(now), ApiTokenState::Expired, "as before");
        told.push(token.id);
    }
    let mut expected = [first.id, second.id];
    told.sort_unstable();
    expected.sort_unstable();
    assert_eq!(told, expected);
    let newest = AuditFilter::default();
    let newest = config.audit_entries(acme.id, &newest, None, 1).await.unwrap().swap_remove(0);
    assert_eq!(newest.resource, "tenants/acme/apiTokens/first");
    // The name is taken for ever.
    let again = config.create_api_token(token(None, "second"), &by()).await;
    assert_eq!(refusal(again).0, "ALREADY_EXISTS");
}
