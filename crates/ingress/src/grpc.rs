//! The SourceTests service: decode, use case, encode.

use crate::{
    config::SourceHandle,
    pipeline::{Captured, Pipeline, Trial, TrialOrder, TrialOutcome, TrialStep},
    plane::IngressPlane,
};
use std::{sync::Arc, time::Duration};
use tokio::sync::Semaphore;
use tonic::{Request, Response, Status};
use turnbuckle_domain::{Caller, Error, KeyId, ResourceId, source_limits};
use turnbuckle_proto::v1::{
    self,
    source_tests_server::{SourceTests, SourceTestsServer},
};
use turnbuckle_runtime::grpc::{caller, status};

/// Tests at once: each holds a body.
const TESTS_MAX: usize = 16;
/// When another may be tried.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The largest body with its headers and framing.
const MESSAGE_BYTES: usize =
    source_limits::BODY_BYTES_MAX as usize + source_limits::HEADER_BYTES_MAX as usize + 64 * 1024;

struct Service {
    pipeline: Arc<Pipeline>,
    sources: SourceHandle,
    slots: Semaphore,
}

impl IngressPlane {
    /// The SourceTests service.
    #[must_use]
    pub fn source_tests_service(&self) -> SourceTestsServer<impl SourceTests + use<>> {
        let service = Service {
            pipeline: self.pipeline(),
            sources: self.sources(),
            slots: Semaphore::new(TESTS_MAX),
        };
        SourceTestsServer::new(service).max_decoding_message_size(MESSAGE_BYTES)
    }
}

impl Service {
    async fn test(
        &self,
        caller: &Caller,
        request: v1::TestSourceRequest,
    ) -> Result<v1::TestSourceResponse, Error> {
        let name = request.name.clone();
        let (tenant, slug) = source_name(&name)?;
        // Permission comes first: whether a source of another tenant exists is not told.
        caller.enter(&tenant)?;
        let order = order(&name, request)?;
        let index = self.sources.load();
        let entry = index.by_name(&tenant, &slug).cloned();
        let entry = entry.ok_or_else(|| Error::NotFound { resource: name.clone() })?;
        let busy = |_| Error::Exhausted {
            message: "too many tests are under way: try again".to_owned(),
            retry_after: RETRY_AFTER,
        };
        let _slot = self.slots.try_acquire().map_err(busy)?;
        let trial = self.pipeline.try_out(entry, order).await?;
        Ok(message(&tenant, name, trial))
    }
}

fn source_name(name: &str) -> Result<(ResourceId, ResourceId), Error> {
    let malformed = || Error::invalid("name", "use the form tenants/{tenant}/sources/{source}");
    let rest = name.strip_prefix("tenants/").ok_or_else(malformed)?;
    let (tenant, slug) = rest.split_once("/sources/").ok_or_else(malformed)?;
    let id = |text: &str| ResourceId::new(text).map_err(|_| malformed());
    Ok((id(tenant)?, id(slug)?))
}

fn order(name: &str, request: v1::TestSourceRequest) -> Result<TrialOrder, Error> {
    let key = key(name, &request.key)?;
    if key.is_some() && request.request.is_some() {
        let message = "is for samples; leave it out when you give a request";
        return Err(Error::invalid("key", message));
    }
    let captured = request.request.map(captured).transpose()?;
    Ok(TrialOrder { key, captured, deliver: request.deliver })
}

fn key(source: &str, name: &str) -> Result<Option<KeyId>, Error> {
    if name.is_empty() {
        return Ok(None);
    }
    let id = name.strip_prefix(source).and_then(|rest| rest.strip_prefix("/keys/"));
    let id = id.and_then(|id| id.parse().ok());
    let malformed =
        || Error::invalid("key", format!("is no key of {source}: use {source}/keys/ID"));
    id.map(Some).ok_or_else(malformed)
}

fn captured(request: v1::CapturedRequest) -> Result<Captured, Error> {
    let most = usize::try_from(source_limits::HEADERS_MAX).unwrap_or(usize::MAX);
    if request.headers.len() > most {
        return Err(Error::invalid("request.headers", format!("has at most {most} entries")));
    }
    let method = if request.method.is_empty() { "POST".to_owned() } else { request.method };
    let headers = request.headers.into_iter().map(|header| (header.name, header.value)).collect();
    Ok(Captured { method, query: request.query, headers, body: request.body.into() })
}

fn message(tenant: &ResourceId, name: String, trial: Trial) -> v1::TestSourceResponse {
    let key = trial.key.map(|key| format!("{name}/keys/{key}"));
    let event = trial.event.map(|uid| format!("tenants/{tenant}/events/{uid}"));
    v1::TestSourceResponse {
        name,
        accepted: trial.accepted,
        summary: trial.summary,
        steps: trial.steps.into_iter().map(step).collect(),
        http_status: trial.status.into(),
        answer_body: trial.body,
        key: key.unwrap_or_default(),
        event: event.unwrap_or_default(),
    }
}

fn step(step: TrialStep) -> v1::SourceTestStep {
    let outcome = match step.outcome {
        TrialOutcome::Passed => v1::SourceTestOutcome::Passed,
        TrialOutcome::Failed => v1::SourceTestOutcome::Failed,
        TrialOutcome::Skipped => v1::SourceTestOutcome::Skipped,
    };
    v1::SourceTestStep { step: step.step.to_owned(), outcome: outcome.into(), detail: step.detail }
}

#[tonic::async_trait]
impl SourceTests for Service {
    async fn test_source(
        &self,
        request: Request<v1::TestSourceRequest>,
    ) -> Result<Response<v1::TestSourceResponse>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let answer = self.test(&caller, request.into_inner()).await;
        answer.map(Response::new).map_err(|error| status(&error))
    }
}
