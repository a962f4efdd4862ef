//! Also the samples that the tests of tables use.

use super::*;
use std::sync::{Arc, Mutex};

/// 2026-03-01T12:00:00Z.
pub(in crate::cli) const NOW: Timestamp = Timestamp::from_micros(1_772_366_400_000_000);

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn shown_and_noted(
    format: Format,
    show: impl FnOnce(&mut Output) -> anyhow::Result<()>,
) -> (String, String) {
    let (data, notes) = (Sink::default(), Sink::default());
    let mut output =
        Output::new(format, Box::new(data.clone()), Box::new(notes.clone()), NOW).unwrap();
    show(&mut output).unwrap();
    (data.text(), notes.text())
}

pub(in crate::cli) fn shown(
    format: Format,
    show: impl FnOnce(&mut Output) -> anyhow::Result<()>,
) -> String {
    shown_and_noted(format, show).0
}

pub(in crate::cli) mod samples {
    use super::NOW;
    use prost_types::{Duration, Timestamp};
    use turnbuckle_proto::v1::*;

    fn minutes_ago(minutes: i64) -> Option<Timestamp> {
        Some(Timestamp { seconds: NOW.unix_seconds() - 60 * minutes, nanos: 500_000_000 })
    }

    pub(in crate::cli) fn tenant() -> Tenant {
        Tenant {
            name: "tenants/acme".into(),
            display_name: "Acme".into(),
            create_time: minutes_ago(3),
            revision: 7,
            ..Default::default()
        }
    }

    pub(in crate::cli) fn event_type() -> EventType {
        EventType { name: "tenants/acme/eventTypes/order.paid".into(), ..Default::default() }
    }

    pub(in crate::cli) fn endpoint() -> Endpoint {
        Endpoint {
            name: "tenants/acme/endpoints/orders-hook".into(),
            target: Some(endpoint::Target::Http(HttpTarget {
                url: "https://r.example/h".into(),
                timeout: Some(Duration { seconds: 15, nanos: 0 }),
                ..Default::default()
            })),
            signature_profile: SignatureProfile::StandardWebhooks.into(),
            retry_policy: "tenants/acme/retryPolicies/quick".into(),
            state: EndpointState::Active.into(),
            labels: [("b".into(), "2".into()), ("a".into(), "1".into())].into(),
            create_time: Some(Timestamp { seconds: NOW.unix_seconds() - 180, nanos: 0 }),
            ..Default::default()
        }
    }

    pub(in crate::cli) fn subscription() -> Subscription {
        Subscription {
            name: "tenants/acme/subscriptions/all".into(),
            event_types: vec!["order.*".into()],
            payload_format: PayloadFormat::Raw.into(),
            ..Default::default()
        }
    }

    pub(in crate::cli) fn retry_policy() -> RetryPolicy {
        RetryPolicy {
            name: "tenants/acme/retryPolicies/quick".into(),
            version: 2,
            backoff: Some(retry_policy::Backoff::Exponential(ExponentialBackoff {
                first_delay: Some(Duration { seconds: 0, nanos: 300_000_000 }),
                factor: 2.0,
                max_delay: Some(Duration { seconds: 2, nanos: 0 }),
            })),
            ..Default::default()
        }
    }

    pub(in crate::cli) fn key() -> Key {
        Key {
            name: "tenants/acme/endpoints/orders-hook/keys/key_1".into(),
            state: KeyState::Retiring.into(),
            secret: "whsec_x".into(),
            ..Default::default()
        }
    }

    pub(in crate::cli) fn event() -> Event {
        Event {
            name: "tenants/acme/events/evt_1".into(),
            sequence: Some(9_007_199_254_740_993),
            data: vec![0xff, 0].into(),
            accept_time: minutes_ago(1),
            ..Default::default()
        }
    }

    pub(in crate::cli) fn delivery() -> Delivery {
        Delivery {
            name: "tenants/acme/deliveries/dlv_1".into(),
            state: DeliveryState::Pending.into(),
            attempts: 2,
            ..Default::default()
        }
    }

    pub(in crate::cli) fn attempt() -> Attempt {
        Attempt {
            name: "tenants/acme/deliveries/dlv_1/attempts/1".into(),
            number: 1,
            outcome: AttemptOutcome::TimedOut.into(),
            retry_delay: Some(Duration { seconds: 1, nanos: 500_000_000 }),
            ..Default::default()
        }
    }
}

fn json<R: Resource>(resource: &R) -> Value {
    serde_json::from_str(&shown(Format::Json, |output| output.one(resource))).unwrap()
}

#[test]
fn every_kind_of_resource_has_the_contract_s_json_form() {
    assert_eq!(json(&samples::tenant())["createTime"], "2026-03-01T11:57:00.500Z");
    assert_eq!(json(&samples::tenant())["revision"], "7");
    assert_eq!(json(&samples::event_type())["name"], "tenants/acme/eventTypes/order.paid");
    assert_eq!(json(&samples::endpoint())["state"], "ENDPOINT_STATE_ACTIVE");
    assert_eq!(json(&samples::endpoint())["http"]["timeout"], "15s");
    assert_eq!(json(&samples::subscription())["payloadFormat"], "PAYLOAD_FORMAT_RAW");
    assert_eq!(json(&samples::retry_policy())["exponential"]["firstDelay"], "0.300s");
    assert_eq!(json(&samples::key())["state"], "KEY_STATE_RETIRING");
    assert_eq!(json(&samples::event())["data"], "/wA=");
    assert_eq!(json(&samples::event())["sequence"], "9007199254740993");
    assert_eq!(json(&samples::delivery())["state"], "DELIVERY_STATE_PENDING");
    assert_eq!(json(&samples::attempt())["retryDelay"], "1.500s");
    let ring = turnbuckle_proto::v1::KeyRing { keys: vec![samples::key()], ..Default::default() };
    assert_eq!(json(&ring)["keys"][0]["secret"], "whsec_x");
    let accepted =
        turnbuckle_proto::v1::PublishEventResponse { duplicate: true, ..Default::default() };
    assert_eq!(json(&accepted)["duplicate"], true);
}

#[test]
fn lists_are_json_arrays_and_an_empty_one_too() {
    let one = shown(Format::Json, |output| output.many(&[samples::tenant()]));
    assert_eq!(serde_json::from_str::<Vec<Value>>(&one).unwrap().len(), 1);
    let none = shown(Format::Json, |output| output.many::<turnbuckle_proto::v1::Tenant>(&[]));
    assert_eq!(none, "[]\n");
}

#[test]
fn yaml_is_the_same_value() {
    let text = shown(Format::Yaml, |output| output.one(&samples::endpoint()));
    let value: Value = serde_norway::from_str(&text).unwrap();
    assert_eq!(value, json(&samples::endpoint()));
}

#[test]
fn names_come_one_a_line() {
    let text = shown(Format::Name, |output| output.many(&[samples::tenant(), samples::tenant()]));
    assert_eq!(text, "tenants/acme\ntenants/acme\n");
}

#[test]
fn notes_never_mix_with_data() {
    let (data, notes) = shown_and_noted(Format::Json, |output| {
        output.removed("tenants/acme")?;
        output.note_secret("whsec_x")
    });
    assert_eq!(data, "");
    assert!(notes.contains("cannot be read again"));
    assert!(!notes.contains("whsec_x"));
}

#[test]
fn a_closed_pipe_is_an_error_and_no_panic() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut output =
        Output::new(Format::Table, Box::new(Closed), Box::new(io::sink()), NOW).unwrap();
    let error = output.one(&samples::tenant()).unwrap_err();
    assert!(crate::cli::error::is_closed_pipe(&error));
}
