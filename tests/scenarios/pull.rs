//! Internal services take deliveries from pull endpoints.

use prost_types::Duration as ProtoDuration;
use std::{collections::BTreeSet, time::Duration};
use tonic::Code;
use turnbuckle_client::{Client, ClientOptions, TokenSource};
use turnbuckle_proto::v1::{
    AttemptOutcome, DeliveryState, Endpoint, Event, PublishEventResponse, PullOpen, PullOutcome,
    PullTarget, RetryDeliveryRequest, UpdateEndpointRequest, endpoint::Target,
};
use turnbuckle_testkit::proxy::Proxy;
use turnbuckle_tests::{Puller, Scene, Server, StoreKind, http_endpoint, scene::EVENT_TYPE};

on_both_stores!(
    what_is_acknowledged_is_done_and_never_comes_again,
    a_return_comes_again_and_after_the_last_attempt_it_is_dead,
    a_lapsed_lease_comes_again_and_its_late_acknowledgement_is_stale,
    a_broken_stream_counts_and_one_that_is_closed_does_not,
    no_more_are_out_than_were_asked_for,
    one_of_a_subject_is_out_at_a_time,
    a_disabled_endpoint_ends_the_stream_and_cancels_what_waits,
);

/// A pull endpoint with every setting at its default.
pub(crate) fn pull_endpoint() -> Endpoint {
    pull(PullTarget::default())
}

fn pull(target: PullTarget) -> Endpoint {
    Endpoint { target: Some(Target::Pull(target)), ..Endpoint::default() }
}

struct Queue {
    server: Server,
    scene: Scene,
    endpoint: Endpoint,
}

/// A server with a pull endpoint that is tried three times, a moment apart.
async fn queue(kind: StoreKind, target: PullTarget) -> anyhow::Result<Option<Queue>> {
    let Some(server) = Server::start(kind, &[]).await? else { return Ok(None) };
    let scene = Scene::set(&server).await?;
    let retry_policy = scene.delays("soon", &[Duration::from_millis(10)], 3).await?;
    let endpoint = scene.raw("jobs", Endpoint { retry_policy, ..pull(target) }).await?;
    Ok(Some(Queue { server, scene, endpoint }))
}

impl Queue {
    async fn open(&self) -> anyhow::Result<Puller> {
        Ok(Puller::of(&self.scene.client, &self.endpoint.name).await?)
    }

    async fn publish_about(&self, id: &str, subject: &str) -> anyhow::Result<PublishEventResponse> {
        let event = Event {
            event_id: id.into(),
            event_type: EVENT_TYPE.into(),
            subject: subject.into(),
            data: "{}".into(),
            ..Event::default()
        };
        Ok(self.scene.publish_event(event).await?)
    }
}

async fn what_is_acknowledged_is_done_and_never_comes_again(kind: StoreKind) -> anyhow::Result<()> {
    let queue = or_skip!(queue(kind, PullTarget::default()).await?);
    assert_eq!(queue.endpoint.signing_secret, "");
    // Before anybody listens, and while somebody does.
    let first = queue.scene.publish("one", r#"{ "n": 1 }"#).await?;
    let mut puller = queue.open().await?;
    let one = puller.next().await?;
    let event = one.event.clone().unwrap_or_default();
    assert_eq!((event.event_id.as_str(), &event.data[..]), ("one", &br#"{ "n": 1 }"#[..]));
    assert_eq!(one.attempt, 1);
    assert!(one.delivery.ends_with(&one.idempotency_key), "{one:?}");
    let second = queue.scene.publish("two", "2").await?;
    let two = puller.next().await?;
    assert_ne!(one.idempotency_key, two.idempotency_key);
    for delivery in [&one, &two] {
        assert_eq!(puller.ack(delivery).await?.outcome(), PullOutcome::Acked);
        assert_eq!(puller.ack(delivery).await?.outcome(), PullOutcome::Stale);
    }
    puller.close().await?;
    for published in [&first, &second] {
        let delivery = queue.scene.ended(&published.name, DeliveryState::Delivered).await?;
        let attempts = queue.scene.attempts(&delivery).await?;
        assert_eq!((attempts.len(), attempts[0].detail.as_str()), (1, "ACK"));
        assert_eq!(attempts[0].outcome(), AttemptOutcome::Delivered);
        assert_eq!(attempts[0].http_status, 0);
    }
    Ok(())
}

async fn a_return_comes_again_and_after_the_last_attempt_it_is_dead(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let queue = or_skip!(queue(kind, PullTarget::default()).await?);
    let published = queue.scene.publish("poison", "{}").await?;
    let mut puller = queue.open().await?;
    let mut keys = BTreeSet::new();
    for attempt in 1..=3 {
        let delivery = puller.next().await?;
        assert_eq!(delivery.attempt, attempt);
        keys.insert(delivery.idempotency_key.clone());
        // Now, at the policy's own time, and whenever: it was the last.
        let seconds = [Some(0), None, Some(3_600)][usize::try_from(attempt)? - 1];
        let answer = puller.give_back(&delivery, seconds).await?;
        assert_eq!(answer.outcome(), PullOutcome::Returned);
    }
    assert_eq!(keys.len(), 1);
    let dead = queue.scene.ended(&published.name, DeliveryState::Dead).await?;
    assert_eq!((dead.reason.as_str(), dead.attempts), ("ATTEMPTS_EXHAUSTED", 3));
    let attempts = queue.scene.attempts(&dead).await?;
    assert!(attempts.iter().all(|one| one.outcome() == AttemptOutcome::Failed));
    assert!(attempts.iter().all(|one| one.detail == "NACK"), "{attempts:?}");
    // An operator opens it again.
    let again = RetryDeliveryRequest { name: dead.name };
    queue.scene.client.deliveries().retry_delivery(again).await?;
    let delivery = puller.next().await?;
    assert_eq!(delivery.attempt, 4);
    assert_eq!(puller.ack(&delivery).await?.outcome(), PullOutcome::Acked);
    queue.scene.ended(&published.name, DeliveryState::Delivered).await?;
    Ok(())
}

async fn a_lapsed_lease_comes_again_and_its_late_acknowledgement_is_stale(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let lease = Some(ProtoDuration { seconds: 5, nanos: 0 });
    let queue = or_skip!(queue(kind, PullTarget { lease, ..PullTarget::default() }).await?);
    let published = queue.scene.publish("slow", "{}").await?;
    queue.scene.publish("kept", "{}").await?;
    let mut puller = queue.open().await?;
    let (late, kept) = (puller.next().await?, puller.next().await?);
    let longer = puller.extend(&kept, 60).await?;
    assert_eq!(longer.outcome(), PullOutcome::Extended);
    let ends = |time: Option<prost_types::Timestamp>| time.map_or(0, |time| time.seconds);
    assert!(ends(longer.lease_expire_time) > ends(kept.lease_expire_time) + 50, "{longer:?}");
    let again = puller.next().await?;
    assert_eq!((&again.delivery, again.attempt), (&late.delivery, 2));
    assert_ne!(again.lease_token, late.lease_token);
    assert_eq!(puller.ack(&late).await?.outcome(), PullOutcome::Stale);
    assert_eq!(puller.extend(&late, 60).await?.outcome(), PullOutcome::Stale);
    assert_eq!(puller.ack(&again).await?.outcome(), PullOutcome::Acked);
    assert_eq!(puller.ack(&kept).await?.outcome(), PullOutcome::Acked);
    let delivery = queue.scene.ended(&published.name, DeliveryState::Delivered).await?;
    let attempts = queue.scene.attempts(&delivery).await?;
    let outcomes: Vec<&str> = attempts.iter().map(|one| one.detail.as_str()).collect();
    assert_eq!(outcomes, ["LEASE", "ACK"]);
    assert_eq!(attempts[0].outcome(), AttemptOutcome::TimedOut);
    Ok(())
}

async fn a_broken_stream_counts_and_one_that_is_closed_does_not(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let queue = or_skip!(queue(kind, PullTarget::default()).await?);
    let published = queue.scene.publish("one", "{}").await?;
    let mut closed = queue.open().await?;
    assert_eq!(closed.next().await?.attempt, 1);
    closed.close().await?;
    let proxy = Proxy::start(queue.server.api).await?;
    let token = Some(TokenSource::Text(queue.server.home().token("consumer", Some("acme"))?));
    let server = format!("http://{}", proxy.address());
    let client = Client::connect(ClientOptions { token, ..ClientOptions::new(server) }).await?;
    let mut broken = Puller::of(&client, &queue.endpoint.name).await?;
    assert_eq!(broken.next().await?.attempt, 1);
    proxy.cut();
    let mut last = queue.open().await?;
    let delivery = last.next().await?;
    assert_eq!(delivery.attempt, 2);
    assert_eq!(last.ack(&delivery).await?.outcome(), PullOutcome::Acked);
    let delivery = queue.scene.ended(&published.name, DeliveryState::Delivered).await?;
    let attempts = queue.scene.attempts(&delivery).await?;
    assert_eq!((attempts.len(), attempts[0].detail.as_str()), (2, "STREAM"));
    Ok(())
}

async fn no_more_are_out_than_were_asked_for(kind: StoreKind) -> anyhow::Result<()> {
    let queue =
        or_skip!(queue(kind, PullTarget { max_outstanding: 5, ..Default::default() }).await?);
    for number in 0..40 {
        queue.scene.publish(&format!("event-{number}"), "{}").await?;
    }
    let endpoint = queue.endpoint.name.clone();
    let open = |max_outstanding| PullOpen {
        endpoint: endpoint.clone(),
        max_outstanding,
        ..PullOpen::default()
    };
    let greedy = Puller::open(&queue.scene.client, open(50)).await?;
    assert_eq!(greedy.opened.max_outstanding, 5);
    greedy.close().await?;
    let mut puller = Puller::open(&queue.scene.client, open(3)).await?;
    assert_eq!(puller.opened.max_outstanding, 3);
    let mut held = Vec::new();
    for _ in 0..40 {
        while held.len() < 3 && held.len() + puller.waiting() < 3 {
            held.push(puller.next().await?);
        }
        while puller.waiting() > 0 {
            held.push(puller.next().await?);
        }
        assert!(held.len() <= 3, "{} are out", held.len());
        let done = held.remove(0);
        assert_eq!(puller.ack(&done).await?.outcome(), PullOutcome::Acked);
        if queue.scene.count(DeliveryState::Pending).await? < 3 {
            break;
        }
    }
    Ok(())
}

async fn one_of_a_subject_is_out_at_a_time(kind: StoreKind) -> anyhow::Result<()> {
    let target = PullTarget { ordered_by_subject: true, ..PullTarget::default() };
    let queue = or_skip!(queue(kind, target).await?);
    for (id, subject) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("a3", "a")] {
        queue.publish_about(id, subject).await?;
    }
    let id = |delivery: &turnbuckle_proto::v1::PulledDelivery| {
        delivery.event.as_ref().map(|event| event.event_id.clone()).unwrap_or_default()
    };
    let mut one = queue.open().await?;
    let (first, other) = (one.next().await?, one.next().await?);
    assert_eq!((id(&first).as_str(), id(&other).as_str()), ("a1", "b1"));
    // A return holds its subject, for other streams too.
    assert_eq!(one.give_back(&first, Some(1)).await?.outcome(), PullOutcome::Returned);
    let mut two = queue.open().await?;
    assert_eq!(one.ack(&other).await?.outcome(), PullOutcome::Acked);
    one.close().await?;
    for expected in ["a1", "a2", "a3"] {
        let next = two.next().await?;
        assert_eq!((id(&next).as_str(), two.waiting()), (expected, 0));
        assert_eq!(two.ack(&next).await?.outcome(), PullOutcome::Acked);
    }
    Ok(())
}

async fn a_disabled_endpoint_ends_the_stream_and_cancels_what_waits(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let queue = or_skip!(queue(kind, PullTarget::default()).await?);
    let held = queue.scene.publish("held", "{}").await?;
    let mut puller = queue.open().await?;
    puller.next().await?;
    queue.scene.disable(&queue.endpoint).await?;
    let end = puller.refusal().await?;
    assert_eq!(end.code(), Code::FailedPrecondition, "{end}");
    let cancelled = queue.scene.ended(&held.name, DeliveryState::Cancelled).await?;
    assert_eq!(cancelled.reason, "ENDPOINT_DISABLED");
    let refused = Puller::of(&queue.scene.client, &queue.endpoint.name).await.err();
    assert_eq!(refused.map(|status| status.code()), Some(Code::FailedPrecondition));
    queue.scene.enable(&queue.endpoint).await?;
    queue.scene.publish("fresh", "{}").await?;
    let mut puller = queue.open().await?;
    let fresh = puller.next().await?;
    assert_eq!(fresh.event.clone().unwrap_or_default().event_id, "fresh");
    assert_eq!(puller.ack(&fresh).await?.outcome(), PullOutcome::Acked);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_consumers_of_the_tenant_get_in_and_bad_openings_are_told_why() -> anyhow::Result<()> {
    let queue = or_skip!(queue(StoreKind::Embedded, PullTarget::default()).await?);
    let client = async |role: &str, tenant: Option<&str>| -> anyhow::Result<Client> {
        let token = queue.server.home().token(role, tenant)?;
        queue.server.client_with(Some(token)).await
    };
    let name = queue.endpoint.name.as_str();
    for (role, tenant, code) in [
        ("viewer", Some("acme"), Code::PermissionDenied),
        ("publisher", Some("acme"), Code::PermissionDenied),
        ("consumer", Some("other"), Code::PermissionDenied),
        ("consumer", Some("acme"), Code::Ok),
        ("operator", Some("acme"), Code::Ok),
    ] {
        let opened = Puller::of(&client(role, tenant).await?, name).await;
        let found = opened.err().map_or(Code::Ok, |status| status.code());
        assert_eq!(found, code, "{role} of {tenant:?}");
    }
    let consumer = client("consumer", Some("acme")).await?;
    let http = queue.scene.create_endpoint("web", http_endpoint("http://127.0.0.1:9/")).await?;
    let missing = "tenants/acme/endpoints/missing";
    for (open, code, text) in [
        (PullOpen { endpoint: missing.into(), ..Default::default() }, Code::NotFound, "missing"),
        (PullOpen { endpoint: http.name, ..Default::default() }, Code::FailedPrecondition, "URL"),
        (PullOpen::default(), Code::InvalidArgument, "open.endpoint"),
        (
            PullOpen { endpoint: name.into(), max_outstanding: 1_001, ..Default::default() },
            Code::InvalidArgument,
            "",
        ),
    ] {
        let status = Puller::open(&consumer, open).await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
        assert!(
            status.message().contains(text) || format!("{status:?}").contains(text),
            "{status}"
        );
    }
    // A URL cannot become a queue, nor the other way round.
    let update = UpdateEndpointRequest {
        endpoint: Some(Endpoint { name: name.to_owned(), ..http_endpoint("https://a.example/") }),
        ..UpdateEndpointRequest::default()
    };
    let refused = queue.scene.client.endpoints().update_endpoint(update).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    Ok(())
}
