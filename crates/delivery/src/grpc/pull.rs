//! The Pull service.

use super::{convert, events};
use crate::{
    config::ConfigHandle,
    plane::DeliveryPlane,
    pull::{
        ACTIONS_MAX, Action, BYTES_MAX, EXTENSION_MIN, Farewell, Heard, Pulled, Puller,
        REQUEST_BYTES, Said, Terms, Told, Wanted, Written,
    },
};
use futures_util::{Stream, StreamExt as _, stream};
use std::{ops::RangeInclusive, pin::Pin, sync::Arc, time::Duration};
use tonic::{Code, Request, Response, Status, Streaming};
use turnbuckle_domain::{
    Caller, Error, ResourceId, Settled, TenantId, Violations, limits, pull_limits,
};
use turnbuckle_proto::v1::{
    self, pull_server::Pull, pull_stream_request::Message as In,
    pull_stream_response::Message as Out,
};
use turnbuckle_runtime::grpc::{caller, duration, from_duration, status, timestamp};

pub(super) struct PullService {
    config: ConfigHandle,
    puller: Arc<Puller>,
}

/// Where a stream leads.
struct Opened {
    tenant: TenantId,
    slug: ResourceId,
    endpoint: ResourceId,
    name: String,
    wanted: Wanted,
}

impl PullService {
    pub(super) fn new(plane: &DeliveryPlane) -> Self {
        Self { config: plane.config(), puller: plane.puller() }
    }

    fn opened(
        &self,
        caller: &Caller,
        message: Option<v1::PullStreamRequest>,
    ) -> Result<Opened, Error> {
        let Some(In::Open(open)) = message.and_then(|message| message.message) else {
            return Err(Error::invalid("open", "must be the first message of the stream"));
        };
        let (slug, id) = convert::child("open.endpoint", &open.endpoint, "endpoints")?;
        let tenant = events::enter(&self.config, caller, &slug)?;
        let missing = || Error::NotFound { resource: open.endpoint.clone() };
        let endpoint = ResourceId::new(id).map_err(|_| missing())?;
        let wanted = wanted(&open)?;
        Ok(Opened { tenant, slug, endpoint, name: open.endpoint, wanted })
    }
}

fn wanted(open: &v1::PullOpen) -> Result<Wanted, Error> {
    let mut violations = Violations::new();
    let outstanding = match u16::try_from(open.max_outstanding) {
        Ok(most) if most <= limits::OUTSTANDING_MAX => Ok((most > 0).then_some(most)),
        _ => Err(format!("is {}; use 1 to {}", open.max_outstanding, limits::OUTSTANDING_MAX)),
    };
    let bytes = match usize::try_from(open.max_outstanding_bytes) {
        Ok(most) if most <= BYTES_MAX => Ok((most > 0).then_some(most)),
        _ => Err(format!("is {}; use 1 to {BYTES_MAX}", open.max_outstanding_bytes)),
    };
    let lease = open.lease.as_ref();
    let lease = lease.map(|lease| bounded(lease, limits::LEASE_MIN..=limits::LEASE_MAX));
    let wanted = Wanted {
        max_outstanding: violations.take("open.max_outstanding", outstanding).flatten(),
        bytes: violations.take("open.max_outstanding_bytes", bytes).flatten(),
        lease: violations.take("open.lease", lease.transpose()).flatten(),
    };
    violations.finish().map(|()| wanted)
}

fn bounded(
    given: &prost_types::Duration,
    bounds: RangeInclusive<Duration>,
) -> Result<Duration, String> {
    let told = || {
        format!("must be between {} s and {} s", bounds.start().as_secs(), bounds.end().as_secs())
    };
    from_duration(given).filter(|given| bounds.contains(given)).ok_or_else(told)
}

/// What a consumer says, checked. The first thing wrong ends the stream, with its field.
fn heard(message: Result<v1::PullStreamRequest, Status>) -> Heard {
    match message {
        Ok(message) => match said(message) {
            Ok(actions) => Heard::Said(actions),
            Err(error) => Heard::Malformed(error),
        },
        Err(status) if status.code() == Code::OutOfRange => {
            let message = format!("is longer than {REQUEST_BYTES} bytes; send less in one message");
            Heard::Malformed(Error::invalid("message", message))
        }
        Err(_) => Heard::Broken,
    }
}

fn said(message: v1::PullStreamRequest) -> Result<Vec<Said>, Error> {
    let actions = match message.message {
        Some(In::Actions(actions)) => actions,
        Some(In::Open(_)) => return Err(Error::invalid("open", "the stream is open already")),
        // A newer client says something that this server does not know.
        None => return Err(Error::invalid("message", "says nothing that this server knows")),
    };
    let v1::PullActions { acks, returns, extensions } = actions;
    let count = acks.len() + returns.len() + extensions.len();
    if count > ACTIONS_MAX {
        let message = format!("has {count} entries; use at most {ACTIONS_MAX} in one message");
        return Err(Error::invalid("actions", message));
    }
    let mut said: Vec<Said> = Vec::with_capacity(count);
    said.extend(acks.into_iter().map(|lease_token| Said::Ack { lease_token }));
    for (index, v1::PullReturn { lease_token, delay }) in returns.into_iter().enumerate() {
        let delay = delay.as_ref();
        let delay =
            delay.map(|delay| bounded(delay, Duration::ZERO..=pull_limits::RETURN_DELAY_MAX));
        let field = |error| Error::invalid(format!("actions.returns[{index}].delay"), error);
        said.push(Said::Return { lease_token, delay: delay.transpose().map_err(field)? });
    }
    for (index, v1::PullExtension { lease_token, lease }) in extensions.into_iter().enumerate() {
        let lease = lease.unwrap_or_default();
        let lease = bounded(&lease, EXTENSION_MIN..=limits::LEASE_MAX);
        let field = |error| Error::invalid(format!("actions.extensions[{index}].lease"), error);
        said.push(Said::Extend { lease_token, lease: lease.map_err(field)? });
    }
    Ok(said)
}

fn message(tenant: &ResourceId, told: Told) -> v1::PullStreamResponse {
    let message = match told {
        Told::Opened(Terms { max_outstanding, lease, .. }) => Out::Opened(v1::PullOpened {
            max_outstanding: max_outstanding.into(),
            lease: Some(duration(lease)),
        }),
        Told::Deliveries(deliveries) => {
            let deliveries = deliveries.into_iter().map(|one| delivery(tenant, one));
            Out::Deliveries(v1::PulledDeliveries { deliveries: deliveries.collect() })
        }
        Told::Results(results) => {
            Out::Results(v1::PullResults { results: results.into_iter().map(result).collect() })
        }
    };
    v1::PullStreamResponse { message: Some(message) }
}

fn delivery(tenant: &ResourceId, pulled: Pulled) -> v1::PulledDelivery {
    v1::PulledDelivery {
        delivery: convert::delivery_name(tenant, pulled.delivery),
        lease_token: pulled.lease_token,
        lease_expire_time: Some(timestamp(pulled.expires_at)),
        attempt: i32::try_from(pulled.attempt).unwrap_or(i32::MAX),
        // As the header of the same name says it to HTTP receivers.
        idempotency_key: pulled.delivery.to_string(),
        event: Some(convert::event(tenant, Arc::unwrap_or_clone(pulled.event))),
    }
}

fn result(written: Written) -> v1::PullResult {
    let (outcome, until) = match (written.outcome, written.action) {
        (Settled::Stale, _) => (v1::PullOutcome::Stale, None),
        (Settled::Applied, Action::Ack) => (v1::PullOutcome::Acked, None),
        (Settled::Applied, Action::Return | Action::Own) => (v1::PullOutcome::Returned, None),
        (Settled::Applied, Action::Extend(until)) => (v1::PullOutcome::Extended, Some(until)),
    };
    v1::PullResult {
        lease_token: written.lease_token,
        outcome: outcome.into(),
        lease_expire_time: until.map(timestamp),
    }
}

fn farewell(end: &Farewell) -> Status {
    match end {
        Farewell::Stopping => Status::unavailable("the server stops; open the stream again"),
        Farewell::Refused(error) => status(error),
    }
}

#[tonic::async_trait]
impl Pull for PullService {
    type StreamStream = Pin<Box<dyn Stream<Item = Result<v1::PullStreamResponse, Status>> + Send>>;

    async fn stream(
        &self,
        request: Request<Streaming<v1::PullStreamRequest>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let caller = caller(&request).map_err(|error| status(&error))?;
        let mut messages = request.into_inner();
        let first = messages.message().await?;
        let opened = self.opened(&caller, first).map_err(|error| status(&error))?;
        let Opened { tenant, slug, endpoint, name, wanted } = opened;
        let told = self
            .puller
            .open(tenant, &endpoint, &name, wanted, messages.map(heard))
            .map_err(|error| status(&error))?;
        let answers = stream::unfold(told, move |mut told| {
            let slug = slug.clone();
            async move {
                let next = told.recv().await?;
                let next = next.map(|next| message(&slug, next)).map_err(|end| farewell(&end));
                Some((next, told))
            }
        });
        Ok(Response::new(Box::pin(answers)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: i64) -> Option<prost_types::Duration> {
        Some(prost_types::Duration { seconds, nanos: 0 })
    }

    #[test]
    fn an_opening_has_bounds_and_defaults() {
        let terms = wanted(&v1::PullOpen::default()).unwrap();
        assert!(terms.max_outstanding.is_none() && terms.bytes.is_none() && terms.lease.is_none());
        let open = v1::PullOpen {
            max_outstanding: 1_001,
            max_outstanding_bytes: -1,
            lease: seconds(4),
            ..v1::PullOpen::default()
        };
        let error = wanted(&open).unwrap_err().to_string();
        for field in ["open.max_outstanding:", "open.max_outstanding_bytes:", "open.lease:"] {
            assert!(error.contains(field), "{field} is not in {error}");
        }
    }

    #[test]
    fn actions_are_checked_one_by_one() {
        let token = || "t".to_owned();
        let message = |actions| v1::PullStreamRequest { message: Some(In::Actions(actions)) };
        let refused = |actions| said(message(actions)).unwrap_err().to_string();
        let returns = vec![v1::PullReturn { lease_token: token(), delay: seconds(-1) }];
        let text = refused(v1::PullActions { returns, ..Default::default() });
        assert!(text.contains("actions.returns[0].delay"), "{text}");
        let extensions = vec![v1::PullExtension { lease_token: token(), lease: None }];
        let text = refused(v1::PullActions { extensions, ..Default::default() });
        assert!(text.contains("actions.extensions[0].lease"), "{text}");
        let text = refused(v1::PullActions { acks: vec![token(); 1_001], ..Default::default() });
        assert!(text.contains("has 1001 entries"), "{text}");
        assert!(said(v1::PullStreamRequest { message: None }).is_err());
        let returns = vec![v1::PullReturn { lease_token: token(), delay: seconds(0) }];
        let fine = v1::PullActions { acks: vec![token()], returns, ..Default::default() };
        assert_eq!(said(message(fine)).unwrap().len(), 2);
    }
}
