//! Names and messages of events and deliveries.

use turnbuckle_domain::{
    Attempt, DeliveryId, DeliveryState, DeliveryView, Error, Event, EventDraft, EventOrder,
    EventUid, ResourceId,
};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::{duration, from_timestamp, timestamp};

use crate::publish::Published;

/// `tenants/{tenant}`.
pub(super) fn parent(field: &str, text: &str) -> Result<ResourceId, Error> {
    let malformed = || Error::invalid(field, "use the form tenants/{tenant}");
    let id = text.strip_prefix("tenants/").ok_or_else(malformed)?;
    ResourceId::new(id).map_err(|_| malformed())
}

/// Splits `tenants/{tenant}/{collection}/{id}`.
pub(super) fn child<'a>(
    field: &str,
    text: &'a str,
    collection: &str,
) -> Result<(ResourceId, &'a str), Error> {
    let malformed =
        || Error::invalid(field, format!("use the form tenants/{{tenant}}/{collection}/{{id}}"));
    let mut parts = text.split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("tenants"), Some(tenant), Some(kind), Some(id), None)
            if kind == collection && !id.is_empty() =>
        {
            Ok((ResourceId::new(tenant).map_err(|_| malformed())?, id))
        }
        _ => Err(malformed()),
    }
}

pub(super) fn event_name(tenant: &ResourceId, uid: EventUid) -> String {
    format!("tenants/{tenant}/events/{uid}")
}

pub(super) fn delivery_name(tenant: &ResourceId, id: DeliveryId) -> String {
    format!("tenants/{tenant}/deliveries/{id}")
}

/// Takes the message apart. Only the time can be malformed here; the rest is the draft's to check.
pub(super) fn draft(event: v1::Event, field: &str) -> Result<EventDraft, Error> {
    let occurred_at = event
        .occurred_at
        .as_ref()
        .map(|time| {
            let bad = || {
                Error::invalid(format!("{field}.occurred_at"), "use a time between 1970 and 9999")
            };
            from_timestamp(time).ok_or_else(bad)
        })
        .transpose()?;
    Ok(EventDraft {
        event_id: event.event_id,
        event_type: event.event_type,
        event_version: event.event_version,
        occurred_at,
        source: event.source,
        subject: event.subject,
        sequence: event.sequence,
        data: event.data,
        content_type: event.content_type,
        channels: event.channels,
    })
}

pub(super) fn published(tenant: &ResourceId, published: Published) -> v1::PublishEventResponse {
    v1::PublishEventResponse {
        name: event_name(tenant, published.uid),
        event_id: published.event_id,
        duplicate: published.duplicate,
        accept_time: Some(timestamp(published.accepted_at)),
        deliveries: i32::try_from(published.deliveries).unwrap_or(i32::MAX),
    }
}

/// One event's part of a batch answer: the same code and reason that a single publish would give.
pub(super) fn result(tenant: &ResourceId, outcome: Result<Published, Error>) -> v1::PublishResult {
    use v1::publish_result::Result as Kind;
    let kind = match outcome {
        Ok(accepted) => Kind::Accepted(published(tenant, accepted)),
        Err(error) => {
            let status = turnbuckle_runtime::grpc::status(&error);
            Kind::Refused(v1::PublishRefusal {
                code: i32::from(status.code()),
                reason: error.reason().to_owned(),
                message: status.message().to_owned(),
            })
        }
    };
    v1::PublishResult { result: Some(kind) }
}

pub(super) fn event(tenant: &ResourceId, event: Event) -> v1::Event {
    v1::Event {
        name: event_name(tenant, event.uid),
        event_id: event.event_id,
        event_type: event.event_type.to_string(),
        event_version: event.event_version,
        occurred_at: Some(timestamp(event.occurred_at)),
        source: event.source,
        subject: event.subject.unwrap_or_default(),
        sequence: event.sequence,
        data: event.data,
        content_type: event.content_type,
        accept_time: Some(timestamp(event.accepted_at)),
        channels: event.channels.iter().map(ToString::to_string).collect(),
        order: order(event.order).into(),
        processing: None,
    }
}

const fn order(order: Option<EventOrder>) -> v1::EventOrder {
    match order {
        None => v1::EventOrder::Unspecified,
        Some(EventOrder::Stale) => v1::EventOrder::Stale,
        Some(EventOrder::Gap) => v1::EventOrder::Gap,
        Some(EventOrder::AfterFinal) => v1::EventOrder::AfterFinal,
        Some(EventOrder::Held) => v1::EventOrder::Held,
    }
}

pub(super) fn delivery(tenant: &ResourceId, view: DeliveryView) -> v1::Delivery {
    let DeliveryView { delivery, event_id, event_type, endpoint_slug } = view;
    v1::Delivery {
        name: delivery_name(tenant, delivery.id),
        event: event_name(tenant, delivery.event),
        endpoint: format!("tenants/{tenant}/endpoints/{endpoint_slug}"),
        event_id,
        event_type,
        state: state(delivery.state).into(),
        attempts: i32::try_from(delivery.attempts).unwrap_or(i32::MAX),
        next_attempt_time: delivery.due_at.map(timestamp),
        // The id carries the time of its event.
        create_time: created_at(delivery.event),
        finish_time: delivery.finished_at.map(timestamp),
        reason: delivery.reason.map(|reason| reason.as_str().to_owned()).unwrap_or_default(),
    }
}

fn created_at(event: EventUid) -> Option<prost_types::Timestamp> {
    let (seconds, nanos) = event.uuid().get_timestamp()?.to_unix();
    Some(prost_types::Timestamp {
        seconds: i64::try_from(seconds).ok()?,
        nanos: i32::try_from(nanos).ok()?,
    })
}

const fn state(state: DeliveryState) -> v1::DeliveryState {
    match state {
        DeliveryState::Pending => v1::DeliveryState::Pending,
        DeliveryState::Delivered => v1::DeliveryState::Delivered,
        DeliveryState::Dead => v1::DeliveryState::Dead,
        DeliveryState::Cancelled => v1::DeliveryState::Cancelled,
    }
}

/// The state a list is filtered by; none for every state.
pub(super) fn state_filter(number: i32) -> Result<Option<DeliveryState>, Error> {
    match v1::DeliveryState::try_from(number) {
        Ok(v1::DeliveryState::Unspecified) => Ok(None),
        Ok(v1::DeliveryState::Pending) => Ok(Some(DeliveryState::Pending)),
        Ok(v1::DeliveryState::Delivered) => Ok(Some(DeliveryState::Delivered)),
        Ok(v1::DeliveryState::Dead) => Ok(Some(DeliveryState::Dead)),
        Ok(v1::DeliveryState::Cancelled) => Ok(Some(DeliveryState::Cancelled)),
        Err(_) => Err(Error::invalid("state", "use a value of DeliveryState")),
    }
}

pub(super) fn attempt(delivery: &str, attempt: Attempt) -> v1::Attempt {
    let outcome = match &*attempt.outcome {
        "delivered" => v1::AttemptOutcome::Delivered,
        "refused" => v1::AttemptOutcome::Refused,
        "timed_out" => v1::AttemptOutcome::TimedOut,
        "unreachable" => v1::AttemptOutcome::Unreachable,
        "blocked" => v1::AttemptOutcome::Blocked,
        "failed" => v1::AttemptOutcome::Failed,
        _ => v1::AttemptOutcome::Unspecified,
    };
    v1::Attempt {
        name: format!("{delivery}/attempts/{}", attempt.number),
        number: i32::try_from(attempt.number).unwrap_or(i32::MAX),
        start_time: Some(timestamp(attempt.started_at)),
        duration: Some(duration(attempt.duration)),
        outcome: outcome.into(),
        http_status: attempt.status.map_or(0, i32::from),
        detail: attempt.detail.into_owned(),
        retry_delay: attempt.retry_delay.map(duration),
        retry_after_honoured: attempt.retry_after_honoured,
    }
}
