//! What nodes last reported.

use crate::config::cell::{self, Malformed};
use sea_orm::{ActiveValue::Set, entity::prelude::*};
use serde_json::{Value, json};
use std::time::Duration;
use turnbuckle_domain::{
    ConfigPosition, Epoch, HeldSnapshot, NodeReport, NodeRole, RefusedResource, Revision, Timestamp,
};

#[derive(Clone, Debug, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "node")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub role: String,
    #[sea_orm(primary_key, auto_increment = false)]
    pub name: String,
    pub epoch: Uuid,
    pub applied: i64,
    pub reported_at_us: i64,
    pub started_at_us: i64,
    pub version: String,
    pub staleness_us: i64,
    pub refused: String,
    pub held_epoch: Option<Uuid>,
    pub held_revision: Option<i64>,
    pub held_present: Option<i64>,
    pub held_removed: Option<i64>,
    pub accepted_epoch: Option<Uuid>,
    pub accepted_revision: Option<i64>,
}

#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

/// Every column of a report, and so not what operators accept.
pub(in crate::config) const REPORTED: [Column; 11] = [
    Column::Epoch,
    Column::Applied,
    Column::ReportedAtUs,
    Column::StartedAtUs,
    Column::Version,
    Column::StalenessUs,
    Column::Refused,
    Column::HeldEpoch,
    Column::HeldRevision,
    Column::HeldPresent,
    Column::HeldRemoved,
];

pub(in crate::config) fn encode(report: &NodeReport) -> ActiveModel {
    let held = report.held.as_ref();
    ActiveModel {
        role: Set(report.role.as_str().to_owned()),
        name: Set(report.node.as_str().to_owned()),
        epoch: Set(report.epoch.uuid()),
        applied: Set(report.applied.0),
        reported_at_us: Set(report.reported_at.micros()),
        started_at_us: Set(report.started_at.micros()),
        version: Set(report.version.clone()),
        staleness_us: Set(crate::micros(report.staleness)),
        refused: Set(Value::from_iter(report.refused.iter().map(refused_json)).to_string()),
        held_epoch: Set(held.map(|held| held.at.epoch.uuid())),
        held_revision: Set(held.map(|held| held.at.revision.0)),
        held_present: Set(held.map(|held| i64::from(held.present))),
        held_removed: Set(held.map(|held| i64::from(held.removed))),
        accepted_epoch: Set(None),
        accepted_revision: Set(None),
    }
}

pub(in crate::config) fn decode(row: Model) -> Result<NodeReport, Malformed> {
    let refused: Option<Vec<Value>> = serde_json::from_str(&row.refused).ok();
    let refused = refused.and_then(|list| list.iter().map(refused_resource).collect());
    let staleness = u64::try_from(row.staleness_us).ok().map(Duration::from_micros);
    let held = held(&row)?;
    Ok(NodeReport {
        node: cell::resource_id(row.name)?,
        role: cell::expect("role", NodeRole::parse(&row.role))?,
        epoch: Epoch::from_uuid(row.epoch),
        applied: Revision(row.applied),
        reported_at: Timestamp::from_micros(row.reported_at_us),
        started_at: Timestamp::from_micros(row.started_at_us),
        version: row.version,
        refused: cell::expect("refused", refused)?,
        staleness: cell::expect("staleness_us", staleness)?,
        held,
    })
}

/// The snapshot that an operator accepted.
pub(in crate::config) fn accepted(row: &Model) -> Option<ConfigPosition> {
    let epoch = Epoch::from_uuid(row.accepted_epoch?);
    Some(ConfigPosition { epoch, revision: Revision(row.accepted_revision?) })
}

fn held(row: &Model) -> Result<Option<HeldSnapshot>, Malformed> {
    let Some(epoch) = row.held_epoch else { return Ok(None) };
    let count = |cell: Option<i64>| cell.and_then(|count| u32::try_from(count).ok());
    let held = || {
        let epoch = Epoch::from_uuid(epoch);
        Some(HeldSnapshot {
            at: ConfigPosition { epoch, revision: Revision(row.held_revision?) },
            present: count(row.held_present)?,
            removed: count(row.held_removed)?,
        })
    };
    cell::expect("held_revision", held()).map(Some)
}

fn refused_json(refused: &RefusedResource) -> Value {
    let RefusedResource { kind, uid, revision, reason } = refused;
    json!({"kind": kind, "uid": uid, "revision": revision.0, "reason": reason})
}

fn refused_resource(json: &Value) -> Option<RefusedResource> {
    let text = |name: &str| json.get(name)?.as_str().map(str::to_owned);
    Some(RefusedResource {
        kind: text("kind")?,
        uid: text("uid")?,
        revision: Revision(json.get("revision")?.as_i64()?),
        reason: text("reason")?,
    })
}
