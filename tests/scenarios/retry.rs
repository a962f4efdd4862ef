//! When a failed delivery is tried again, seen from the receiver.

use std::time::Duration;
use turnbuckle_proto::v1::{
    AttemptOutcome, DeliveryState, Endpoint, ExponentialBackoff, Jitter, RetryPolicy,
    retry_policy::Backoff,
};
use turnbuckle_testkit::receiver::{Answer, Received, Receiver, Script};
use turnbuckle_tests::{Scene, Server, StoreKind, http_endpoint, scene::proto};

use crate::unix_now;

on_both_stores!(
    retries_follow_the_schedule_inside_its_jitter,
    used_up_attempts_end_a_delivery,
    a_final_answer_ends_a_delivery_at_once,
);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn gaps(received: &[Received]) -> Vec<Duration> {
    received.windows(2).map(|pair| pair[1].at - pair[0].at).collect()
}

async fn retries_follow_the_schedule_inside_its_jitter(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let failures = [500, 503, 429, 408].map(Answer::status);
    let script = Script::sequence(failures.into_iter().chain([Answer::status(200)]));
    let receiver = Receiver::start(script).await?;
    let scene = Scene::set(&server).await?;
    let backoff = ExponentialBackoff {
        first_delay: Some(proto(ms(60))),
        factor: 2.0,
        max_delay: Some(proto(ms(240))),
    };
    let policy = RetryPolicy {
        backoff: Some(Backoff::Exponential(backoff)),
        jitter: Jitter::Equal.into(),
        max_attempts: 8,
        ..RetryPolicy::default()
    };
    let policy = scene.policy("equal", policy).await?;
    let endpoint = Endpoint { retry_policy: policy, ..http_endpoint(&receiver.url("/")) };
    scene.raw("flaky", endpoint).await?;
    let event = scene.publish("e", "{}").await?.name;
    let delivery = scene.ended(&event, DeliveryState::Delivered).await?;
    assert_eq!(delivery.attempts, 5);

    let received = receiver.received();
    let attempts = scene.attempts(&delivery).await?;
    assert_eq!((received.len(), attempts.len()), (5, 5));
    // A loaded machine may be late, never early. The store keeps microseconds.
    let rounding = ms(1);
    for (index, (gap, scheduled)) in
        gaps(&received).into_iter().zip([60, 120, 240, 240].map(ms)).enumerate()
    {
        let chosen = attempts[index].retry_delay.as_ref().map_or(Duration::ZERO, |delay| {
            Duration::new(delay.seconds.unsigned_abs(), delay.nanos.unsigned_abs())
        });
        assert!(chosen >= scheduled / 2 && chosen <= scheduled, "{chosen:?} of {scheduled:?}");
        assert!(
            gap + rounding >= chosen,
            "attempt {} came {gap:?} after, not {chosen:?}",
            index + 2
        );
    }
    let expected = [500, 503, 429, 408, 200];
    for (index, attempt) in attempts.iter().enumerate() {
        assert_eq!(attempt.http_status, expected[index]);
        assert_eq!(
            received[index].header("turnbuckle-attempt"),
            Some(&*attempt.number.to_string())
        );
        assert_eq!(received[index].header("webhook-id"), Some("e"));
        assert_eq!(received[index].body, "{}");
    }
    Ok(())
}

async fn used_up_attempts_end_a_delivery(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::always(Answer::reset())).await?;
    let scene = Scene::set(&server).await?;
    let retry_policy = scene.delays("three", &[ms(10)], 3).await?;
    scene.raw("gone", Endpoint { retry_policy, ..http_endpoint(&receiver.url("/")) }).await?;
    let event = scene.publish("e", "{}").await?.name;
    let delivery = scene.ended(&event, DeliveryState::Dead).await?;
    assert_eq!((delivery.attempts, delivery.reason.as_str()), (3, "ATTEMPTS_EXHAUSTED"));
    let attempts = scene.attempts(&delivery).await?;
    assert_eq!(attempts.len(), 3);
    assert!(attempts.iter().all(|attempt| attempt.outcome() == AttemptOutcome::Unreachable));
    assert_eq!(receiver.count(), 3);
    Ok(())
}

async fn a_final_answer_ends_a_delivery_at_once(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let answers = [400, 401, 404, 422, 410];
    let script = answers.into_iter().fold(Script::default(), |script, status| {
        script.on(&format!("/{status}"), [Answer::status(status)])
    });
    let receiver = Receiver::start(script).await?;
    let scene = Scene::set(&server).await?;
    for status in answers {
        let url = receiver.url(&format!("/{status}"));
        scene.raw(&format!("e{status}"), http_endpoint(&url)).await?;
    }
    let event = scene.publish("e", "{}").await?.name;
    scene.drained().await?;
    let deliveries = scene.deliveries_of(&event).await?;
    assert_eq!(deliveries.len(), answers.len());
    for delivery in deliveries {
        assert_eq!((delivery.state(), delivery.attempts), (DeliveryState::Dead, 1));
        let gone = delivery.endpoint.ends_with("e410");
        let reason = if gone { "ENDPOINT_GONE" } else { "FINAL_ANSWER" };
        assert_eq!(delivery.reason, reason, "{}", delivery.endpoint);
    }
    assert_eq!(receiver.count(), answers.len() as u64);
    Ok(())
}

/// A wait asked for, and the wait it should lead to: `None` for the policy's own.
fn retry_afters() -> Vec<(&'static str, String, Option<Duration>)> {
    let date = |seconds: i64| {
        let at = Duration::from_secs((unix_now() + seconds).unsigned_abs());
        httpdate::fmt_http_date(std::time::UNIX_EPOCH + at)
    };
    let cap = Duration::from_secs(2);
    vec![
        ("seconds", "1".into(), Some(Duration::from_secs(1))),
        ("huge", "999999999".into(), Some(cap)),
        ("overflow", "99999999999999999999999".into(), Some(cap)),
        ("far-date", date(86_400), Some(cap)),
        ("past-date", date(-3600), None),
        ("zero", "0".into(), None),
        ("negative", "-1".into(), None),
        ("garbage", "soon".into(), None),
        ("fraction", "1.5".into(), None),
        ("iso-date", "2099-01-01T00:00:00Z".into(), None),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_slows_down_within_the_cap_and_never_hurries() -> anyhow::Result<()> {
    let server = or_skip!(Server::start(StoreKind::Embedded, &[]).await?);
    let scene = Scene::set(&server).await?;
    let mut policy = RetryPolicy {
        jitter: Jitter::None.into(),
        max_retry_after: Some(proto(Duration::from_secs(2))),
        ..RetryPolicy::default()
    };
    let delays = turnbuckle_proto::v1::DelayList { delays: vec![proto(ms(100))] };
    policy.backoff = Some(Backoff::Delays(delays));
    let policy = scene.policy("capped", policy).await?;
    let cases = retry_afters();
    let script = cases.iter().fold(Script::default(), |script, (id, value, _)| {
        let refused = Answer::status(if id.len() % 2 == 0 { 429 } else { 503 });
        script.on(&format!("/{id}"), [refused.header("retry-after", value), Answer::status(200)])
    });
    let receiver = Receiver::start(script).await?;
    for (id, ..) in &cases {
        let endpoint = Endpoint {
            retry_policy: policy.clone(),
            ..http_endpoint(&receiver.url(&format!("/{id}")))
        };
        scene.raw(id, endpoint).await?;
    }
    let event = scene.publish("e", "{}").await?.name;
    scene.drained().await?;
    let received = receiver.received();
    for delivery in scene.deliveries_of(&event).await? {
        let (id, _, asked) = cases
            .iter()
            .find(|(id, ..)| delivery.endpoint.ends_with(&format!("/{id}")))
            .ok_or_else(|| anyhow::anyhow!("{} is not ours", delivery.endpoint))?;
        assert_eq!((delivery.state(), delivery.attempts), (DeliveryState::Delivered, 2), "{id}");
        let first = &scene.attempts(&delivery).await?[0];
        let wait = asked.unwrap_or(ms(100));
        assert_eq!(first.retry_delay, Some(proto(wait)), "{id}");
        assert_eq!(first.retry_after_honoured, asked.is_some(), "{id}");
        let path = format!("/{id}");
        let own: Vec<Received> =
            received.iter().filter(|request| request.path == path).cloned().collect();
        assert!(gaps(&own)[0] + ms(1) >= wait, "{id} came after {:?}", gaps(&own)[0]);
    }
    Ok(())
}
