//! Use cases of API tokens.

use crate::{
    Dependencies,
    by::By,
    names::{ApiTokenName, TenantName},
    page::{Page, PageRequest},
    repeat::gone,
    write::Change,
};
use std::sync::Arc;
use turnbuckle_domain::{
    ApiToken, ApiTokenId, ApiTokenSecret, ApiTokenState, Caller, Error, Made, ResourceId, Revision,
    Revocation, Role, TenantId, Timestamp,
};
use zeroize::Zeroizing;

/// Whose tokens are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenOwner {
    /// Those of one tenant.
    Tenant(ResourceId),
    /// Those for every tenant.
    Platform,
}

impl TokenOwner {
    pub(crate) fn of(tenant: Option<TenantName>) -> Self {
        tenant.map_or(Self::Platform, |name| Self::Tenant(name.0))
    }
}

/// A token with the name of its tenant and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiTokenView {
    pub(crate) name: ApiTokenName,
    pub(crate) token: ApiToken,
    pub(crate) state: ApiTokenState,
}

/// A fresh token; no secret when it was only validated, or made by an earlier call.
pub(crate) struct CreatedApiToken {
    pub(crate) view: ApiTokenView,
    pub(crate) secret: Option<ApiTokenSecret>,
}

/// When a new token expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// By default.
    Default,
    /// At a time.
    At(Timestamp),
    /// After a while.
    After(std::time::Duration),
}

/// A token to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreateApiToken {
    pub(crate) owner: TokenOwner,
    pub(crate) slug: Option<ResourceId>,
    pub(crate) description: String,
    pub(crate) role: Role,
    pub(crate) expiry: Expiry,
}

/// Which tokens to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListApiTokens {
    pub(crate) owner: TokenOwner,
    pub(crate) ended_too: bool,
    pub(crate) page: PageRequest,
}

/// New values of a token's fields; none keeps the old one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpdateApiToken {
    pub(crate) name: ApiTokenName,
    pub(crate) etag: Option<Revision>,
    pub(crate) description: Option<String>,
    pub(crate) expires_at: Option<Timestamp>,
}

impl UpdateApiToken {
    fn apply(&self, token: &mut ApiToken) -> Result<(), Error> {
        if let Some(description) = &self.description {
            token.description.clone_from(description);
        }
        match self.expires_at.map(|at| token.shorten(at)) {
            Some(Err(problem)) => Err(Error::invalid(EXPIRE_TIME, problem)),
            Some(Ok(())) | None => Ok(()),
        }
    }
}

/// A token to be revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RevokeApiToken {
    pub(crate) name: ApiTokenName,
    pub(crate) etag: Option<Revision>,
    pub(crate) reason: String,
}

/// Where an expiry stands in requests.
const EXPIRE_TIME: &str = "api_token.expire_time";

/// What can be done with API tokens.
pub(crate) struct ApiTokens(pub(crate) Arc<Dependencies>);

impl ApiTokens {
    pub(crate) async fn create(
        &self,
        by: &By,
        command: &CreateApiToken,
    ) -> Result<CreatedApiToken, Error> {
        let tenant = self.enter(&by.caller, &command.owner).await?;
        // Nobody gives what they do not have.
        if !by.caller.role.covers(command.role) {
            return Err(Error::PermissionDenied);
        }
        let again = |made| self.made(tenant, command, made);
        self.0.once(by, tenant, self.make(by, tenant, command), again).await
    }

    async fn make(
        &self,
        by: &By,
        tenant: Option<TenantId>,
        command: &CreateApiToken,
    ) -> Result<CreatedApiToken, Error> {
        let secret = fresh_secret()?;
        let token = self.draft(by, tenant, command, &secret).await?;
        let name = ApiTokenName::of(&command.owner, token.slug.clone());
        let write = self.0.store.create_api_token(token, &by.change);
        let mut token = self.0.create(by, &name.to_string(), write).await?;
        let secret = (!by.validates_only()).then_some(secret);
        if secret.is_none() {
            // There is no secret to be told by it.
            token.hint.clear();
        }
        Ok(CreatedApiToken { view: self.view(name, token), secret })
    }

    /// Names are never given again, so the name leads to the token that was made. Its secret is known
    /// to nobody who did not see the first answer: only its hash is kept.
    async fn made(
        &self,
        tenant: Option<TenantId>,
        command: &CreateApiToken,
        made: Made,
    ) -> Result<CreatedApiToken, Error> {
        let slug = match &command.slug {
            Some(slug) => slug.clone(),
            None => own_slug(ApiTokenId::from_uuid(made.id))?,
        };
        let name = ApiTokenName::of(&command.owner, slug);
        let found = self.0.store.api_token(tenant, &name.id).await?;
        let token = found.filter(|found| found.id.uuid() == made.id).ok_or_else(gone(&name))?;
        self.0.propagation.applied(token.meta.revision).await;
        Ok(CreatedApiToken { view: self.view(name, token), secret: None })
    }

    pub(crate) async fn get(
        &self,
        caller: &Caller,
        name: &ApiTokenName,
    ) -> Result<ApiTokenView, Error> {
        let token = self.read(caller, name).await?;
        Ok(self.view(name.clone(), token))
    }

    pub(crate) async fn list(
        &self,
        caller: &Caller,
        command: &ListApiTokens,
    ) -> Result<Page<ApiTokenView>, Error> {
        let tenant = self.enter(caller, &command.owner).await?;
        let after = command.page.after.as_deref();
        let valid_at = (!command.ended_too).then(|| self.0.clock.now());
        let rows = self.0.store.api_tokens(tenant, valid_at, after, command.page.fetch()).await?;
        let view = |token: ApiToken| {
            Some(self.view(ApiTokenName::of(&command.owner, token.slug.clone()), token))
        };
        Ok(command.page.cut(rows, |row| row.slug.as_str()).filter_map(view))
    }

    pub(crate) async fn update(
        &self,
        by: &By,
        command: &UpdateApiToken,
    ) -> Result<ApiTokenView, Error> {
        self.change(by, &command.name, command.etag, |token| command.apply(token)).await
    }

    /// Revoking what is revoked changes nothing, its reason included.
    pub(crate) async fn revoke(
        &self,
        by: &By,
        command: &RevokeApiToken,
    ) -> Result<ApiTokenView, Error> {
        let revoke = |token: &mut ApiToken| {
            let reason = command.reason.clone();
            token.revoked.get_or_insert_with(|| Revocation { at: self.0.clock.now(), reason });
            Ok(())
        };
        self.change(by, &command.name, command.etag, revoke).await
    }

    async fn change(
        &self,
        by: &By,
        name: &ApiTokenName,
        etag: Option<Revision>,
        modify: impl Fn(&mut ApiToken) -> Result<(), Error> + Send + Sync,
    ) -> Result<ApiTokenView, Error> {
        let change = Change { resource: &name.to_string(), etag };
        let write = |token, seen| self.0.store.update_api_token(token, seen, &by.change);
        let read = || self.read(&by.caller, name);
        let token = self.0.update(by, &change, read, modify, write).await?;
        Ok(self.view(name.clone(), token))
    }

    async fn draft(
        &self,
        by: &By,
        tenant: Option<TenantId>,
        command: &CreateApiToken,
        secret: &ApiTokenSecret,
    ) -> Result<ApiToken, Error> {
        let meta = self.0.fresh_meta();
        let now = meta.created_at;
        let (field, wanted) = match command.expiry {
            Expiry::Default => (EXPIRE_TIME, None),
            Expiry::At(at) => (EXPIRE_TIME, Some(at)),
            Expiry::After(ttl) => ("api_token.ttl", Some(now + ttl)),
        };
        let maker_expires_at = self.maker_expiry(&by.caller).await?;
        let expires_at = ApiToken::expiry(now, wanted, maker_expires_at)
            .map_err(|problem| Error::invalid(field, problem))?;
        let id = ApiTokenId::from_uuid(self.0.ids.uuid());
        let slug = match &command.slug {
            Some(slug) => slug.clone(),
            None => own_slug(id)?,
        };
        Ok(ApiToken {
            id,
            tenant,
            slug,
            description: command.description.clone(),
            role: command.role,
            hash: secret.hash(),
            hint: secret.hint(),
            creator: by.caller.subject.clone(),
            expires_at,
            revoked: None,
            last_used_at: None,
            meta,
        })
    }

    /// When the caller's own token expires, if that is an API token: who steals one must not be able to
    /// stay beyond it.
    async fn maker_expiry(&self, caller: &Caller) -> Result<Option<Timestamp>, Error> {
        if !ApiToken::is_name(&caller.subject) {
            return Ok(None);
        }
        let own = ApiTokenName::parse(&caller.subject).map_err(Error::internal)?;
        let token = self.read(caller, &own).await?;
        match token.state(self.0.clock.now()) {
            ApiTokenState::Active => Ok(Some(token.expires_at)),
            // It ended while the call was under way, or this process does not know it yet.
            ApiTokenState::Expired | ApiTokenState::Revoked => Err(Error::PermissionDenied),
        }
    }

    /// Lets the caller in where the tokens are. Those for every tenant are for callers that are bound
    /// to none.
    async fn enter(&self, caller: &Caller, owner: &TokenOwner) -> Result<Option<TenantId>, Error> {
        match owner {
            TokenOwner::Tenant(slug) => Ok(Some(self.0.enter(caller, slug).await?.id)),
            TokenOwner::Platform => caller.enter_platform().map(|()| None),
        }
    }

    async fn read(&self, caller: &Caller, name: &ApiTokenName) -> Result<ApiToken, Error> {
        let tenant = self.enter(caller, &name.owner()).await?;
        let found = self.0.store.api_token(tenant, &name.id).await?;
        found.ok_or_else(|| Error::NotFound { resource: name.to_string() })
    }

    fn view(&self, name: ApiTokenName, token: ApiToken) -> ApiTokenView {
        let state = token.state(self.0.clock.now());
        ApiTokenView { name, token, state }
    }
}

/// The name of a token that was given none.
fn own_slug(id: ApiTokenId) -> Result<ResourceId, Error> {
    ResourceId::new(id.to_string()).map_err(Error::internal)
}

/// A token of the operating system's randomness.
fn fresh_secret() -> Result<ApiTokenSecret, Error> {
    let mut random = Zeroizing::new([0; 32]);
    getrandom::fill(random.as_mut_slice()).map_err(Error::internal)?;
    Ok(ApiTokenSecret::from_random(&random))
}
