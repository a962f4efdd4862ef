//! API tokens on the wire.

use super::{
    etag, finish,
    mask::{Fields, Mask},
    new_id, page, single,
    value::{self, WireMeta},
};
use crate::{
    api_token::{
        ApiTokenView, CreateApiToken, CreatedApiToken, Expiry, ListApiTokens, RevokeApiToken,
        TokenOwner, UpdateApiToken,
    },
    names::{ApiTokenName, TenantName},
    page::Page,
};
use turnbuckle_domain::{
    ApiTokenState, Error, Role, Timestamp, Violations,
    api_token_limits::{TTL_MAX, TTL_MIN},
};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::{from_timestamp, timestamp};

/// Where the description stands in requests.
const DESCRIPTION: &str = "api_token.description";
/// Where the expiry stands in requests.
const EXPIRE_TIME: &str = "api_token.expire_time";
/// Where the life of a new token stands.
const TTL: &str = "api_token.ttl";

pub(crate) fn create(request: v1::CreateApiTokenRequest) -> Result<CreateApiToken, Error> {
    let mut violations = Violations::new();
    let token = request.api_token.unwrap_or_default();
    let owner = new_owner(&mut violations, &request.parent, request.every_tenant);
    let slug = new_id(&mut violations, "api_token_id", request.api_token_id);
    let description = violations.take(DESCRIPTION, value::description(token.description));
    let role = violations.take("api_token.role", role(&token.role));
    let expiry = expiry(&mut violations, token.expire_time.as_ref(), token.ttl.as_ref());
    let command = || {
        Some(CreateApiToken {
            owner: owner?,
            slug: slug?,
            description: description?,
            role: role?,
            expiry: expiry?,
        })
    };
    finish(violations, command())
}

/// A forgotten parent must not make the most powerful kind of token.
fn new_owner(violations: &mut Violations, parent: &str, every_tenant: bool) -> Option<TokenOwner> {
    match (parent, every_tenant) {
        ("", true) => Some(TokenOwner::Platform),
        ("", false) => {
            violations.add(
                "parent",
                "is required; for a token for every tenant leave it empty and set every_tenant",
            );
            None
        }
        (_, true) => {
            violations.add("every_tenant", "is set, but parent names a tenant; use one of them");
            None
        }
        (tenant, false) => {
            let tenant = violations.take("parent", TenantName::parse(tenant))?;
            Some(TokenOwner::of(Some(tenant)))
        }
    }
}

/// Whose tokens to list.
fn owner(violations: &mut Violations, parent: &str) -> Option<TokenOwner> {
    if parent.is_empty() {
        return Some(TokenOwner::Platform);
    }
    violations.take("parent", TenantName::parse(parent)).map(|name| TokenOwner::of(Some(name)))
}

fn role(text: &str) -> Result<Role, String> {
    let known = || Role::ALL.map(Role::as_str).join(", ");
    match text {
        "" => Err(format!("is required; use one of {}", known())),
        text => Role::parse(text).ok_or_else(|| format!("is no role; use one of {}", known())),
    }
}

fn expiry(
    violations: &mut Violations,
    at: Option<&prost_types::Timestamp>,
    ttl: Option<&prost_types::Duration>,
) -> Option<Expiry> {
    match (at, ttl) {
        (None, None) => Some(Expiry::Default),
        (Some(at), None) => time(violations, at).map(Expiry::At),
        (None, Some(ttl)) => {
            violations.take(TTL, value::duration(ttl, TTL_MIN..=TTL_MAX)).map(Expiry::After)
        }
        (Some(_), Some(_)) => {
            violations.add(TTL, "is set beside expire_time; use one of them");
            None
        }
    }
}

fn time(violations: &mut Violations, given: &prost_types::Timestamp) -> Option<Timestamp> {
    violations.take(EXPIRE_TIME, from_timestamp(given).ok_or("is no point in time"))
}

pub(crate) fn get(request: v1::GetApiTokenRequest) -> Result<ApiTokenName, Error> {
    single("name", ApiTokenName::parse(&request.name))
}

pub(crate) fn list(request: v1::ListApiTokensRequest) -> Result<ListApiTokens, Error> {
    let mut violations = Violations::new();
    let owner = owner(&mut violations, &request.parent);
    let ended_too = request.show_ended;
    let scope = format!("{}/apiTokens\n{ended_too}", request.parent);
    let page = page(&mut violations, scope, request.page_size, &request.page_token);
    let command = || Some(ListApiTokens { owner: owner?, ended_too, page: page? });
    finish(violations, command())
}

pub(crate) fn update(request: v1::UpdateApiTokenRequest) -> Result<UpdateApiToken, Error> {
    let mut violations = Violations::new();
    let Some(token) = request.api_token else {
        return Err(Error::invalid("api_token", "is required"));
    };
    let fields = Fields {
        changeable: &[
            ("description", !token.description.is_empty()),
            ("expire_time", token.expire_time.is_some()),
        ],
        output_only: &[
            "state",
            "hint",
            "creator",
            "last_use_time",
            "revoke_time",
            "revoke_reason",
            "secret",
        ],
        fixed: &["role", "ttl"],
    };
    let mask = Mask::read(request.update_mask, &fields, &mut violations);
    let name = violations.take("api_token.name", ApiTokenName::parse(&token.name));
    let etag = etag(&mut violations, "api_token.etag", &token.etag);
    if token.ttl.is_some() {
        violations.add(TTL, "is for new tokens only; set expire_time");
    }
    let description = mask
        .has("description")
        .then(|| violations.take(DESCRIPTION, value::description(token.description)))
        .flatten();
    // No time in a mask of everything keeps what there is: a token always expires.
    let expires_at = token
        .expire_time
        .as_ref()
        .filter(|_| mask.has("expire_time"))
        .and_then(|at| time(&mut violations, at));
    finish(violations, name.map(|name| UpdateApiToken { name, etag, description, expires_at }))
}

pub(crate) fn revoke(request: v1::RevokeApiTokenRequest) -> Result<RevokeApiToken, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", ApiTokenName::parse(&request.name));
    let etag = etag(&mut violations, "etag", &request.etag);
    let reason = violations.take("reason", value::reason(request.reason));
    let command = || Some(RevokeApiToken { name: name?, etag, reason: reason? });
    finish(violations, command())
}

const fn wire_state(state: ApiTokenState) -> v1::ApiTokenState {
    match state {
        ApiTokenState::Active => v1::ApiTokenState::Active,
        ApiTokenState::Expired => v1::ApiTokenState::Expired,
        ApiTokenState::Revoked => v1::ApiTokenState::Revoked,
    }
}

pub(crate) fn message(view: &ApiTokenView) -> v1::ApiToken {
    let token = &view.token;
    let meta = WireMeta::from(&token.meta);
    let revoked = token.revoked.as_ref();
    v1::ApiToken {
        name: view.name.to_string(),
        uid: value::uid(&token.meta, token.id),
        description: token.description.clone(),
        role: token.role.as_str().to_owned(),
        expire_time: Some(timestamp(token.expires_at)),
        ttl: None,
        state: wire_state(view.state).into(),
        hint: token.hint.clone(),
        creator: token.creator.clone(),
        last_use_time: token.last_used_at.map(timestamp),
        revoke_time: revoked.map(|revoked| timestamp(revoked.at)),
        revoke_reason: revoked.map(|revoked| revoked.reason.clone()).unwrap_or_default(),
        create_time: meta.create_time,
        update_time: meta.update_time,
        etag: meta.etag,
        revision: meta.revision,
        secret: String::new(),
    }
}

/// A new token with its secret, which is shown here and never again.
pub(crate) fn created(created: &CreatedApiToken) -> v1::ApiToken {
    let mut message = message(&created.view);
    if let Some(secret) = &created.secret {
        secret.reveal().clone_into(&mut message.secret);
    }
    message
}

pub(crate) fn messages(page: &Page<ApiTokenView>) -> v1::ListApiTokensResponse {
    let (api_tokens, next_page_token) =
        super::page::messages(page, |view| view.token.slug.as_str(), message);
    v1::ListApiTokensResponse { api_tokens, next_page_token }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(parent: &str, token: v1::ApiToken) -> v1::CreateApiTokenRequest {
        let parent = parent.to_owned();
        v1::CreateApiTokenRequest { parent, api_token: Some(token), ..Default::default() }
    }

    fn publisher() -> v1::ApiToken {
        v1::ApiToken { role: "publisher".to_owned(), ..Default::default() }
    }

    #[test]
    fn a_token_for_every_tenant_must_be_meant() {
        let error = create(request("", publisher())).unwrap_err().to_string();
        assert!(error.contains("parent: is required"), "{error}");
        let meant = v1::CreateApiTokenRequest { every_tenant: true, ..request("", publisher()) };
        assert_eq!(create(meant).unwrap().owner, TokenOwner::Platform);
        let both =
            v1::CreateApiTokenRequest { every_tenant: true, ..request("tenants/a", publisher()) };
        assert!(create(both).unwrap_err().to_string().contains("every_tenant: is set"));
        let own = create(request("tenants/a", publisher())).unwrap();
        assert!(matches!(own.owner, TokenOwner::Tenant(slug) if slug.as_str() == "a"));
    }

    #[test]
    fn everything_wrong_is_told_at_once() {
        let token = v1::ApiToken {
            role: "root".to_owned(),
            description: "a\0".to_owned(),
            ttl: Some(prost_types::Duration { seconds: 59, nanos: 0 }),
            ..Default::default()
        };
        let wrong = v1::CreateApiTokenRequest {
            api_token_id: "A".to_owned(),
            ..request("tenants/A", token)
        };
        let error = create(wrong).unwrap_err().to_string();
        for field in ["parent: ", "api_token_id: ", "role: is no role", "description: ", "ttl: "] {
            assert!(error.contains(field), "{error}");
        }
        let time = prost_types::Timestamp { seconds: 4_000_000_000, nanos: 0 };
        let ttl = prost_types::Duration { seconds: 600, nanos: 0 };
        let both = v1::ApiToken { expire_time: Some(time), ttl: Some(ttl), ..publisher() };
        let error = create(request("tenants/a", both)).unwrap_err().to_string();
        assert!(error.contains("ttl: is set beside expire_time"), "{error}");
        assert!(create(request("tenants/a", v1::ApiToken::default())).is_err());
    }

    #[test]
    fn an_update_takes_no_role_and_no_ttl() {
        let update_of = |paths: &[&str], token: v1::ApiToken| {
            update(v1::UpdateApiTokenRequest {
                api_token: Some(v1::ApiToken {
                    name: "tenants/a/apiTokens/ci".to_owned(),
                    ..token
                }),
                update_mask: Some(prost_types::FieldMask {
                    paths: paths.iter().map(|path| (*path).to_owned()).collect(),
                }),
                ..Default::default()
            })
        };
        let error = update_of(&["role"], publisher()).unwrap_err().to_string();
        assert!(error.contains("fixed once created"), "{error}");
        let ttl = Some(prost_types::Duration { seconds: 600, nanos: 0 });
        assert!(update_of(&[], v1::ApiToken { ttl, ..Default::default() }).is_err());
        let all = update_of(&["*"], v1::ApiToken::default()).unwrap();
        assert_eq!((all.description.as_deref(), all.expires_at), (Some(""), None));
    }
}
