use super::*;
use std::{fmt::Write as _, io, time::Duration};
use turnbuckle_domain::Precondition;

const ENDPOINT: &str = "tenants/shop/endpoints/billing";

/// One of each variant, with what a client may rely on.
fn every_variant() -> Vec<Error> {
    let secret = || io::Error::other("password=hunter2");
    vec![
        Error::Invalid(vec![
            Violation { field: "endpoint.http.url".to_owned(), message: "use https".to_owned() },
            Violation { field: "endpoint_id".to_owned(), message: "is empty".to_owned() },
        ]),
        Error::NotFound { resource: ENDPOINT.to_owned() },
        Error::AlreadyExists { resource: ENDPOINT.to_owned() },
        Error::Stale { resource: ENDPOINT.to_owned(), current: "\"7\"".to_owned() },
        Error::Precondition {
            kind: Precondition::RotationOpen,
            subject: ENDPOINT.to_owned(),
            message: "a rotation is open: finish it first".to_owned(),
        },
        Error::RequestIdReused { request_id: "r1".to_owned() },
        Error::QuotaExceeded {
            tenant: "tenants/shop".to_owned(),
            what: "endpoints",
            limit: 7,
            setting: "--max-endpoints",
        },
        Error::Anomaly { event_id: "e1".to_owned(), source_name: "shop".to_owned() },
        Error::Unauthenticated { message: "send a token" },
        Error::PermissionDenied,
        Error::Exhausted {
            message: "too many publishes wait".to_owned(),
            retry_after: Duration::from_millis(250),
        },
        Error::Unavailable { retry_after: Duration::from_secs(1), cause: Some(Box::new(secret())) },
        Error::internal(secret()),
    ]
}

/// A status in words, with the random error id replaced.
fn render(status: &Status) -> String {
    let details = status.get_error_details();
    let info = details.error_info().unwrap();
    let id = info.metadata.get("error_id").cloned().unwrap_or_else(|| "no id".to_owned());
    let mut facts: Vec<_> =
        info.metadata.iter().map(|(key, value)| format!("{key}={value}")).collect();
    facts.sort();
    let mut text = format!("{:?} {} | {}", status.code(), info.reason, status.message());
    write!(text, " | {}", facts.join(",")).unwrap();
    for violation in
        details.bad_request().map(|found| &found.field_violations[..]).unwrap_or_default()
    {
        write!(text, " | field {}: {}", violation.field, violation.description).unwrap();
    }
    if let Some(failure) = details.precondition_failure() {
        let violation = &failure.violations[0];
        write!(text, " | {} {} {}", violation.r#type, violation.subject, violation.description)
            .unwrap();
    }
    if let Some(quota) = details.quota_failure() {
        write!(text, " | quota {}", quota.violations[0].subject).unwrap();
    }
    if let Some(resource) = details.resource_info() {
        write!(text, " | {} {}", resource.resource_type, resource.resource_name).unwrap();
    }
    if let Some(retry) = details.retry_info() {
        write!(text, " | retry {:?}", retry.retry_delay.unwrap()).unwrap();
    }
    assert_eq!(info.domain, "turnbuckle.dev");
    text.replace(&id, "<id>")
}

#[test]
fn every_variant_has_its_status() {
    let rendered: Vec<String> =
        every_variant().iter().map(|error| render(&status(error))).collect();
    let expected = [
        "InvalidArgument INVALID_REQUEST | invalid request: endpoint.http.url use https \
         (and 1 more, see the details) |  | field endpoint.http.url: use https \
         | field endpoint_id: is empty",
        "NotFound NOT_FOUND | tenants/shop/endpoints/billing not found |  \
         | endpoints tenants/shop/endpoints/billing",
        "AlreadyExists ALREADY_EXISTS | tenants/shop/endpoints/billing already exists |  \
         | endpoints tenants/shop/endpoints/billing",
        "Aborted ETAG_MISMATCH | tenants/shop/endpoints/billing has changed: read it again and \
         repeat with etag \"7\" | current_etag=\"7\" | endpoints tenants/shop/endpoints/billing",
        "FailedPrecondition ROTATION_IN_PROGRESS | a rotation is open: finish it first |  \
         | ROTATION_IN_PROGRESS tenants/shop/endpoints/billing a rotation is open: finish it first",
        "InvalidArgument REQUEST_ID_REUSED | request_id r1 was used before for another request: \
         repeat that one unchanged, or send a new id | request_id=r1 | field request_id: request_id \
         r1 was used before for another request: repeat that one unchanged, or send a new id",
        "ResourceExhausted QUOTA_EXCEEDED | tenants/shop has 7 endpoints, which is the most: delete \
         what is not needed, or have the operator raise --max-endpoints \
         | limit=7,setting=--max-endpoints | quota tenants/shop/endpoints",
        "AlreadyExists EVENT_ANOMALY | event id e1 of source shop was accepted before with other \
         content; the first stays, this one was recorded as an anomaly: use a new event id \
         | event_id=e1,source=shop",
        "Unauthenticated UNAUTHENTICATED | send a token | ",
        "PermissionDenied PERMISSION_DENIED | the caller may not do this | ",
        "ResourceExhausted RESOURCE_EXHAUSTED | too many publishes wait |  | retry 250ms",
        "Unavailable STORE_UNAVAILABLE | the store does not answer; try again |  | retry 1s",
        "Internal INTERNAL | internal error <id>: the server's log tells more under this id \
         | error_id=<id>",
    ];
    assert_eq!(rendered, expected);
}

#[test]
fn causes_never_reach_the_client() {
    for error in every_variant() {
        let status = status(&error);
        assert!(!status.message().contains("hunter2"), "{status:?}");
        assert!(!String::from_utf8_lossy(status.details()).contains("hunter2"), "{status:?}");
    }
}

#[test]
fn details_fit_into_headers_whatever_the_request_held() {
    let huge = "ü".repeat(100_000);
    let violations =
        (0..40).map(|_| Violation { field: huge.clone(), message: huge.clone() }).collect();
    let errors = [
        Error::Invalid(violations),
        Error::NotFound { resource: huge.clone() },
        Error::Anomaly { event_id: huge.clone(), source_name: huge },
    ];
    for error in errors {
        let status = status(&error);
        assert!(status.details().len() < 5000, "{}", status.details().len());
        assert!(status.message().len() < 500);
        assert!(status.check_error_details().is_ok());
    }
}

#[test]
fn no_more_than_25_violations_are_listed() {
    let violations = (0..40)
        .map(|index| Violation { field: format!("f{index}"), message: "is wrong".to_owned() })
        .collect();
    let details = status(&Error::Invalid(violations)).get_error_details();
    assert_eq!(details.bad_request().unwrap().field_violations.len(), 25);
}
