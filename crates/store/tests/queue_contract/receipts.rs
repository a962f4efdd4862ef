//! Receipts: kept as they are, found by what operators look for, taken away by age.

use crate::{common::on_both_backends, fixture::Fixture};
use bytes::Bytes;
use std::time::Duration;
use turnbuckle_domain::{
    EventUid, KeyId, KeyState, Receipt, ReceiptDecision, ReceiptFilter, ReceiptId, ReplayContext,
    SourceId, TenantId, Timestamp,
};
use uuid::Uuid;

on_both_backends!(
    a_receipt_comes_back_as_it_was,
    receipts_are_listed_newest_first_and_filtered,
    no_tenant_sees_receipts_of_another,
    old_receipts_and_payloads_whose_time_is_over_go,
);

const SOURCE: SourceId = SourceId::from_uuid(Uuid::from_u128(77));

/// The id of a moment, told apart by a number.
fn id(at: Timestamp, number: u128) -> ReceiptId {
    let millis = u128::try_from(at.micros() / 1_000).unwrap();
    ReceiptId::from_uuid(Uuid::from_u128(millis << 80 | number))
}

fn receipt(tenant: TenantId, at: Timestamp, number: u128) -> Receipt {
    Receipt {
        id: id(at, number),
        tenant,
        source: SOURCE,
        source_slug: "github".to_owned(),
        received_at: at,
        decision: ReceiptDecision::Accepted,
        reason: String::new(),
        status: 202,
        event_id: format!("e-{number}"),
        event_id_signed: Some(false),
        event: Some(EventUid::from_uuid(Uuid::from_u128(5))),
        events: 1,
        key: Some(KeyId::from_uuid(Uuid::from_u128(6))),
        key_state: Some(KeyState::Retiring),
        skew_ms: Some(-12),
        body_bytes: 3,
        body_hash: [9; 32],
        headers: vec![("user-agent".to_owned(), "größe \"x\"".to_owned())],
        payload: None,
        payload_until: None,
        context: None,
    }
}

async fn a_receipt_comes_back_as_it_was(fixture: &Fixture) {
    let (tenant, now, log) = (fixture.tenant(), fixture.now(), &fixture.store.receipts);
    let kept = Receipt {
        payload: Some(Bytes::from_static(b"{}\0")),
        payload_until: Some(now + Duration::from_secs(60)),
        context: Some(ReplayContext {
            content_type: "application/json".to_owned(),
            message_id: Some("m-1".to_owned()),
            headers: vec![("x-topic".to_owned(), "order/paid".to_owned())],
            query: vec![("v".to_owned(), "2".to_owned())],
        }),
        ..receipt(tenant, now, 1)
    };
    let bare = Receipt {
        event_id_signed: None,
        decision: ReceiptDecision::Refused,
        reason: "no signature fits any key".to_owned(),
        status: 401,
        event_id: String::new(),
        event: None,
        key: None,
        key_state: None,
        skew_ms: None,
        headers: Vec::new(),
        ..receipt(tenant, now, 2)
    };
    log.record_receipts(&[kept.clone(), bare.clone()]).await.unwrap();
    assert_eq!(log.receipt(tenant, kept.id).await.unwrap().unwrap(), kept);
    assert_eq!(log.receipt(tenant, bare.id).await.unwrap().unwrap(), bare);
    assert!(log.receipt(tenant, id(now, 3)).await.unwrap().is_none());
    log.record_receipts(&[]).await.unwrap();
}

async fn receipts_are_listed_newest_first_and_filtered(fixture: &Fixture) {
    let (tenant, now, log) = (fixture.tenant(), fixture.now(), &fixture.store.receipts);
    let all: Vec<Receipt> = (0..700).map(|number| receipt(tenant, now, number)).collect();
    let other = Receipt {
        source: SourceId::from_uuid(Uuid::from_u128(78)),
        decision: ReceiptDecision::Anomaly,
        ..receipt(tenant, now + Duration::from_secs(1), 0)
    };
    log.record_receipts(&all).await.unwrap();
    log.record_receipts(std::slice::from_ref(&other)).await.unwrap();
    let list = async |filter: ReceiptFilter, after, limit| {
        let found = log.receipts(tenant, &filter, after, limit).await.unwrap();
        found.into_iter().map(|receipt| receipt.id).collect::<Vec<_>>()
    };
    let everything = ReceiptFilter::default();
    assert_eq!(list(everything.clone(), None, 2).await, [other.id, id(now, 699)]);
    assert_eq!(list(everything.clone(), Some(other.id), 1).await, [id(now, 699)]);
    assert_eq!(list(everything, None, 1_000).await.len(), 701);
    let of_source = ReceiptFilter { source: Some(SOURCE), ..Default::default() };
    assert_eq!(list(of_source, None, 1_000).await.len(), 700);
    let anomalies =
        ReceiptFilter { decision: Some(ReceiptDecision::Anomaly), ..Default::default() };
    assert_eq!(list(anomalies, None, 10).await, [other.id]);
    let of_event = ReceiptFilter { event_id: Some("e-7".to_owned()), ..Default::default() };
    assert_eq!(list(of_event, None, 10).await, [id(now, 7)]);
}

async fn no_tenant_sees_receipts_of_another(fixture: &Fixture) {
    let (tenant, now, log) = (fixture.tenant(), fixture.now(), &fixture.store.receipts);
    log.record_receipts(&[receipt(tenant, now, 1)]).await.unwrap();
    let stranger = TenantId::from_uuid(Uuid::from_u128(4_711));
    assert!(log.receipt(stranger, id(now, 1)).await.unwrap().is_none());
    let seen = log.receipts(stranger, &ReceiptFilter::default(), None, 10).await.unwrap();
    assert!(seen.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn days_of_receipts_are_dropped_whole() {
    let Some(fixture) = Fixture::postgres().await else { return };
    let (tenant, log, start) = (fixture.tenant(), &fixture.store.receipts, fixture.now());
    let day = Duration::from_secs(24 * 3600);
    let days: Vec<Receipt> = (0..3).map(|n| receipt(tenant, start + day * n, n.into())).collect();
    log.record_receipts(&days).await.unwrap();
    let count =
        "select count(*) from pg_class where relname ~ '^receipt_d[0-9]+$' and relkind = 'r'";
    let before = fixture.number(count).await;
    let left = async || {
        let found = log.receipts(tenant, &ReceiptFilter::default(), None, 10).await.unwrap();
        found.into_iter().map(|receipt| receipt.id).collect::<Vec<_>>()
    };
    // The first day is over for some of its receipts: it stays whole until it is for all of them.
    log.prune_receipts(start + Duration::from_secs(60), start).await.unwrap();
    assert_eq!(left().await, [days[2].id, days[1].id, days[0].id]);
    log.prune_receipts(start + day, start).await.unwrap();
    assert_eq!(left().await, [days[2].id, days[1].id]);
    log.prune_receipts(start + day * 2, start).await.unwrap();
    assert_eq!(left().await, [days[2].id]);
    assert_eq!(fixture.number(count).await, before - 2);
    // A day that is gone is no fault: what comes late lands in the default partition, and goes from it.
    log.record_receipts(&[receipt(tenant, start, 9)]).await.unwrap();
    assert_eq!(log.prune_receipts(start + day * 2, start).await.unwrap(), 1);
    assert_eq!(left().await, [days[2].id]);
}

async fn old_receipts_and_payloads_whose_time_is_over_go(fixture: &Fixture) {
    let (tenant, now, log) = (fixture.tenant(), fixture.now(), &fixture.store.receipts);
    let day = Duration::from_secs(24 * 3600);
    let old = receipt(tenant, now - day * 31, 1);
    let with_payload = Receipt {
        payload: Some(Bytes::from_static(b"x")),
        payload_until: Some(now + day),
        ..receipt(tenant, now, 2)
    };
    log.record_receipts(&[old.clone(), with_payload.clone()]).await.unwrap();
    assert_eq!(log.prune_receipts(now - day * 30, now).await.unwrap(), 1);
    assert!(log.receipt(tenant, old.id).await.unwrap().is_none());
    assert_eq!(log.receipt(tenant, with_payload.id).await.unwrap().unwrap(), with_payload);
    // The payload's time is over, the receipt's is not. It counts: there may be more of them alone.
    assert_eq!(log.prune_receipts(now - day * 30, now + day * 2).await.unwrap(), 1);
    assert_eq!(log.prune_receipts(now - day * 30, now + day * 2).await.unwrap(), 0);
    let left = log.receipt(tenant, with_payload.id).await.unwrap().unwrap();
    assert!(left.payload.is_none() && left.payload_until.is_none());
}
