//! Receipts on the wire.

use super::{finish, page, processing::processing, single};
use crate::{
    names::{ReceiptName, SourceName, TenantName},
    page::Page,
    receipt::{ListReceipts, ReceiptView, ReplayReceipt},
};
use data_encoding::HEXLOWER;
use turnbuckle_domain::{
    Error, EventUid, IntakeRefusal, ReceiptDecision, ReceiptFilter, ReceiptId, Taken, Violations,
    event_limits,
};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::{timestamp, timestamp_opt};

/// Milliseconds of a second, and nanoseconds of a millisecond.
const SECOND: i64 = 1_000;
const NANOS: i64 = 1_000_000;
/// Longest reason: one line of a record.
const REASON_CHARS: usize = 500;

pub(crate) fn get(request: v1::GetReceiptRequest) -> Result<ReceiptName, Error> {
    single("name", ReceiptName::parse(&request.name))
}

pub(crate) fn replay(request: v1::ReplayReceiptRequest) -> Result<ReplayReceipt, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", ReceiptName::parse(&request.name));
    let characters = request.reason.chars().count();
    if !(1..=REASON_CHARS).contains(&characters) || request.reason.contains(char::is_control) {
        let message = format!("say why in 1 to {REASON_CHARS} characters on one line");
        violations.add("reason", message);
    }
    let only_new = request.only_new;
    finish(violations, name.map(|name| ReplayReceipt { name, only_new }))
}

pub(crate) fn replayed(receipt: &ReceiptName, taken: &[Taken]) -> v1::ReplayReceiptResponse {
    let tenant = &receipt.tenant;
    let name = receipt.to_string();
    let mut answer = v1::ReplayReceiptResponse { name, ..Default::default() };
    for one in taken {
        match one {
            Taken::Accepted { uid, .. } => {
                answer.events.push(format!("tenants/{tenant}/events/{uid}"));
            }
            Taken::Duplicate { .. } | Taken::Replay { .. } | Taken::Anomaly | Taken::Unknown => {
                answer.known += 1;
            }
            Taken::Refused(refusal) => {
                answer.refused += 1;
                if answer.refusal.is_empty() {
                    answer.refusal = match refusal {
                        IntakeRefusal::UnknownVersion => "its version is not known".to_owned(),
                        IntakeRefusal::Unusable { fields } => fields.clone(),
                    };
                }
            }
        }
    }
    answer
}

pub(crate) fn list(request: v1::ListReceiptsRequest) -> Result<ListReceipts, Error> {
    let mut violations = Violations::new();
    let parent = violations.take("parent", TenantName::parse(&request.parent));
    let source = match request.source.as_str() {
        "" => None,
        name => violations.take("source", SourceName::parse(name)),
    };
    if let (Some(parent), Some(source)) = (&parent, &source)
        && parent.0 != source.tenant
    {
        violations.add("source", "is of another tenant than the parent");
    }
    let decision = decision(&mut violations, request.decision);
    let event_id = &request.event_id;
    if event_id.len() > event_limits::EVENT_ID_CHARS || event_id.contains(char::is_control) {
        let most = event_limits::EVENT_ID_CHARS;
        violations.add("event_id", format!("use at most {most} characters of an event's id"));
    }
    let event_id = (!event_id.is_empty()).then(|| event_id.clone());
    let scope = [
        format!("{}/receipts", request.parent),
        request.source.clone(),
        request.decision.to_string(),
        request.event_id.clone(),
    ]
    .join("\n");
    let page = page(&mut violations, scope, request.page_size, &request.page_token);
    let after = page.as_ref().and_then(|page| page.after.as_deref());
    let after = after.map(str::parse::<ReceiptId>).transpose();
    let after = violations.take("page_token", after);
    let command = parent.zip(page).zip(after).map(|((parent, page), after)| ListReceipts {
        tenant: parent.0,
        source,
        filter: ReceiptFilter { source: None, decision, event_id },
        after,
        page,
    });
    finish(violations, command)
}

fn decision(violations: &mut Violations, given: i32) -> Option<ReceiptDecision> {
    match v1::ReceiptDecision::try_from(given) {
        Ok(v1::ReceiptDecision::Unspecified) => None,
        Ok(v1::ReceiptDecision::Accepted) => Some(ReceiptDecision::Accepted),
        Ok(v1::ReceiptDecision::Duplicate) => Some(ReceiptDecision::Duplicate),
        Ok(v1::ReceiptDecision::Anomaly) => Some(ReceiptDecision::Anomaly),
        Ok(v1::ReceiptDecision::Handshake) => Some(ReceiptDecision::Handshake),
        Ok(v1::ReceiptDecision::DeadLetter) => Some(ReceiptDecision::DeadLetter),
        Ok(v1::ReceiptDecision::Refused) => Some(ReceiptDecision::Refused),
        Ok(v1::ReceiptDecision::Unavailable) => Some(ReceiptDecision::Unavailable),
        Err(_) => {
            violations.add("decision", "is not known here; use a value of ReceiptDecision");
            None
        }
    }
}

const fn wire(decision: ReceiptDecision) -> v1::ReceiptDecision {
    match decision {
        ReceiptDecision::Accepted => v1::ReceiptDecision::Accepted,
        ReceiptDecision::Duplicate => v1::ReceiptDecision::Duplicate,
        ReceiptDecision::Anomaly => v1::ReceiptDecision::Anomaly,
        ReceiptDecision::Handshake => v1::ReceiptDecision::Handshake,
        ReceiptDecision::DeadLetter => v1::ReceiptDecision::DeadLetter,
        ReceiptDecision::Refused => v1::ReceiptDecision::Refused,
        ReceiptDecision::Unavailable => v1::ReceiptDecision::Unavailable,
    }
}

pub(crate) fn messages(page: &Page<ReceiptView>) -> v1::ListReceiptsResponse {
    let (receipts, next_page_token) =
        super::page::messages(page, |view| view.place.as_str(), message);
    v1::ListReceiptsResponse { receipts, next_page_token }
}

pub(crate) fn message(view: &ReceiptView) -> v1::Receipt {
    let ReceiptView { tenant, receipt, .. } = view;
    let source = format!("tenants/{tenant}/sources/{}", receipt.source_slug);
    let event = |uid: EventUid| format!("tenants/{tenant}/events/{uid}");
    let header = |(name, value): &(String, String)| v1::ReceiptHeader {
        name: name.clone(),
        value: value.clone(),
    };
    v1::Receipt {
        name: ReceiptName { tenant: tenant.clone(), id: receipt.id }.to_string(),
        receive_time: Some(timestamp(receipt.received_at)),
        decision: wire(receipt.decision).into(),
        reason: receipt.reason.clone(),
        status: i32::from(receipt.status),
        event_id: receipt.event_id.clone(),
        event: receipt.event.map(event).unwrap_or_default(),
        event_count: i32::try_from(receipt.events).unwrap_or(i32::MAX),
        key: receipt.key.map(|key| format!("{source}/keys/{key}")).unwrap_or_default(),
        key_state: receipt.key_state.map(|state| state.as_str().to_owned()).unwrap_or_default(),
        skew: receipt.skew_ms.map(signed),
        body_bytes: i32::try_from(receipt.body_bytes).unwrap_or(i32::MAX),
        body_hash: HEXLOWER.encode(&receipt.body_hash),
        headers: receipt.headers.iter().map(header).collect(),
        payload: receipt.payload.as_ref().map(|body| body.to_vec()).unwrap_or_default(),
        payload_expire_time: timestamp_opt(receipt.payload_until),
        event_id_signed: receipt.event_id_signed,
        processing: view.processing.as_ref().map(|(at, found)| processing(found, *at)),
        source,
    }
}

/// A duration that may be negative: both parts have its sign.
fn signed(millis: i64) -> prost_types::Duration {
    let nanos = millis % SECOND * NANOS;
    prost_types::Duration { seconds: millis / SECOND, nanos: i32::try_from(nanos).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_decision_has_its_word_on_the_wire() {
        for known in ReceiptDecision::ALL {
            let mut violations = Violations::new();
            assert_eq!(decision(&mut violations, wire(known).into()), Some(known));
            assert!(violations.is_empty());
        }
    }

    #[test]
    fn everything_wrong_with_a_list_is_told_at_once() {
        let request = v1::ListReceiptsRequest {
            parent: "acme".into(),
            source: "tenants/acme/sources/".into(),
            decision: 99,
            event_id: "x".repeat(200),
            page_size: -1,
            ..Default::default()
        };
        let text = list(request).err().unwrap().to_string();
        for field in ["parent", "source", "decision", "event_id", "page_size"] {
            assert!(text.contains(field), "{field} is not in {text}");
        }
    }

    #[test]
    fn skews_keep_their_sign() {
        assert_eq!(signed(-1_500), prost_types::Duration { seconds: -1, nanos: -500_000_000 });
        assert_eq!(signed(12), prost_types::Duration { seconds: 0, nanos: 12_000_000 });
    }
}
