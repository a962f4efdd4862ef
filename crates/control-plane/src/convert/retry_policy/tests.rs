use super::*;
use v1::retry_policy::Backoff as Wire;

fn wire(seconds: i64, nanos: i32) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos }
}

fn growth(first: i64, factor: f64, max: i64) -> Wire {
    Wire::Exponential(v1::ExponentialBackoff {
        first_delay: Some(wire(first, 0)),
        factor,
        max_delay: Some(wire(max, 0)),
    })
}

fn created(policy: v1::RetryPolicy) -> Result<CreateRetryPolicy, Error> {
    create(v1::CreateRetryPolicyRequest {
        parent: "tenants/acme".to_owned(),
        retry_policy_id: "patient".to_owned(),
        retry_policy: Some(policy),
        ..Default::default()
    })
}

fn problem(policy: v1::RetryPolicy) -> String {
    created(policy).unwrap_err().to_string()
}

#[test]
fn an_empty_policy_is_the_built_in_default() {
    assert_eq!(created(v1::RetryPolicy::default()).unwrap().rule, RetryRule::default());
}

#[test]
fn a_policy_keeps_to_its_limits() {
    let policy = v1::RetryPolicy {
        backoff: Some(Wire::Exponential(v1::ExponentialBackoff {
            first_delay: Some(wire(0, 1_000_000)),
            factor: 10.5,
            max_delay: None,
        })),
        jitter: 9,
        max_attempts: 101,
        horizon: Some(wire(0, 0)),
        max_retry_after: Some(wire(86_401, 0)),
        retry_statuses: vec![399, 410, 500, 404],
        ..Default::default()
    };
    let text = problem(policy);
    for part in [
        "exponential.first_delay: is out of bounds; use 10 ms to 24 h",
        "exponential.factor: is 10.5; use 1.0 to 10.0",
        "exponential.max_delay: is required",
        "jitter: is 9",
        "max_attempts: is 101; use 1 to 100",
        "horizon: is out of bounds; use 1 s to 30 d",
        "max_retry_after: is out of bounds; use 0 s to 24 h",
        "retry_statuses[0]: is 399",
        "retry_statuses[1]: is 410",
        "retry_statuses[2]: is 500",
    ] {
        assert!(text.contains(part), "{part} not in {text}");
    }
    assert!(!text.contains("retry_statuses[3]"), "{text}");
}

#[test]
fn a_factor_is_a_number_in_range() {
    for factor in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.99, -2.0, 10.01] {
        let backoff = Some(growth(5, factor, 300));
        let text = problem(v1::RetryPolicy { backoff, ..Default::default() });
        assert!(text.contains("exponential.factor"), "{factor}: {text}");
    }
    for factor in [1.0, 10.0] {
        let backoff = Some(growth(5, factor, 300));
        assert!(created(v1::RetryPolicy { backoff, ..Default::default() }).is_ok(), "{factor}");
    }
}

#[test]
fn the_longest_delay_is_not_shorter_than_the_first() {
    let backoff = Some(growth(10, 2.0, 9));
    let text = problem(v1::RetryPolicy { backoff, ..Default::default() });
    assert!(text.contains("max_delay: is shorter than first_delay"), "{text}");
}

#[test]
fn a_list_has_delays_and_every_bad_one_is_named() {
    let list = |delays: Vec<prost_types::Duration>| v1::RetryPolicy {
        backoff: Some(Wire::Delays(v1::DelayList { delays })),
        ..Default::default()
    };
    assert!(problem(list(Vec::new())).contains("has 0 delays; use 1 to 100"));
    assert!(problem(list(vec![wire(1, 0); 101])).contains("has 101 delays"));
    let text = problem(list(vec![wire(1, 0), wire(-1, 0), wire(86_401, 0)]));
    assert!(text.contains("delays[1]") && text.contains("delays[2]"), "{text}");
    let rule = created(list(vec![wire(1, 0), wire(60, 0)])).unwrap().rule;
    let expected = vec![Duration::from_secs(1), Duration::from_secs(60)];
    assert_eq!(rule.backoff, Backoff::Delays(expected));
}

#[test]
fn statuses_are_a_set() {
    let policy = v1::RetryPolicy { retry_statuses: vec![409, 404, 409], ..Default::default() };
    assert_eq!(created(policy).unwrap().rule.retry_statuses, [404, 409]);
    let many = v1::RetryPolicy { retry_statuses: vec![404; 33], ..Default::default() };
    assert!(problem(many).contains("has 33 codes; use at most 32"));
}

#[test]
fn what_goes_out_comes_back_the_same() {
    let rules = [
        RetryRule::default(),
        RetryRule {
            backoff: Backoff::Delays(vec![Duration::from_millis(1500)]),
            jitter: Jitter::None,
            max_retry_after: Duration::ZERO,
            retry_statuses: vec![404],
            ..RetryRule::default()
        },
    ];
    for rule in rules {
        let policy = v1::RetryPolicy {
            backoff: Some(wire_backoff(&rule.backoff)),
            jitter: wire_jitter(rule.jitter).into(),
            max_attempts: i32::try_from(rule.max_attempts).unwrap(),
            horizon: Some(grpc::duration(rule.horizon)),
            max_retry_after: Some(grpc::duration(rule.max_retry_after)),
            retry_statuses: rule.retry_statuses.iter().copied().map(i32::from).collect(),
            ..Default::default()
        };
        assert_eq!(created(policy).unwrap().rule, rule);
    }
}

fn updated(backoff: Option<Wire>, paths: &[&str]) -> Result<UpdateRetryPolicy, Error> {
    update(v1::UpdateRetryPolicyRequest {
        retry_policy: Some(v1::RetryPolicy {
            name: "tenants/acme/retryPolicies/patient".to_owned(),
            backoff,
            ..Default::default()
        }),
        update_mask: Some(prost_types::FieldMask {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        }),
        ..Default::default()
    })
}

#[test]
fn a_mask_and_its_backoff_agree() {
    assert_eq!(updated(Some(growth(1, 2.0, 8)), &["jitter"]).unwrap().backoff, None);
    assert!(updated(Some(growth(1, 2.0, 8)), &[]).unwrap().backoff.is_some());
    assert!(updated(Some(growth(1, 2.0, 8)), &["exponential", "delays"]).is_ok());
    let error = updated(Some(growth(1, 2.0, 8)), &["delays"]).unwrap_err().to_string();
    assert!(error.contains("names delays, but exponential is set"), "{error}");
    let reset = updated(None, &["delays"]).unwrap().backoff;
    assert_eq!(reset, Some(RetryRule::default().backoff));
}

#[test]
fn a_full_replacement_sets_every_field() {
    let all = updated(None, &["*"]).unwrap();
    let rule = RetryRule::default();
    assert_eq!(all.backoff, Some(rule.backoff));
    assert_eq!(all.jitter, Some(rule.jitter));
    assert_eq!(all.max_attempts, Some(rule.max_attempts));
    assert_eq!(all.horizon, Some(rule.horizon));
    assert_eq!(all.max_retry_after, Some(rule.max_retry_after));
    assert_eq!(all.retry_statuses, Some(Vec::new()));
    assert!(all.labels.is_some());
}
