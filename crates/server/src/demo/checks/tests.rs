use super::*;
use crate::demo::{ledger::Published, payloads, receiver::Script};
use tokio::time::Instant;
use turnbuckle_proto::v1::{AttemptOutcome, Delivery, PublishEventResponse};

fn envelope(event: &Published) -> bytes::Bytes {
    let data = std::str::from_utf8(&event.planned.data).unwrap();
    let (id, kind) = (&event.planned.event_id, event.planned.event_type);
    format!(r#"{{"event_id":"{id}","event_type":"{kind}","data":{data}}}"#).into()
}

fn published(began: Instant) -> Vec<Published> {
    payloads::acts()
        .concat()
        .into_iter()
        .map(|planned| {
            let name = format!("tenants/demo/events/{}", planned.event_id);
            let answer = PublishEventResponse { name, ..Default::default() };
            Published { planned, began, ack: Duration::from_millis(1), answer }
        })
        .collect()
}

/// A run in which every promise was kept, and the delays that the server would tell.
fn kept() -> (Ledger, Vec<Told>) {
    let began = Instant::now();
    let events = published(began);
    let mut ledger = Ledger::default();
    let mut history = Vec::new();
    for (index, event) in events.iter().enumerate() {
        for endpoint in event.endpoints() {
            let script = if *endpoint == FLAKY { Script::Flaky } else { Script::Healthy };
            let rotated = *endpoint == HEALTHY && index >= 6;
            let mut arrived = began;
            let mut attempts = Vec::new();
            for number in 1.. {
                let status = i32::from(script.answer(number));
                let verified_by = if rotated { vec![OLD_KEY, NEW_KEY] } else { vec![OLD_KEY] };
                ledger.seen.push(Seen {
                    endpoint,
                    event_id: event.planned.event_id.clone(),
                    webhook_id: event.planned.event_id.clone(),
                    number,
                    status,
                    arrived,
                    answered: arrived,
                    signatures: verified_by.iter().map(|_| "x".to_owned()).collect(),
                    verified_by,
                    body: envelope(event),
                });
                let delay = [250, 450, 1000][usize::try_from(number - 1).unwrap().min(2)];
                attempts.push(attempt(number, status, (status != 200).then_some(delay)));
                arrived += Duration::from_millis(delay);
                if status == 200 {
                    break;
                }
            }
            let delivery = Delivery {
                endpoint: format!("tenants/demo/endpoints/{endpoint}"),
                event_id: event.planned.event_id.clone(),
                state: DeliveryState::Delivered.into(),
                attempts: i32::try_from(attempts.len()).unwrap(),
                ..Default::default()
            };
            history.push(Told { delivery, attempts });
        }
    }
    let mut again = events[0].answer.clone();
    again.duplicate = true;
    ledger.repeated = Some((events[0].planned.event_id.clone(), again));
    ledger.published = events;
    (ledger, history)
}

fn attempt(number: i32, status: i32, delay_ms: Option<u64>) -> Attempt {
    Attempt {
        number,
        http_status: status,
        outcome: AttemptOutcome::Refused.into(),
        retry_after_honoured: status == 429,
        retry_delay: delay_ms.map(|ms| prost_types::Duration {
            seconds: i64::try_from(ms / 1000).unwrap(),
            nanos: i32::try_from(ms % 1000 * 1_000_000).unwrap(),
        }),
        ..Default::default()
    }
}

/// Names of the checks that fail after a change to the perfect run.
fn broken_by(change: impl FnOnce(&mut Ledger, &mut Vec<Told>)) -> Vec<&'static str> {
    let (mut ledger, mut history) = kept();
    change(&mut ledger, &mut history);
    all(&ledger, &history).iter().filter(|check| !check.passed()).map(|check| check.name).collect()
}

fn flaky_attempt(ledger: &mut Ledger, number: i32) -> &mut Seen {
    ledger.seen.iter_mut().find(|seen| seen.endpoint == FLAKY && seen.number == number).unwrap()
}

#[test]
fn a_run_as_promised_passes_every_check() {
    assert_eq!(broken_by(|_, _| {}), Vec::<&str>::new());
}

#[test]
fn a_second_effect_is_noticed() {
    let broken = broken_by(|ledger, _| {
        let again = ledger.seen[0].clone();
        ledger.seen.push(again);
    });
    assert!(broken.iter().any(|name| name.contains("exactly once")), "{broken:?}");
}

#[test]
fn a_lost_event_is_noticed() {
    let broken = broken_by(|ledger, _| {
        ledger.seen.remove(0);
    });
    assert!(broken.iter().any(|name| name.contains("exactly once")), "{broken:?}");
}

#[test]
fn one_changed_byte_is_noticed() {
    let broken = broken_by(|ledger, _| {
        let text = String::from_utf8(ledger.seen[0].body.to_vec()).unwrap();
        ledger.seen[0].body = text.replacen("1.10", "1.1", 1).into();
    });
    assert_eq!(broken, ["data arrived byte for byte as published"]);
}

#[test]
fn another_body_on_a_retry_is_noticed() {
    let broken = broken_by(|ledger, _| flaky_attempt(ledger, 2).webhook_id = "other".into());
    assert_eq!(broken, ["every attempt carried the same id and body"]);
}

#[test]
fn an_unflagged_duplicate_is_noticed() {
    let broken = broken_by(|ledger, _| {
        if let Some((_, answer)) = &mut ledger.repeated {
            answer.duplicate = false;
        }
    });
    assert_eq!(broken, ["the repeated event was flagged and not sent again"]);
}

#[test]
fn a_retry_that_comes_too_early_is_noticed() {
    let broken = broken_by(|ledger, _| {
        let early = flaky_attempt(ledger, 4);
        early.arrived -= Duration::from_millis(300);
    });
    assert_eq!(broken, ["retries waited as the policy and Retry-After say"]);
}

#[test]
fn a_delay_outside_the_policy_is_noticed() {
    let broken = broken_by(|_, history| {
        let told = history.iter_mut().find(|told| told.endpoint() == FLAKY).unwrap();
        told.attempts[0] = attempt(1, 503, Some(100));
    });
    assert_eq!(broken, ["retries waited as the policy and Retry-After say"]);
}

#[test]
fn a_policy_may_wait_longer_than_the_receiver_asks_but_not_shorter() {
    let with_delay = |delay_ms| {
        broken_by(|ledger, history| {
            let id = flaky_attempt(ledger, 3).event_id.clone();
            let told = history
                .iter_mut()
                .find(|told| told.endpoint() == FLAKY && told.delivery.event_id == id)
                .unwrap();
            told.attempts[2] = attempt(3, 429, Some(delay_ms));
            told.attempts[2].retry_after_honoured = false;
            let late = flaky_attempt(ledger, 4);
            late.arrived += Duration::from_millis(200);
        })
    };
    assert_eq!(with_delay(1150), Vec::<&str>::new());
    assert_eq!(with_delay(900), ["retries waited as the policy and Retry-After say"]);
}

#[test]
fn a_missing_second_signature_is_noticed() {
    let broken = broken_by(|ledger, _| {
        let last = ledger.seen.iter_mut().rev().find(|seen| seen.endpoint == HEALTHY).unwrap();
        last.verified_by = vec![OLD_KEY];
        last.signatures.pop();
    });
    assert_eq!(broken, ["both keys signed during the overlap, the old one before"]);
}

#[test]
fn history_that_disagrees_is_noticed() {
    let broken = broken_by(|_, history| {
        history[0].delivery.state = DeliveryState::Pending.into();
        history[1].attempts.pop();
    });
    assert!(broken.contains(&"ListDeliveries says delivered for each"), "{broken:?}");
    assert!(broken.contains(&"ListAttempts agrees with what the receivers saw"), "{broken:?}");
}
