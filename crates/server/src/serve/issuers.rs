//! Whose tokens the process takes, and how it gets their keys: through the egress guard, as
//! everything that leaves.

use super::ServeArgs;
use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use http::{
    Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, HOST, HeaderValue, USER_AGENT},
};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tokio::time::Instant;
use turnbuckle_delivery::egress::{EgressGuard, Target};
use turnbuckle_domain::Clock;
use turnbuckle_runtime::{
    Supervisor,
    auth::{
        AuthConfig, Authenticator, JWKS_FETCH_TIMEOUT, JWKS_SIZE_MAX, JwksAnswer, JwksFetch,
        JwksFetchError, JwksRefresher, JwksRequest, TokenKey,
    },
    supervisor::OnExit,
};

/// Room for the answer's head; issuers behind several proxies stay below a tenth of it.
const HEAD_MAX: usize = 64 * 1024;

/// Who asks.
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("turnbuckle/", env!("CARGO_PKG_VERSION")));

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

/// Fetches keys over connections that the guard opens. One connection for one answer: there are
/// minutes between them.
struct GuardedFetch(Arc<EgressGuard>);

#[async_trait]
impl JwksFetch for GuardedFetch {
    async fn fetch(&self, request: JwksRequest) -> Result<JwksAnswer, JwksFetchError> {
        self.get(&request).await.map_err(|error| JwksFetchError(format!("{error:#}")))
    }
}

impl GuardedFetch {
    async fn get(&self, request: &JwksRequest) -> anyhow::Result<JwksAnswer> {
        // Judged each time: addresses behind a name change.
        let target = self.0.check_url(&request.url)?;
        let stream = self.0.connect(&target, Instant::now() + JWKS_FETCH_TIMEOUT).await?;
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD_MAX)
            .handshake(TokioIo::new(stream))
            .await
            .context("no HTTP")?;
        let exchange = async {
            let answer = sender.send_request(get(&target, request)?).await.context("no answer")?;
            read(answer).await
        };
        tokio::pin!(exchange);
        // Driven here, so that giving up closes the connection.
        tokio::select! {
            biased;
            answer = &mut exchange => answer,
            ended = connection => {
                ended.context("the connection broke")?;
                exchange.await
            }
        }
    }
}

fn get(target: &Target, request: &JwksRequest) -> anyhow::Result<Request<Empty<Bytes>>> {
    let mut get = Request::get(target.uri()).body(Empty::new())?;
    let headers = get.headers_mut();
    headers.insert(HOST, target.host_header().clone());
    headers.insert(ACCEPT, HeaderValue::from_static("application/jwk-set+json, application/json"));
    headers.insert(USER_AGENT, AGENT);
    headers.extend(request.authorization.clone().map(|value| (AUTHORIZATION, value)));
    Ok(get)
}

async fn read(answer: http::Response<hyper::body::Incoming>) -> anyhow::Result<JwksAnswer> {
    // A redirect would lead past what the operator wrote down.
    anyhow::ensure!(answer.status() == StatusCode::OK, "the answer is {}", answer.status());
    let cache_control = answer.headers().get(CACHE_CONTROL);
    let cache_control = cache_control.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = Limited::new(answer.into_body(), JWKS_SIZE_MAX).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!("its body cannot be read: {error}"))?;
    Ok(JwksAnswer { body: body.to_bytes().into(), cache_control })
}

#[cfg(test)]
mod tests;
