//! Denied calls in the audit record: in the same chain, without a revision.

use crate::common::{at, by, endpoint, id, on_both_backends, ring, tenant};
use crate::fixture::{Fixture, refusal};
use std::sync::Arc;
use turnbuckle_domain::{
    AuditEntry, AuditFilter, AuditId, AuditOutcome, AuditTrail as _, ConfigSource as _,
    ConfigStore as _, Denial, DenialLog as _, DenialReason, PLATFORM, Revision, Role, TenantId,
    verify_chain,
};
use uuid::Uuid;

on_both_backends!(
    a_denial_is_in_the_record_of_the_callers_tenant,
    denials_and_changes_share_one_chain_that_holds,
    a_denial_that_cannot_be_recorded_takes_the_others_along,
    names_of_deleted_tenants_are_never_given_again,
);

const WRITERS: usize = 6;

fn denial(tenant: Option<&str>, method: &str) -> Denial {
    Denial {
        id: AuditId::from_uuid(Uuid::now_v7()),
        subject: "mallory".to_owned(),
        role: Role::Viewer,
        tenant: tenant.map(id),
        method: method.to_owned(),
        reason: DenialReason::Role,
        count: 7,
        first_at: at(10),
        last_at: at(20),
    }
}

async fn record(fixture: &Fixture, tenant: TenantId) -> Vec<AuditEntry> {
    let all = AuditFilter::default();
    fixture.config.audit_entries(tenant, &all, None, 1000).await.unwrap()
}

async fn a_denial_is_in_the_record_of_the_callers_tenant(fixture: &Fixture) {
    let config = &fixture.config;
    let (acme, gone) = (fixture.tenant("acme").await, fixture.tenant("gone").await);
    config.delete_tenant(&gone, at(9), &by()).await.unwrap();
    let revision = fixture.revision().await;
    let owners = [Some("acme"), None, Some("gone"), Some("never-made")];
    let denials = owners.map(|owner| denial(owner, "S/M"));
    config.record_denials(&denials).await.unwrap();
    config.record_denials(&[]).await.unwrap();
    assert_eq!(fixture.revision().await, revision);
    assert!(config.changes_since(revision).await.unwrap().tenants.is_empty());

    let entry = record(fixture, acme.id).await.swap_remove(0);
    assert_eq!((entry.id, entry.sequence), (denials[0].id, 2));
    assert_eq!((entry.subject.as_str(), entry.role.as_str()), ("mallory", "viewer"));
    assert_eq!((entry.method.as_str(), entry.resource.as_str()), ("S/M", "tenants/acme"));
    assert_eq!((entry.outcome, entry.revision), (AuditOutcome::Denied, Revision::ZERO));
    assert_eq!((entry.at, entry.reason.as_str()), (at(10), DenialReason::Role.as_str()));
    let shown: Vec<_> = entry
        .changes
        .iter()
        .map(|change| (change.field.as_str(), change.after.as_deref().unwrap_or_default()))
        .collect();
    assert_eq!(
        shown,
        [
            ("denied.count", "7"),
            ("denied.first_time", "10000000us"),
            ("denied.last_time", "20000000us")
        ]
    );
    assert_eq!(record(fixture, gone.id).await[0].id, denials[2].id);
    let platform: Vec<_> = record(fixture, PLATFORM).await;
    let resources: Vec<&str> = platform.iter().map(|entry| entry.resource.as_str()).collect();
    assert_eq!(resources, ["tenants/never-made", "platform"]);
}

async fn denials_and_changes_share_one_chain_that_holds(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (config, owner) = (Arc::clone(&fixture.config), acme.id);
            tokio::spawn(async move {
                for write in 0..WRITERS {
                    if writer % 2 == 0 {
                        let both = [denial(Some("acme"), "S/M"), denial(Some("acme"), "S/N")];
                        config.record_denials(&both).await.unwrap();
                    } else {
                        let new = endpoint(owner, &format!("e-{writer}-{write}"));
                        config.create_endpoint(new, ring(), &by()).await.unwrap();
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let head = fixture.config.audit_head(acme.id).await.unwrap().unwrap();
    let entries = record(fixture, acme.id).await;
    let denied = entries.iter().filter(|entry| entry.outcome == AuditOutcome::Denied).count();
    assert_eq!(denied, WRITERS * WRITERS);
    let only = AuditFilter { outcome: Some(AuditOutcome::Denied), ..AuditFilter::default() };
    let found = fixture.config.audit_entries(acme.id, &only, None, 1000).await.unwrap();
    assert_eq!(found.len(), denied);
    // Changes keep the order of their revisions among them.
    let revisions: Vec<_> = entries
        .iter()
        .filter(|entry| entry.outcome == AuditOutcome::Applied)
        .map(|entry| entry.revision)
        .collect();
    assert!(revisions.windows(2).all(|pair| pair[0] > pair[1]));
    let count = u64::try_from(1 + WRITERS * WRITERS * 3 / 2).unwrap();
    assert_eq!(verify_chain(&head, entries), Ok(count));
}

async fn a_denial_that_cannot_be_recorded_takes_the_others_along(fixture: &Fixture) {
    let acme = fixture.tenant("acme").await;
    let good = denial(Some("acme"), "S/M");
    let endless = denial(Some("acme"), &"m".repeat(201));
    let refused = fixture.config.record_denials(&[good.clone(), endless]).await;
    assert_eq!(refusal(refused).0, "INTERNAL");
    assert_eq!(record(fixture, acme.id).await.len(), 1);
    fixture.config.record_denials(&[good]).await.unwrap();
    let head = fixture.config.audit_head(acme.id).await.unwrap().unwrap();
    assert_eq!(verify_chain(&head, record(fixture, acme.id).await), Ok(2));
}

async fn names_of_deleted_tenants_are_never_given_again(fixture: &Fixture) {
    let config = &fixture.config;
    let acme = fixture.tenant("acme").await;
    config.delete_tenant(&acme, at(9), &by()).await.unwrap();
    let revision = fixture.revision().await;
    let error = config.create_tenant(tenant("acme"), &by()).await.unwrap_err();
    assert_eq!(error.reason(), "NAME_RETIRED");
    let text = error.to_string();
    assert!(text.contains("tenants/acme") && text.contains("another id"), "{text}");
    assert_eq!(fixture.revision().await, revision);
    assert_eq!(config.tenant(&id("acme")).await.unwrap(), None);
    // A live tenant's name is taken, which is another refusal.
    fixture.tenant("other").await;
    let taken = config.create_tenant(tenant("other"), &by()).await;
    assert_eq!(refusal(taken), ("ALREADY_EXISTS", "tenants/other".to_owned()));
}
