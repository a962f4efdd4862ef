//! Whose tokens the process takes, and how it gets their keys: through the egress guard, as
//! everything that leaves.

use super::{
    ServeArgs,
    outbound::{self, Question},
};
use anyhow::Context as _;
use async_trait::async_trait;
use http::header::HeaderValue;
use std::sync::Arc;
use tokio::time::Instant;
use turnbuckle_delivery::egress::EgressGuard;
use turnbuckle_domain::Clock;
use turnbuckle_runtime::{
    Supervisor,
    auth::{
        AuthConfig, Authenticator, JWKS_FETCH_TIMEOUT, JWKS_SIZE_MAX, JwksAnswer, JwksFetch,
        JwksFetchError, JwksRefresher, JwksRequest, TokenKey,
    },
    supervisor::OnExit,
};

/// Makes what checks tokens, and the tasks that keep its keys current.
///
/// # Errors
/// When the configuration or a key file is not as it must be, or the guard refuses an address.
pub(super) fn open(
    args: &ServeArgs,
    token_key: Option<TokenKey>,
    guard: &Arc<EgressGuard>,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<(Authenticator, Vec<JwksRefresher>)> {
    let Some(path) = &args.auth_config else {
        let key = token_key.context("without --auth-config there is a token key")?;
        return Ok((Authenticator::new(key, Arc::clone(clock)), Vec::new()));
    };
    let place = || format!("--auth-config {}", path.display());
    let config = AuthConfig::load(path).with_context(place)?;
    for address in config.addresses() {
        guard.check_url(address).with_context(|| {
            format!("{}: {address}: open it with --allow-egress and --allow-egress-host", place())
        })?;
    }
    let fetch: Arc<dyn JwksFetch> = Arc::new(GuardedFetch(Arc::clone(guard)));
    tracing::info!(issuers = %config, own_tokens = token_key.is_some(), "tokens are taken of these");
    Authenticator::with_issuers(config, token_key, &fetch, Arc::clone(clock)).with_context(place)
}

/// Starts the tasks that keep keys current.
pub(super) fn spawn(supervisor: &Supervisor, refreshers: Vec<JwksRefresher>) {
    for refresher in refreshers {
        supervisor.spawn("jwks", OnExit::StopProcess, refresher.run(supervisor.shutdown()));
    }
}

/// Fetches keys of issuers through the guard.
struct GuardedFetch(Arc<EgressGuard>);

#[async_trait]
impl JwksFetch for GuardedFetch {
    async fn fetch(&self, request: JwksRequest) -> Result<JwksAnswer, JwksFetchError> {
        self.get(&request).await.map_err(|error| JwksFetchError(format!("{error:#}")))
    }
}

impl GuardedFetch {
    async fn get(&self, request: &JwksRequest) -> anyhow::Result<JwksAnswer> {
        let question = Question {
            url: &request.url,
            accept: HeaderValue::from_static("application/jwk-set+json, application/json"),
            authorization: request.authorization.clone(),
            most: JWKS_SIZE_MAX,
            deadline: Instant::now() + JWKS_FETCH_TIMEOUT,
        };
        let answer = outbound::get(&self.0, question).await?;
        Ok(JwksAnswer { body: answer.body, cache_control: answer.cache_control })
    }
}

#[cfg(test)]
mod tests;
