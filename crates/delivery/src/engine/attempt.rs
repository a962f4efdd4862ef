//! One attempt: build the request, sign it, send it, say what came of it.

use super::input::Job;
use crate::{
    config::EndpointEntry,
    format::{BodyType, body},
    http::{HttpSender, OutgoingRequest},
    metrics::AttemptMetrics,
};
use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};
use turnbuckle_domain::{AttemptOutcome, EventOrder, RequestFault, Timestamp};
use turnbuckle_signing::Message;

static ATTEMPT: HeaderName = HeaderName::from_static("turnbuckle-attempt");
static EVENT_TYPE: HeaderName = HeaderName::from_static("turnbuckle-event-type");
static DELIVERY_ID: HeaderName = HeaderName::from_static("turnbuckle-delivery-id");
static ORDER: HeaderName = HeaderName::from_static("turnbuckle-order");
static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
static JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Makes attempts.
pub(crate) struct Attempter {
    sender: Arc<HttpSender>,
    metrics: AttemptMetrics,
}

impl Attempter {
    pub(crate) fn new(sender: Arc<HttpSender>) -> Self {
        Self { sender, metrics: AttemptMetrics::new() }
    }

    /// Makes one attempt; no outcome when `is_current` said no before anything was sent. A panic
    /// inside is an outcome too: it costs neither slot nor delivery.
    pub(crate) async fn attempt(
        &self,
        entry: &EndpointEntry,
        job: &Job,
        now: Timestamp,
        is_current: &(dyn Fn() -> bool + Send + Sync),
    ) -> (Option<AttemptOutcome>, Duration) {
        let attempt = AssertUnwindSafe(self.send(entry, job, now, is_current)).catch_unwind();
        attempt.await.unwrap_or_else(|_| {
            tracing::error!(delivery.id = %job.delivery.id, "an attempt panicked");
            (Some(AttemptOutcome::Failed { fault: RequestFault::Worker }), Duration::ZERO)
        })
    }

    async fn send(
        &self,
        entry: &EndpointEntry,
        job: &Job,
        now: Timestamp,
        is_current: &(dyn Fn() -> bool + Send + Sync),
    ) -> (Option<AttemptOutcome>, Duration) {
        let Some(target) = entry.target() else {
            return (Some(AttemptOutcome::Blocked), Duration::ZERO);
        };
        let body = body(&job.event, job.delivery.format);
        let headers = match headers(entry, job, &body.content_type, &body.bytes, now) {
            Ok(headers) => headers,
            Err(fault) => return (Some(AttemptOutcome::Failed { fault }), Duration::ZERO),
        };
        let timeout = entry.timeout;
        let request = OutgoingRequest { target, headers, body: body.bytes, timeout, is_current };
        let Some(sent) = self.sender.send(request).await else { return (None, Duration::ZERO) };
        entry.signer.count(now, &sent.outcome);
        self.metrics.duration.record(sent.duration);
        if sent.reused {
            self.metrics.reused.increment(1);
        }
        (Some(sent.outcome), sent.duration)
    }
}

/// Fresh timestamp and signatures over the very bytes that are sent (I9); everything else is the
/// same on every attempt but the attempt number (I3).
fn headers(
    entry: &EndpointEntry,
    job: &Job,
    content_type: &BodyType,
    body: &[u8],
    now: Timestamp,
) -> Result<HeaderMap, RequestFault> {
    let event = &job.event;
    let mut headers = entry.headers.clone();
    headers.reserve(10);
    let content_type = match content_type {
        BodyType::Json => JSON.clone(),
        BodyType::Published => value(&event.content_type)?,
    };
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(ATTEMPT.clone(), HeaderValue::from(job.delivery.attempts + 1));
    headers.insert(EVENT_TYPE.clone(), value(event.event_type.as_str())?);
    if let Some(order) = event.order.and_then(EventOrder::told) {
        headers.insert(ORDER.clone(), HeaderValue::from_static(order));
    }
    let delivery_id = value(&job.delivery.id.to_string())?;
    // One delivery is one event for one endpoint, so its id is what an effect may happen once for.
    headers.insert(IDEMPOTENCY_KEY.clone(), delivery_id.clone());
    headers.insert(DELIVERY_ID.clone(), delivery_id);
    let message = Message { id: &event.event_id, timestamp: now.unix_seconds(), body };
    let keys = entry.signer.keys(now);
    let signed = turnbuckle_signing::sign(entry.profile, &keys, &message, &entry.signer_options)
        .map_err(|_| RequestFault::Signing)?;
    for (name, text) in signed {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| RequestFault::Request)?;
        headers.insert(name, value(&text)?);
    }
    Ok(headers)
}

fn value(text: &str) -> Result<HeaderValue, RequestFault> {
    HeaderValue::from_str(text).map_err(|_| RequestFault::Request)
}
