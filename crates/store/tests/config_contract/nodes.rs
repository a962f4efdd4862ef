//! What nodes report, and the epoch of the configuration.

use crate::common::{at, by, id, on_both_backends};
use crate::fixture::Fixture;
use sea_orm::ConnectionTrait as _;
use std::time::Duration;
use turnbuckle_domain::{
    AuditFilter, AuditTrail as _, ConfigPosition, ConfigSource as _, Epoch, HeldSnapshot, NodeId,
    NodeReport, NodeReports as _, NodeRole, PLATFORM, RefusedResource, Revision, Timestamp,
    node_limits,
};
use uuid::Uuid;

on_both_backends!(
    a_report_takes_the_place_of_the_one_before,
    nodes_that_are_silent_are_left_out_and_then_forgotten,
    an_accepted_snapshot_outlives_reports,
    whoever_accepts_a_snapshot_is_in_the_record,
    a_report_that_cannot_be_read_hides_no_other,
    an_epoch_is_random_and_begins_anew_once,
);

fn epoch(number: u128) -> Epoch {
    Epoch::from_uuid(Uuid::from_u128(number))
}

fn report(name: &str, role: NodeRole) -> NodeReport {
    NodeReport {
        node: id(name),
        role,
        epoch: epoch(1),
        applied: Revision(7),
        reported_at: at(100),
        started_at: at(1),
        version: "1.2.3".to_owned(),
        refused: Vec::new(),
        staleness: Duration::from_millis(1500),
        held: None,
    }
}

async fn a_report_takes_the_place_of_the_one_before(fixture: &Fixture) {
    let config = &fixture.config;
    let first = report("web-1", NodeRole::Delivery);
    assert_eq!(config.report_node(&first).await.unwrap(), None);
    // The same name in another role is another node.
    let door = report("web-1", NodeRole::Ingress);
    config.report_node(&door).await.unwrap();
    let second = NodeReport {
        applied: Revision(9),
        reported_at: at(105),
        refused: vec![RefusedResource {
            kind: "endpoints".to_owned(),
            uid: "a \"quoted\" ü".to_owned(),
            revision: Revision(8),
            reason: "slug cannot be used by this version".to_owned(),
        }],
        held: Some(HeldSnapshot {
            at: ConfigPosition { epoch: epoch(2), revision: Revision(3) },
            present: 33,
            removed: u32::MAX,
        }),
        ..first
    };
    config.report_node(&second).await.unwrap();
    assert_eq!(config.nodes(Timestamp::EPOCH).await.unwrap(), [second.clone(), door]);
    let mended = NodeReport { refused: Vec::new(), held: None, ..second };
    config.report_node(&mended).await.unwrap();
    assert_eq!(config.nodes(at(105)).await.unwrap(), [mended]);
}

async fn nodes_that_are_silent_are_left_out_and_then_forgotten(fixture: &Fixture) {
    let config = &fixture.config;
    let silent = report("old", NodeRole::Delivery);
    config.report_node(&silent).await.unwrap();
    let living = NodeReport { reported_at: at(200), ..report("new", NodeRole::Delivery) };
    config.report_node(&living).await.unwrap();
    assert_eq!(config.nodes(at(150)).await.unwrap(), std::slice::from_ref(&living));
    assert_eq!(config.nodes(Timestamp::EPOCH).await.unwrap().len(), 2);
    let later = at(101) + node_limits::FORGOTTEN_AFTER;
    let living = NodeReport { reported_at: later, ..living };
    config.report_node(&living).await.unwrap();
    assert_eq!(config.nodes(Timestamp::EPOCH).await.unwrap(), [living]);
}

async fn an_accepted_snapshot_outlives_reports(fixture: &Fixture) {
    let config = &fixture.config;
    let one = report("web-1", NodeRole::Delivery);
    let snapshot = ConfigPosition { epoch: epoch(2), revision: Revision(3) };
    assert!(
        !config.accept_snapshot(&one.id(), snapshot, &by()).await.unwrap(),
        "nobody of that name"
    );
    config.report_node(&one).await.unwrap();
    config.report_node(&report("web-2", NodeRole::Delivery)).await.unwrap();
    let other_role = NodeId { role: NodeRole::Ingress, ..one.id() };
    assert!(!config.accept_snapshot(&other_role, snapshot, &by()).await.unwrap());
    assert!(config.accept_snapshot(&one.id(), snapshot, &by()).await.unwrap());
    for _ in 0..2 {
        assert_eq!(config.report_node(&one).await.unwrap(), Some(snapshot));
    }
    let two = report("web-2", NodeRole::Delivery);
    assert_eq!(config.report_node(&two).await.unwrap(), None, "it was not asked about this one");
}

async fn whoever_accepts_a_snapshot_is_in_the_record(fixture: &Fixture) {
    let config = &fixture.config;
    let one = report("web-1", NodeRole::Delivery);
    let snapshot = ConfigPosition { epoch: epoch(2), revision: Revision(3) };
    let record = async || {
        let all = AuditFilter::default();
        config.audit_entries(PLATFORM, &all, None, 10).await.unwrap()
    };
    assert!(!config.accept_snapshot(&one.id(), snapshot, &by()).await.unwrap());
    assert!(record().await.is_empty(), "nothing was accepted");
    config.report_node(&one).await.unwrap();
    config.accept_snapshot(&one.id(), snapshot, &by()).await.unwrap();
    let next = ConfigPosition { revision: Revision(4), ..snapshot };
    config.accept_snapshot(&one.id(), next, &by()).await.unwrap();
    let entries = record().await;
    assert_eq!(entries.len(), 2);
    assert_eq!(
        (entries[0].resource.as_str(), entries[0].subject.as_str()),
        ("nodes/delivery.web-1", "alice")
    );
    let change = &entries[0].changes[0];
    assert_eq!(change.field, "accepted.revision");
    assert_eq!((change.before.as_deref(), change.after.as_deref()), (Some("3"), Some("4")));
}

async fn a_report_that_cannot_be_read_hides_no_other(fixture: &Fixture) {
    let config = &fixture.config;
    config.report_node(&report("web-1", NodeRole::Delivery)).await.unwrap();
    config.report_node(&report("web-2", NodeRole::Delivery)).await.unwrap();
    let damage = "update node set refused = '{' where name = 'web-1'";
    fixture.db.execute_unprepared(damage).await.unwrap();
    let seen = config.nodes(Timestamp::EPOCH).await.unwrap();
    assert_eq!(seen, [report("web-2", NodeRole::Delivery)]);
}

async fn an_epoch_is_random_and_begins_anew_once(fixture: &Fixture) {
    let config = &fixture.config;
    fixture.tenant("acme").await;
    let first = config.position().await.unwrap();
    assert!(first.is_proven && first.at.epoch != Epoch::default());
    assert_eq!(first.at.revision, Revision(1));
    config.begin_epoch(first.at.epoch, epoch(2)).await.unwrap();
    let second = config.position().await.unwrap().at;
    assert_eq!(second, ConfigPosition { epoch: epoch(2), revision: Revision(1) });
    // Somebody who is late does not begin another one.
    config.begin_epoch(first.at.epoch, epoch(3)).await.unwrap();
    assert_eq!(config.position().await.unwrap().at, second);
    let delta = config.changes_since(Revision::ZERO).await.unwrap();
    assert_eq!((delta.epoch, delta.revision), (epoch(2), Revision(1)));
}
