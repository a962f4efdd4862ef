//! Pull endpoints: kept as they were written, without keys.

use crate::{
    common::{at, by, endpoint, on_both_backends},
    fixture::Fixture,
};
use std::time::Duration;
use turnbuckle_domain::{
    ConfigSource as _, ConfigStore as _, Endpoint, EndpointTarget, KeyRing, PullTarget, Revision,
    Tombstones as _,
};

on_both_backends!(a_pull_endpoint_is_kept_with_its_settings,);

async fn a_pull_endpoint_is_kept_with_its_settings(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    let pull = PullTarget {
        lease: Duration::from_millis(7_500),
        max_outstanding: 321,
        ordered_by_subject: true,
    };
    let target = EndpointTarget::Pull(pull);
    let made = Endpoint { target, ..endpoint(acme.id, "jobs") };
    let made = config.create_endpoint(made, KeyRing::default(), &by()).await.unwrap();
    let found = config.endpoint(acme.id, &made.slug).await.unwrap().unwrap();
    assert_eq!(found, made);
    assert!(config.key_ring(acme.id, made.id.into()).await.unwrap().keys.is_empty());
    let delta = config.changes_since(Revision::ZERO).await.unwrap();
    assert_eq!(delta.endpoints[0].value, made);
    let mut changed = made.clone();
    changed.target = EndpointTarget::Pull(PullTarget::default());
    let changed = config.update_endpoint(changed, made.meta.revision, &by()).await.unwrap();
    assert_eq!(config.endpoint(acme.id, &made.slug).await.unwrap(), Some(changed.clone()));
    config.delete_endpoint(&changed, at(9), &by()).await.unwrap();
    let kept = config.kept_endpoint(acme.id, made.id).await.unwrap().unwrap();
    assert_eq!(kept.value.target, changed.target);
    let back = config.undelete_endpoint(&kept.value, at(10), &by()).await.unwrap();
    assert_eq!(back.target, changed.target);
}
