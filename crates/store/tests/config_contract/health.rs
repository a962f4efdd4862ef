//! Health of endpoints, and what is disabled because of it.

use crate::common::{at, by, on_both_backends};
use crate::fixture::Fixture;
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    AuditFilter, AuditTrail as _, ChangeContext, ConfigSource as _, ConfigStore as _, DisableCause,
    DisableRule, Endpoint, EndpointState, HealthChange, HealthStore as _, OperationKind, Timestamp,
};

on_both_backends!(
    what_two_workers_saw_adds_up,
    an_endpoint_is_disabled_once_with_an_entry_and_a_notice,
    an_enabled_endpoint_begins_with_a_clean_clock,
    health_belongs_to_its_tenant,
);

const RULE: DisableRule = DisableRule { after: Some(Duration::from_secs(1_000)), failures_min: 2 };

/// An active endpoint.
async fn active(fixture: &Fixture, tenant: &str) -> Endpoint {
    let tenant = fixture.tenant(tenant).await;
    let endpoint = fixture.endpoint(&tenant, "orders").await;
    set(fixture, endpoint, EndpointState::Active, at(5)).await
}

async fn set(
    fixture: &Fixture,
    endpoint: Endpoint,
    state: EndpointState,
    when: Timestamp,
) -> Endpoint {
    let expected = endpoint.meta.revision;
    let by = ChangeContext { at: when, ..by() };
    fixture.config.update_endpoint(Endpoint { state, ..endpoint }, expected, &by).await.unwrap()
}

fn failures(endpoint: &Endpoint, seconds: &[i64]) -> HealthChange {
    let mut change = HealthChange::new(endpoint.tenant, endpoint.id);
    seconds.iter().for_each(|second| change.failed(at(*second), "refused"));
    change
}

async fn what_two_workers_saw_adds_up(fixture: &Fixture) {
    let orders = active(fixture, "acme").await;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let config = Arc::clone(&fixture.config);
            let change = failures(&orders, &[100 + writer, 200 + writer]);
            tokio::spawn(async move { config.add_health(&[change]).await })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
    let health = fixture.config.health(orders.tenant, &[orders.id]).await.unwrap().remove(0);
    let failing = health.failing.clone().unwrap();
    assert_eq!((failing.since, failing.until, failing.count), (at(100), at(207), 16));
    let mut change = HealthChange::new(orders.tenant, orders.id);
    change.succeeded(at(300));
    let health = fixture.config.add_health(&[change]).await.unwrap().remove(0);
    assert_eq!((health.failing, health.last_success_at), (None, Some(at(300))));
    assert_eq!(health.last_failure_at, Some(at(207)));
    assert!(fixture.config.add_health(&[]).await.unwrap().is_empty());
}

async fn an_endpoint_is_disabled_once_with_an_entry_and_a_notice(fixture: &Fixture) {
    let orders = active(fixture, "acme").await;
    let (tenant, id, config) = (orders.tenant, orders.id, &fixture.config);
    let cause = DisableCause::Failing(RULE);
    config.add_health(&[failures(&orders, &[100, 1_099])]).await.unwrap();
    let before = config.revision().await.unwrap();
    assert_eq!(config.disable_unhealthy(tenant, id, cause, &by()).await.unwrap(), None);
    assert_eq!(config.revision().await.unwrap(), before, "nothing was done");
    config.add_health(&[failures(&orders, &[1_100])]).await.unwrap();
    let attempts: Vec<_> = (0..4)
        .map(|_| {
            let config = Arc::clone(config);
            tokio::spawn(async move { config.disable_unhealthy(tenant, id, cause, &by()).await })
        })
        .collect();
    let mut revisions = Vec::new();
    for attempt in attempts {
        revisions.extend(attempt.await.unwrap().unwrap());
    }
    assert_eq!(revisions.len(), 1, "four workers, one change");
    let found = config.endpoint(tenant, &orders.slug).await.unwrap().unwrap();
    let EndpointState::Disabled { reason } = &found.state else { panic!("still active") };
    assert!(reason.contains("all of 3 attempts"), "{reason}");
    let entries = config.audit_entries(tenant, &AuditFilter::default(), None, 1).await.unwrap();
    assert_eq!(entries[0].revision, revisions[0]);
    let notices = config.notices(10).await.unwrap();
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0].event.kind, OperationKind::EndpointDisabled);
    assert_eq!(notices[0].event.subject, "endpoints/orders");
    assert_eq!(notices[0].event.data["cause"], "failing");
    config.notices_told(&[notices[0].id]).await.unwrap();
    assert!(config.notices(10).await.unwrap().is_empty());
}

async fn an_enabled_endpoint_begins_with_a_clean_clock(fixture: &Fixture) {
    let orders = active(fixture, "acme").await;
    let (tenant, id, config) = (orders.tenant, orders.id, &fixture.config);
    let gone = DisableCause::Gone { at: at(1_500) };
    assert!(config.disable_unhealthy(tenant, id, gone, &by()).await.unwrap().is_some());
    config.add_health(&[failures(&orders, &[100, 1_500])]).await.unwrap();
    let disabled = config.endpoint(tenant, &orders.slug).await.unwrap().unwrap();
    let enabled = set(fixture, disabled, EndpointState::Active, at(2_000)).await;
    // What a worker had seen before and tells only now.
    config.add_health(&[failures(&orders, &[100, 1_999])]).await.unwrap();
    for cause in [gone, DisableCause::Failing(RULE)] {
        let answer = config.disable_unhealthy(tenant, id, cause, &by()).await.unwrap();
        assert_eq!(answer, None, "{cause:?}");
    }
    // A change that does not enable it leaves the clock alone.
    config.add_health(&[failures(&orders, &[2_100])]).await.unwrap();
    set(fixture, enabled, EndpointState::Active, at(2_500)).await;
    let health = config.add_health(&[failures(&orders, &[3_100])]).await.unwrap().remove(0);
    assert!(RULE.is_due(&health));
    let cause = DisableCause::Failing(RULE);
    assert!(config.disable_unhealthy(tenant, id, cause, &by()).await.unwrap().is_some());
}

async fn health_belongs_to_its_tenant(fixture: &Fixture) {
    let orders = active(fixture, "acme").await;
    let stranger = fixture.tenant("stranger").await;
    fixture.config.add_health(&[failures(&orders, &[100, 2_000])]).await.unwrap();
    assert!(fixture.config.health(stranger.id, &[orders.id]).await.unwrap().is_empty());
    let cause = DisableCause::Failing(RULE);
    let answer = fixture.config.disable_unhealthy(stranger.id, orders.id, cause, &by()).await;
    assert_eq!(answer.unwrap(), None);
}
