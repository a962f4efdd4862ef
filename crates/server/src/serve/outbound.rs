//! Documents of others: keys of issuers and of senders. Through the egress guard, as everything that
//! leaves.

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
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, timeout_at};
use turnbuckle_delivery::egress::{EgressGuard, Target};
use turnbuckle_domain::{DocumentFetch, FetchFault, FetchedDocument};

/// Room for the answer's head; servers behind several proxies stay below a tenth of it.
const HEAD_MAX: usize = 64 * 1024;

/// Who asks.
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("turnbuckle/", env!("CARGO_PKG_VERSION")));

/// A document to be fetched.
pub(super) struct Question<'a> {
    pub(super) url: &'a str,
    pub(super) accept: HeaderValue,
    pub(super) authorization: Option<HeaderValue>,
    /// Most bytes read.
    pub(super) most: usize,
    pub(super) deadline: Instant,
}

/// What came back with 200.
pub(super) struct Document {
    pub(super) body: Vec<u8>,
    pub(super) cache_control: Option<String>,
}

/// It answered, and with no document.
#[derive(Debug)]
struct OtherStatus(StatusCode);

impl std::fmt::Display for OtherStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the answer is {}", self.0)
    }
}

impl std::error::Error for OtherStatus {}

/// Fetches a document over a connection that the guard opens. One connection for one answer: there are
/// minutes between them.
pub(super) async fn get(guard: &EgressGuard, question: Question<'_>) -> anyhow::Result<Document> {
    // Judged each time: addresses behind a name change.
    let target = guard.check_url(question.url)?;
    let stream = guard.connect(&target, question.deadline).await?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_MAX)
        .handshake(TokioIo::new(stream))
        .await
        .context("no HTTP")?;
    let exchange = async {
        let answer =
            sender.send_request(request(&target, &question)?).await.context("no answer")?;
        read(answer, question.most).await
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

fn request(target: &Target, question: &Question<'_>) -> anyhow::Result<Request<Empty<Bytes>>> {
    let mut get = Request::get(target.uri()).body(Empty::new())?;
    let headers = get.headers_mut();
    headers.insert(HOST, target.host_header().clone());
    headers.insert(ACCEPT, question.accept.clone());
    headers.insert(USER_AGENT, AGENT);
    headers.extend(question.authorization.clone().map(|value| (AUTHORIZATION, value)));
    Ok(get)
}

async fn read(
    answer: http::Response<hyper::body::Incoming>,
    most: usize,
) -> anyhow::Result<Document> {
    // A redirect would lead past what was judged.
    if answer.status() != StatusCode::OK {
        return Err(OtherStatus(answer.status()).into());
    }
    let cache_control = answer.headers().get(CACHE_CONTROL);
    let cache_control = cache_control.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = Limited::new(answer.into_body(), most).collect().await;
    let body = body.map_err(|error| anyhow::anyhow!("its body cannot be read: {error}"))?;
    Ok(Document { body: body.to_bytes().into(), cache_control })
}

/// Fetches what the ingress needs of senders.
pub(super) struct GuardedDocuments(pub(super) Arc<EgressGuard>);

#[async_trait]
impl DocumentFetch for GuardedDocuments {
    async fn fetch(
        &self,
        url: &str,
        max_bytes: usize,
        timeout: Duration,
    ) -> Result<FetchedDocument, FetchFault> {
        self.0.check_url(url).map_err(|refusal| FetchFault::Address(refusal.to_string()))?;
        let deadline = Instant::now() + timeout;
        let question = Question {
            url,
            accept: HeaderValue::from_static("*/*"),
            authorization: None,
            most: max_bytes,
            deadline,
        };
        let answer = timeout_at(deadline, get(&self.0, question)).await;
        let answer = answer.map_err(|_| {
            FetchFault::Unreachable(format!("no answer came within {} s", timeout.as_secs()))
        })?;
        match answer {
            Ok(document) => {
                let max_age = document.cache_control.as_deref().and_then(max_age);
                Ok(FetchedDocument { body: document.body, max_age })
            }
            Err(error) => match error.downcast_ref::<OtherStatus>() {
                Some(OtherStatus(status)) if status.is_server_error() => {
                    Err(FetchFault::Unreachable(error.to_string()))
                }
                Some(_) => Err(FetchFault::Answer(error.to_string())),
                None => Err(FetchFault::Unreachable(format!("{error:#}"))),
            },
        }
    }
}

/// How long an answer may be used, as it says itself.
fn max_age(cache_control: &str) -> Option<Duration> {
    let mut directives = cache_control.split(',').map(|part| part.trim().to_ascii_lowercase());
    let age = directives.find_map(|part| part.strip_prefix("max-age=")?.parse().ok());
    age.map(Duration::from_secs)
}
