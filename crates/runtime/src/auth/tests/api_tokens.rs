//! API tokens at the door.

use super::{
    layer::{Outcome, methods, send},
    *,
};
use crate::auth::api_tokens::{ApiTokenFollower, ApiTokenUses, ApiTokens, ObservedConfig};
use async_trait::async_trait;
use http::{Request, header::AUTHORIZATION};
use std::{convert::Infallible, future::ready, sync::Mutex, time::Duration};
use tonic::{Code, Status};
use tower::{Layer as _, ServiceExt as _, service_fn};
use turnbuckle_domain::{
    ApiToken, ApiTokenId, ApiTokenSecret, ApiTokenStore, ChangeContext, ConfigDelta,
    ConfigPosition, ConfigSource, Deletable, Epoch, Labels, Meta, Permission, Propagation as _,
    ResourceId, Revision, Revocation, Role, SourcePosition, StoreError, Tenant, TenantId,
};
use turnbuckle_proto::DESCRIPTORS;
use uuid::Uuid;

const DAY: Duration = Duration::from_secs(24 * 3600);

pub(super) fn slug(text: &str) -> ResourceId {
    ResourceId::new(text).unwrap()
}

fn tenant(number: u128, name: &str) -> Tenant {
    Tenant {
        id: TenantId::from_uuid(Uuid::from_u128(number)),
        slug: slug(name),
        display_name: String::new(),
        labels: Labels::default(),
        meta: Meta::default(),
    }
}

fn secret(number: u8) -> ApiTokenSecret {
    ApiTokenSecret::from_random(&[number; 32])
}

/// A token that expires a day after [`NOW`].
fn token(number: u8, owner: Option<&Tenant>, role: Role) -> ApiToken {
    ApiToken {
        id: ApiTokenId::from_uuid(Uuid::from_u128(number.into())),
        tenant: owner.map(|owner| owner.id),
        slug: slug(&format!("t{number}")),
        description: String::new(),
        role,
        hash: secret(number).hash(),
        hint: secret(number).hint(),
        creator: "alice".to_owned(),
        expires_at: at(NOW) + DAY,
        revoked: None,
        last_used_at: None,
        meta: Meta::default(),
    }
}

fn revoked(token: ApiToken) -> ApiToken {
    ApiToken { revoked: Some(Revocation { at: at(NOW), reason: String::new() }), ..token }
}

fn delta(revision: i64, tenants: &[(Tenant, bool)], tokens: &[ApiToken]) -> ConfigDelta {
    let tenants = tenants.iter().cloned().map(|(value, deleted)| Deletable { value, deleted });
    ConfigDelta {
        revision: Revision(revision),
        tenants: tenants.collect(),
        api_tokens: tokens.to_vec(),
        ..ConfigDelta::default()
    }
}

/// A token of each role, for every tenant and for `shop`, with what each should mean.
pub(super) fn of_every_kind() -> (ApiTokens, Vec<(Caller, HeaderValue)>) {
    let shop = tenant(1000, "shop");
    let mut made = Vec::new();
    let mut credentials = Vec::new();
    for (number, role) in Role::ALL.into_iter().enumerate() {
        for (owner, offset) in [(None, 1), (Some(&shop), 101)] {
            let number = u8::try_from(number).unwrap() + offset;
            let token = token(number, owner, role);
            let name = owner.map(|owner| &owner.slug);
            let (issuer, subject) = (String::new(), ApiToken::name(name, &token.slug));
            let caller = Caller { issuer, subject, role, tenant: name.cloned() };
            credentials.push((caller, bearer(secret(number).reveal())));
            made.push(token);
        }
    }
    let tokens = ApiTokens::default();
    apply(&tokens, Revision::ZERO, &delta(1, &[(shop, false)], &made));
    (tokens, credentials)
}

fn apply(tokens: &ApiTokens, known: Revision, delta: &ConfigDelta) {
    tokens.apply(known, delta, at(NOW));
}

fn check(tokens: &ApiTokens, number: u8, seconds: i64) -> Option<Caller> {
    let authenticator = authenticator_at(seconds).with_api_tokens(tokens.clone());
    match authenticate(&authenticator, &bearer(secret(number).reveal())) {
        Ok(caller) => Some(caller),
        Err(Error::Unauthenticated { message }) => {
            assert!(message.starts_with("no valid credentials"), "{message}");
            None
        }
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_token_proves_its_name_role_and_tenant() {
    let (tokens, credentials) = of_every_kind();
    let authenticator = authenticator().with_api_tokens(tokens);
    for (caller, header) in credentials {
        assert_eq!(authenticate(&authenticator, &header).unwrap(), caller);
    }
}

#[test]
fn a_token_ends_by_the_clock_to_the_microsecond() {
    let tokens = ApiTokens::default();
    apply(&tokens, Revision::ZERO, &delta(1, &[], &[token(1, None, Role::Viewer)]));
    let day = i64::try_from(DAY.as_secs()).unwrap();
    assert!(check(&tokens, 1, NOW).is_some());
    assert!(check(&tokens, 1, NOW + day - 1).is_some());
    assert!(check(&tokens, 1, NOW + day).is_none());
}

#[test]
fn revoked_tokens_and_those_of_deleted_tenants_are_refused() {
    let tokens = ApiTokens::default();
    let (shop, acme) = (tenant(1, "shop"), tenant(2, "acme"));
    let made = [
        token(1, Some(&shop), Role::Viewer),
        token(2, Some(&shop), Role::Viewer),
        token(3, Some(&acme), Role::Viewer),
    ];
    let everything = delta(5, &[(shop.clone(), false), (acme, false)], &made);
    apply(&tokens, Revision::ZERO, &everything);
    apply(&tokens, Revision(5), &delta(6, &[], &[revoked(made[0].clone())]));
    assert_eq!([1, 2, 3].map(|number| check(&tokens, number, NOW).is_some()), [false, true, true]);
    apply(&tokens, Revision(6), &delta(7, &[(shop, true)], &[]));
    assert_eq!([1, 2, 3].map(|number| check(&tokens, number, NOW).is_some()), [false, false, true]);
    // What is older changes nothing, and everything read anew replaces it all.
    apply(&tokens, Revision(4), &delta(5, &[], &made));
    assert!(check(&tokens, 1, NOW).is_none());
    apply(&tokens, Revision::ZERO, &delta(2, &[], &[token(9, None, Role::Viewer)]));
    assert_eq!([3, 9].map(|number| check(&tokens, number, NOW).is_some()), [false, true]);
}

#[test]
fn long_expired_tokens_are_forgotten_and_a_clock_that_jumped_loses_none() {
    let tokens = ApiTokens::default();
    let one = token(1, None, Role::Viewer);
    tokens.apply(Revision::ZERO, &delta(1, &[], std::slice::from_ref(&one)), one.expires_at);
    assert!(check(&tokens, 1, NOW).is_some());
    let two = ApiToken { expires_at: at(NOW) + 3 * DAY, ..token(2, None, Role::Viewer) };
    tokens.apply(Revision(1), &delta(2, &[], &[two]), one.expires_at + DAY);
    assert_eq!([1, 2].map(|number| check(&tokens, number, NOW).is_some()), [false, true]);
    assert_eq!(format!("{tokens:?}"), "ApiTokens(1)");
}

#[test]
fn what_is_no_token_is_refused_like_any_other() {
    let (tokens, _) = of_every_kind();
    let authenticator = authenticator().with_api_tokens(tokens);
    let good = secret(1).reveal().to_owned();
    let signed = key().issue("alice", Role::Admin, None, DAY, at(NOW)).unwrap();
    for bad in [
        secret(99).reveal().to_owned(),
        good.to_uppercase(),
        good[..good.len() - 1].to_owned(),
        format!("{good}0"),
        format!("{good} "),
        format!("tbk_{signed}"),
        "tbk_".to_owned(),
        "tbk_..".to_owned(),
        format!("tbk_{}", "0".repeat(8_000)),
    ] {
        match authenticate(&authenticator, &bearer(&bad)) {
            Err(Error::Unauthenticated { message }) => {
                assert!(message.starts_with("no valid credentials"), "{message}");
                assert!(!message.contains("tbk_"));
            }
            other => panic!("{bad}: {other:?}"),
        }
    }
    assert!(authenticate(&authenticator, &bearer(&signed)).is_ok());
    // Nobody who is signed for can pass as a token.
    for subject in ["apiTokens/t1", "tenants/shop/apiTokens/t1"] {
        assert!(key().issue(subject, Role::Viewer, None, DAY, at(NOW)).is_err());
    }
    assert!(!format!("{authenticator:?}").contains("tbk_"));
}

fn recording(tokens: ApiTokens) -> (AuthLayer, Denials) {
    let mode = AuthMode::Required(authenticator().with_api_tokens(tokens));
    let random = Arc::new(turnbuckle_domain::SeededRandom::from_number(1));
    let ids = turnbuckle_domain::IdGenerator::new(Arc::new(Fixed(at(NOW))), random);
    let denials = Denials::new(Arc::new(Fixed(at(NOW))), ids);
    (AuthLayer::recording(DESCRIPTORS, mode, denials.clone()).unwrap(), denials)
}

/// How many kinds of denials are noted.
fn noted(denials: &Denials) -> usize {
    format!("{denials:?}").trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

#[tokio::test]
async fn a_role_that_is_refused_is_noted_and_strangers_are_not() {
    let (tokens, credentials) = of_every_kind();
    let (layer, denials) = recording(tokens);
    let (path, permission) = methods().swap_remove(0);
    let stranger = bearer(secret(99).reveal());
    for header in [Some(&stranger), None] {
        let headers: Vec<&HeaderValue> = header.into_iter().collect();
        let outcome = send(&layer, &path, &headers).await;
        assert_eq!(outcome, Outcome::Refused(Code::Unauthenticated));
    }
    let mut refused = 0;
    for (caller, header) in &credentials {
        let outcome = send(&layer, &path, &[header]).await;
        refused += usize::from(outcome == Outcome::Refused(Code::PermissionDenied));
        assert_eq!(noted(&denials), refused, "{caller:?}");
    }
    let allowed = Role::ALL.into_iter().filter(|role| role.allows(permission)).count();
    assert_eq!(refused, 2 * (Role::ALL.len() - allowed));
}

#[tokio::test]
async fn a_handler_that_refuses_its_caller_is_noted_and_other_answers_are_not() {
    let (tokens, credentials) = of_every_kind();
    let (layer, denials) = recording(tokens);
    let (_, admin) = credentials.iter().find(|(caller, _)| caller.role == Role::Admin).unwrap();
    for (code, kinds) in [
        (Code::Ok, 0),
        (Code::NotFound, 0),
        (Code::Unauthenticated, 0),
        (Code::PermissionDenied, 1),
        (Code::PermissionDenied, 1),
    ] {
        let service = layer.layer(service_fn(move |_: Request<()>| {
            ready(Ok::<_, Infallible>(Status::new(code, "").into_http::<String>()))
        }));
        let path = "http://localhost/turnbuckle.v1.Endpoints/GetEndpoint";
        let request = Request::post(path).header(AUTHORIZATION, admin).body(()).unwrap();
        service.oneshot(request).await.unwrap();
        assert_eq!(noted(&denials), kinds, "{code:?}");
    }
}

#[test]
fn no_role_gives_what_it_has_not() {
    for role in Role::ALL.into_iter().filter(|role| role.allows(Permission::TokenManage)) {
        assert!(matches!(role, Role::Admin | Role::Operator), "{role:?}");
    }
}

/// A store that tests fill by hand.
#[derive(Default)]
struct Held {
    delta: Mutex<ConfigDelta>,
    noted: Mutex<Vec<Vec<ApiTokenId>>>,
}

#[async_trait]
impl ConfigSource for Held {
    async fn revision(&self) -> Result<Revision, StoreError> {
        Ok(self.delta.lock().unwrap().revision)
    }

    async fn changes_since(&self, known: Revision) -> Result<ConfigDelta, StoreError> {
        let mut delta = self.delta.lock().unwrap().clone();
        // Those without a revision changed just now.
        let is_new = |at: Revision| at > known || at == Revision::ZERO;
        delta.api_tokens.retain(|token| is_new(token.meta.revision));
        Ok(delta)
    }

    async fn position(&self) -> Result<SourcePosition, StoreError> {
        let delta = self.delta.lock().unwrap();
        let at = ConfigPosition { epoch: delta.epoch, revision: delta.revision };
        Ok(SourcePosition { at, is_proven: true })
    }
}

#[async_trait]
impl ApiTokenStore for Held {
    async fn create_api_token(&self, _: ApiToken, _: &ChangeContext) -> Result<ApiToken, Error> {
        Err(Error::PermissionDenied)
    }

    async fn api_token(
        &self,
        _: Option<TenantId>,
        _: &ResourceId,
    ) -> Result<Option<ApiToken>, Error> {
        Ok(None)
    }

    async fn api_tokens(
        &self,
        _: Option<TenantId>,
        _: Option<Timestamp>,
        _: Option<&str>,
        _: u16,
    ) -> Result<Vec<ApiToken>, Error> {
        Ok(Vec::new())
    }

    async fn update_api_token(
        &self,
        _: ApiToken,
        _: Revision,
        _: &ChangeContext,
    ) -> Result<ApiToken, Error> {
        Err(Error::PermissionDenied)
    }

    async fn end_expired_api_token(
        &self,
        _: Timestamp,
        _: &ChangeContext,
    ) -> Result<Option<String>, Error> {
        Ok(None)
    }

    async fn note_api_token_uses(
        &self,
        uses: &[(ApiTokenId, Timestamp)],
    ) -> Result<(), StoreError> {
        let mut ids: Vec<ApiTokenId> = uses.iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        self.noted.lock().unwrap().push(ids);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_takes_tokens_within_a_second_and_tells_writers() {
    let (held, tokens) = (Arc::new(Held::default()), ApiTokens::default());
    *held.delta.lock().unwrap() = delta(1, &[], &[token(1, None, Role::Viewer)]);
    let source =
        ObservedConfig::new(Arc::clone(&held) as _, tokens.clone(), Arc::new(Fixed(at(NOW))));
    let (follower, propagation) = ApiTokenFollower::start(source).await.unwrap();
    assert!(check(&tokens, 1, NOW).is_some(), "known before the first call");
    let stop = tokio_util::sync::CancellationToken::new();
    let following = tokio::spawn(follower.run(stop.clone()));
    *held.delta.lock().unwrap() = delta(2, &[], &[revoked(token(1, None, Role::Viewer))]);
    propagation.applied(Revision(2)).await;
    assert!(check(&tokens, 1, NOW).is_none(), "refused when the writer is answered");
    // Elsewhere nobody gives a hint.
    *held.delta.lock().unwrap() = delta(3, &[], &[token(2, None, Role::Viewer)]);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert!(check(&tokens, 2, NOW).is_some());
    stop.cancel();
    following.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_follower_reads_all_anew_when_another_history_begins_at_whatever_revision() {
    let (held, tokens) = (Arc::new(Held::default()), ApiTokens::default());
    let since = |revision: i64, mut token: ApiToken| {
        token.meta.revision = Revision(revision);
        token
    };
    let epoch = |number: u128| Epoch::from_uuid(Uuid::from_u128(number));
    let both =
        [token(1, None, Role::Viewer), token(2, None, Role::Viewer)].map(|it| since(900, it));
    *held.delta.lock().unwrap() = ConfigDelta { epoch: epoch(1), ..delta(1_000, &[], &both) };
    let source =
        ObservedConfig::new(Arc::clone(&held) as _, tokens.clone(), Arc::new(Fixed(at(NOW))));
    let (follower, _propagation) = ApiTokenFollower::start(source).await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let following = tokio::spawn(follower.run(stop.clone()));
    // Set back to 990, and on to 1010 by others: one token was revoked and another made below 1000.
    let present = [
        since(995, revoked(token(1, None, Role::Viewer))),
        since(900, token(2, None, Role::Viewer)),
        since(996, token(3, None, Role::Viewer)),
    ];
    *held.delta.lock().unwrap() = ConfigDelta { epoch: epoch(2), ..delta(1_010, &[], &present) };
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert!(check(&tokens, 1, NOW).is_none(), "revoked in the history that counts");
    assert!(check(&tokens, 2, NOW).is_some() && check(&tokens, 3, NOW).is_some());
    stop.cancel();
    following.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn another_history_of_the_store_is_read_anew_though_its_revision_is_higher() {
    let (held, tokens) = (Arc::new(Held::default()), ApiTokens::default());
    let both = [token(1, None, Role::Viewer), token(2, None, Role::Viewer)];
    *held.delta.lock().unwrap() = delta(1_000, &[], &both);
    let source =
        ObservedConfig::new(Arc::clone(&held) as _, tokens.clone(), Arc::new(Fixed(at(NOW))));
    let (follower, _propagation) = ApiTokenFollower::start(source).await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let following = tokio::spawn(follower.run(stop.clone()));
    // It was set back, went on, and is past what was known: the first token was revoked on the way.
    let epoch = Epoch::from_uuid(Uuid::from_u128(7));
    *held.delta.lock().unwrap() = ConfigDelta { epoch, ..delta(1_010, &[], &both[1..]) };
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert!(check(&tokens, 1, NOW).is_none() && check(&tokens, 2, NOW).is_some());
    stop.cancel();
    following.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn uses_are_told_soon_then_once_a_minute_and_at_the_end() {
    let (held, tokens) = (Arc::new(Held::default()), ApiTokens::default());
    let made = [token(1, None, Role::Viewer), token(2, None, Role::Viewer)];
    apply(&tokens, Revision::ZERO, &delta(1, &[], &made));
    let stop = tokio_util::sync::CancellationToken::new();
    let uses = ApiTokenUses::new(tokens.clone(), Arc::clone(&held) as _);
    let noting = tokio::spawn(uses.run(stop.clone()));
    assert!(check(&tokens, 1, NOW).is_some());
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(*held.noted.lock().unwrap(), [vec![made[0].id]]);
    // Busy for a minute: one more write. A change of the token forgets no use.
    for second in 1..=60 {
        assert!(check(&tokens, 1, NOW + second).is_some());
        apply(&tokens, Revision(second), &delta(second + 1, &[], &made[..1]));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(held.noted.lock().unwrap().len(), 2);
    assert!(check(&tokens, 2, NOW + 70).is_some());
    stop.cancel();
    noting.await.unwrap();
    let noted = held.noted.lock().unwrap();
    assert_eq!(noted.len(), 3);
    assert!(noted[2].contains(&made[1].id), "{noted:?}");
}
