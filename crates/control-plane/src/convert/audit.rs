//! The audit record on the wire.

use super::{finish, page, single};
use crate::{
    audit::{AuditHeadView, AuditView, ListAuditEvents},
    names::{AuditEventName, AuditHeadName, TenantName},
    page::Page,
};
use data_encoding::HEXLOWER;
use turnbuckle_domain::{AuditFilter, AuditOutcome, Error, ResourceId, Timestamp, Violations};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::{from_timestamp, timestamp};

/// Longest value compared with; no name or subject that was recorded is longer.
const FILTER_CHARS: usize = 500;

fn text(violations: &mut Violations, field: &str, given: &str) -> Option<String> {
    let count = given.chars().count();
    if count > FILTER_CHARS || given.contains(char::is_control) {
        violations.add(
            field,
            format!("has control characters or is longer than {FILTER_CHARS} characters"),
        );
    }
    (!given.is_empty()).then(|| given.to_owned())
}

fn time(
    violations: &mut Violations,
    field: &str,
    given: Option<&prost_types::Timestamp>,
) -> Option<Timestamp> {
    let at = given.map(|given| from_timestamp(given).ok_or("is no point in time"))?;
    violations.take(field, at)
}

fn outcome(violations: &mut Violations, given: i32) -> Option<AuditOutcome> {
    match v1::AuditOutcome::try_from(given) {
        Ok(v1::AuditOutcome::Unspecified) => None,
        Ok(v1::AuditOutcome::Applied) => Some(AuditOutcome::Applied),
        Ok(v1::AuditOutcome::Denied) => Some(AuditOutcome::Denied),
        Err(_) => {
            violations.add("outcome", "is not known here; use AUDIT_OUTCOME_APPLIED or _DENIED");
            None
        }
    }
}

/// Everything a page token depends on. Field names have no `=` and values no control characters.
fn scope(request: &v1::ListAuditEventsRequest, filter: &AuditFilter) -> String {
    let micros = |at: Option<Timestamp>| at.map(|at| at.micros().to_string()).unwrap_or_default();
    [
        format!("{}/auditEvents", request.parent),
        request.resource.clone(),
        request.subject.clone(),
        micros(filter.from),
        micros(filter.until),
        filter.outcome.map(AuditOutcome::as_str).unwrap_or_default().to_owned(),
    ]
    .join("\n")
}

pub(crate) fn list(request: v1::ListAuditEventsRequest) -> Result<ListAuditEvents, Error> {
    let mut violations = Violations::new();
    // No parent means the platform's own record.
    let parent = match request.parent.as_str() {
        "" => Some(None),
        tenant => violations.take("parent", TenantName::parse(tenant)).map(|name| Some(name.0)),
    };
    let filter = AuditFilter {
        resource: text(&mut violations, "resource", &request.resource),
        subject: text(&mut violations, "subject", &request.subject),
        from: time(&mut violations, "start_time", request.start_time.as_ref()),
        until: time(&mut violations, "end_time", request.end_time.as_ref()),
        outcome: outcome(&mut violations, request.outcome),
    };
    let scope = scope(&request, &filter);
    let page = page(&mut violations, scope, request.page_size, &request.page_token);
    let after = page.as_ref().and_then(|page| page.after.as_deref());
    let below = after.map(str::parse::<i64>).transpose();
    let below = violations.take("page_token", below.map_err(|_| "is not a token of this list"));
    let command = || Some(ListAuditEvents { tenant: parent?, filter, below: below?, page: page? });
    finish(violations, command())
}

pub(crate) fn head(request: v1::GetAuditHeadRequest) -> Result<Option<ResourceId>, Error> {
    single("name", AuditHeadName::parse(&request.name)).map(|name| name.0)
}

const fn wire_outcome(outcome: AuditOutcome) -> v1::AuditOutcome {
    match outcome {
        AuditOutcome::Applied => v1::AuditOutcome::Applied,
        AuditOutcome::Denied => v1::AuditOutcome::Denied,
    }
}

fn message(view: &AuditView) -> v1::AuditEvent {
    let entry = &view.entry;
    let changes = entry.changes.iter().map(|change| v1::AuditFieldChange {
        field: change.field.clone(),
        before: change.before.clone(),
        after: change.after.clone(),
    });
    v1::AuditEvent {
        name: AuditEventName { tenant: view.tenant.clone(), id: entry.id }.to_string(),
        sequence: entry.sequence,
        tenant_uid: entry.tenant.to_string(),
        time: Some(timestamp(entry.at)),
        subject: entry.subject.clone(),
        role: entry.role.clone(),
        method: entry.method.clone(),
        resource: entry.resource.clone(),
        request_id: entry.request_id.clone(),
        reason: entry.reason.clone(),
        revision: entry.revision.0,
        outcome: wire_outcome(entry.outcome).into(),
        changes: changes.collect(),
        hash: HEXLOWER.encode(&entry.hash),
    }
}

pub(crate) fn messages(page: &Page<AuditView>) -> v1::ListAuditEventsResponse {
    let (audit_events, next_page_token) =
        super::page::messages(page, |view| view.place.as_str(), message);
    v1::ListAuditEventsResponse { audit_events, next_page_token }
}

pub(crate) fn head_message(view: &AuditHeadView) -> v1::AuditHead {
    let name = AuditHeadName(view.tenant.clone()).to_string();
    match &view.head {
        None => v1::AuditHead { name, ..Default::default() },
        Some(head) => v1::AuditHead {
            name,
            audit_event: AuditEventName { tenant: view.tenant.clone(), id: head.id }.to_string(),
            count: head.sequence,
            hash: HEXLOWER.encode(&head.hash),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_runtime::page::PageToken;

    fn request() -> v1::ListAuditEventsRequest {
        v1::ListAuditEventsRequest { parent: "tenants/acme".to_owned(), ..Default::default() }
    }

    #[test]
    fn what_is_not_asked_for_does_not_filter() {
        let command = list(request()).unwrap();
        assert_eq!(command.filter, AuditFilter::default());
        assert_eq!(command.below, None);
    }

    #[test]
    fn a_page_token_belongs_to_its_filter_and_says_where_to_go_on() {
        let filtered = v1::ListAuditEventsRequest { subject: "alice".to_owned(), ..request() };
        let scope = list(filtered.clone()).unwrap().page.scope;
        let page_token = PageToken::encode(&scope, "41");
        let next = v1::ListAuditEventsRequest { page_token: page_token.clone(), ..filtered };
        assert_eq!(list(next).unwrap().below, Some(41));
        let other = v1::ListAuditEventsRequest { page_token, ..request() };
        assert!(list(other).unwrap_err().to_string().contains("page_token"));
        let page_token = PageToken::encode(&list(request()).unwrap().page.scope, "x");
        let forged = v1::ListAuditEventsRequest { page_token, ..request() };
        assert!(list(forged).unwrap_err().to_string().contains("page_token"));
    }

    #[test]
    fn impossible_filters_are_told_all_at_once() {
        let time = Some(prost_types::Timestamp { seconds: i64::MAX, nanos: 0 });
        let request = v1::ListAuditEventsRequest {
            subject: "a\nb".to_owned(),
            resource: "r".repeat(FILTER_CHARS + 1),
            start_time: time,
            end_time: time,
            outcome: 99,
            ..request()
        };
        let error = list(request).unwrap_err().to_string();
        for field in ["subject: ", "resource: ", "start_time: ", "end_time: ", "outcome: "] {
            assert!(error.contains(field), "{error}");
        }
    }
}
