//! What people do to deliveries: retry, cancel, list.

use std::{collections::BTreeSet, time::Duration};
use tonic::Code;
use turnbuckle_client::ApiError;
use turnbuckle_proto::v1::{
    CancelDeliveryRequest, Delivery, DeliveryState, Endpoint, ListDeliveriesRequest,
    RetryDeliveryRequest,
};
use turnbuckle_testkit::receiver::{Answer, Receiver, Script};
use turnbuckle_tests::{Scene, Server, StoreKind, http_endpoint};

on_both_stores!(
    a_dead_delivery_is_delivered_after_a_manual_retry_and_numbering_goes_on,
    a_manual_retry_in_the_middle_keeps_the_automatic_ones,
    a_cancelled_delivery_is_not_sent_again,
    every_delivery_is_listed_once_over_all_pages,
);

async fn retry(scene: &Scene, delivery: &Delivery) -> anyhow::Result<Delivery> {
    let request = RetryDeliveryRequest { name: delivery.name.clone() };
    Ok(scene.client.deliveries().retry_delivery(request).await?.into_inner())
}

async fn a_dead_delivery_is_delivered_after_a_manual_retry_and_numbering_goes_on(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::always(Answer::status(500))).await?;
    let scene = Scene::set(&server).await?;
    let retry_policy = scene.delays("two", &[Duration::from_millis(10)], 2).await?;
    scene.raw("shop", Endpoint { retry_policy, ..http_endpoint(&receiver.url("/")) }).await?;
    let event = scene.publish("e", r#"{"a": 1}"#).await?.name;
    let dead = scene.ended(&event, DeliveryState::Dead).await?;
    assert_eq!(dead.attempts, 2);
    receiver.change_script(Script::sequence([Answer::status(500), Answer::status(200)]));
    let opened = retry(&scene, &dead).await?;
    assert_eq!(opened.name, dead.name);
    let done = scene.ended(&event, DeliveryState::Delivered).await?;
    assert_eq!((done.name.as_str(), done.attempts), (dead.name.as_str(), 4));
    let numbers: Vec<i32> =
        scene.attempts(&done).await?.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let received = receiver.received();
    let sent: Vec<_> = received.iter().filter_map(|r| r.header("turnbuckle-attempt")).collect();
    assert_eq!(sent, ["1", "2", "3", "4"]);
    assert!(received.iter().all(|request| request.body == r#"{"a": 1}"#));
    let keys: BTreeSet<_> = received.iter().map(|r| r.header("idempotency-key")).collect();
    assert_eq!(keys.len(), 1);

    // Even a delivered one can be sent again: somebody asked for it.
    retry(&scene, &done).await?;
    let again = scene.tried(&event, 5).await?;
    assert_eq!(again.attempts, 5);
    Ok(())
}

async fn a_manual_retry_in_the_middle_keeps_the_automatic_ones(
    kind: StoreKind,
) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::always(Answer::status(500))).await?;
    let scene = Scene::set(&server).await?;
    let short = Duration::from_millis(10);
    let retry_policy =
        scene.delays("long", &[Duration::from_millis(1500), short, short], 4).await?;
    scene.raw("shop", Endpoint { retry_policy, ..http_endpoint(&receiver.url("/")) }).await?;
    let event = scene.publish("e", "{}").await?.name;
    let waiting = scene.tried(&event, 1).await?;
    assert!(waiting.next_attempt_time.is_some());
    retry(&scene, &waiting).await?;
    // Ours comes at once and between the four of the policy, whose schedule goes on after it.
    let dead = scene.ended(&event, DeliveryState::Dead).await?;
    assert_eq!((dead.attempts, dead.reason.as_str()), (5, "ATTEMPTS_EXHAUSTED"));
    let at: Vec<_> = receiver.received().iter().map(|request| request.at).collect();
    assert!(at[1] - at[0] < Duration::from_millis(1500), "the manual retry waited");
    assert_eq!(receiver.count(), 5);
    Ok(())
}

async fn a_cancelled_delivery_is_not_sent_again(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::always(Answer::status(500))).await?;
    let scene = Scene::set(&server).await?;
    let retry_policy = scene.delays("soon", &[Duration::from_millis(300)], 50).await?;
    let endpoint = Endpoint { retry_policy, ..http_endpoint(&receiver.url("/")) };
    scene.raw("shop", endpoint).await?;
    let event = scene.publish("e", "{}").await?.name;
    let waiting = scene.tried(&event, 1).await?;
    let request = CancelDeliveryRequest { name: waiting.name.clone() };
    let cancelled = scene.client.deliveries().cancel_delivery(request.clone()).await?.into_inner();
    assert_eq!(cancelled.state(), DeliveryState::Cancelled);
    assert_eq!(cancelled.reason, "CANCELLED_BY_CALLER");
    let at_cancel = receiver.count();
    let again = scene.client.deliveries().cancel_delivery(request).await;
    let error = ApiError::new(&again.err().ok_or_else(|| anyhow::anyhow!("cancelled twice"))?);
    assert_eq!(
        (error.code, error.reason.as_deref()),
        (Code::FailedPrecondition, Some("DELIVERY_FINISHED"))
    );
    // An event that fails twice after it: the cancelled one would have come before.
    let later = scene.publish("later", "{}").await?.name;
    scene.tried(&later, 3).await?;
    let of_first =
        receiver.received().iter().filter(|r| r.header("webhook-id") == Some("e")).count();
    assert!(of_first as u64 <= at_cancel, "it was sent after it had been cancelled");
    assert_eq!(scene.delivery_of(&event).await?.state(), DeliveryState::Cancelled);
    Ok(())
}

async fn every_delivery_is_listed_once_over_all_pages(kind: StoreKind) -> anyhow::Result<()> {
    let server = or_skip!(Server::start(kind, &[]).await?);
    let receiver = Receiver::start(Script::default().on("/bad", [Answer::status(404)])).await?;
    let scene = Scene::set(&server).await?;
    let bad = scene.raw("bad", http_endpoint(&receiver.url("/bad"))).await?;
    scene.raw("good", http_endpoint(&receiver.url("/good"))).await?;
    for number in 0..23 {
        scene.publish(&format!("e{number}"), "{}").await?;
    }
    scene.drained().await?;
    let mut names = Vec::new();
    let mut page = ListDeliveriesRequest {
        parent: scene.tenant.clone(),
        page_size: 10,
        ..ListDeliveriesRequest::default()
    };
    loop {
        let answer = scene.client.deliveries().list_deliveries(page.clone()).await?.into_inner();
        assert!(answer.deliveries.len() <= 10);
        names.extend(answer.deliveries.into_iter().map(|delivery| delivery.name));
        if answer.next_page_token.is_empty() {
            break;
        }
        page.page_token = answer.next_page_token;
    }
    assert_eq!(names.len(), 46);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 46);
    assert_eq!(scene.count(DeliveryState::Delivered).await?, 23);
    let dead = ListDeliveriesRequest {
        endpoint: bad.name,
        state: DeliveryState::Dead.into(),
        ..ListDeliveriesRequest::default()
    };
    assert_eq!(scene.deliveries(dead).await?.len(), 23);
    // A token belongs to the list it came from.
    page.state = DeliveryState::Dead.into();
    let refused = scene.client.deliveries().list_deliveries(page).await;
    assert_eq!(refused.err().map(|status| status.code()), Some(Code::InvalidArgument));
    Ok(())
}
