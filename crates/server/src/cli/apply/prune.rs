//! Taking away what files declare no more.

use super::{
    Apply,
    kind::{KINDS, Kind},
    manifest::Document,
    report::{Action, Outcome},
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tonic::{Code, Status};

/// The kind whose deletion takes others along, and the kind of those others.
const OWNER: &str = "Endpoint";
const OWNED: &str = "Subscription";
/// The field of an owned resource that names its owner.
const OWNER_FIELD: &str = "endpoint";

/// What stays of the owned resources of a tenant, by the name of their owner.
type Staying = BTreeMap<String, Vec<String>>;

impl Apply<'_> {
    /// What refers goes before what is referred to. What would take something along that is not to go
    /// stays, and is told at the end.
    pub(super) async fn prune(
        &mut self,
        documents: &[Document],
        parent: &str,
    ) -> Result<(), Status> {
        let declared: HashSet<&str> = documents.iter().map(|it| it.name.as_str()).collect();
        let mut tenants: BTreeSet<&str> = documents.iter().map(Document::tenant).collect();
        if documents.is_empty() {
            tenants.insert(parent);
        }
        let tenants: Vec<&str> =
            tenants.into_iter().filter(|tenant| !self.planned.contains(*tenant)).collect();
        let mut kept = Vec::new();
        for tenant in tenants {
            let mut staying = Staying::new();
            for kind in KINDS.iter().rev().filter(|kind| !kind.is_tenant()) {
                let rows = self.remote.list(kind, tenant).await?;
                kept.extend(self.prune_kind(kind, rows, &declared, &mut staying).await?);
            }
        }
        if kept.is_empty() { Ok(()) } else { Err(Status::failed_precondition(kept.join("\n"))) }
    }

    async fn prune_kind(
        &mut self,
        kind: &'static Kind,
        rows: Vec<Map<String, Value>>,
        declared: &HashSet<&str>,
        staying: &mut Staying,
    ) -> Result<Vec<String>, Status> {
        let mut kept = Vec::new();
        for row in rows {
            let Some(Value::String(name)) = row.get("name") else { continue };
            if !self.bears_labels(&row) || declared.contains(name.as_str()) {
                if let Some(Value::String(owner)) =
                    row.get(OWNER_FIELD).filter(|_| kind.name == OWNED)
                {
                    staying.entry(owner.clone()).or_default().push(name.clone());
                }
                continue;
            }
            if let Some(along) = staying.get(name).filter(|_| kind.name == OWNER) {
                kept.push(format!(
                    "{name} was not deleted: it would take along {}; move or delete these first, or \
                     declare the endpoint",
                    along.join(", ")
                ));
                continue;
            }
            if !self.args.dry_run {
                match self.remote.delete(kind, name).await {
                    // Something that stays refers to it.
                    Err(status) if status.code() == Code::FailedPrecondition => {
                        kept.push(format!("{name} was not deleted: {}", status.message()));
                        continue;
                    }
                    deleted => deleted?,
                };
            }
            let (name, changes) = (name.clone(), Vec::new());
            self.outcomes.push(Outcome { name, action: Action::Deleted, changes });
        }
        Ok(kept)
    }

    fn bears_labels(&self, row: &Map<String, Value>) -> bool {
        let labels = row.get("labels");
        self.args.labels.iter().all(|(key, value)| {
            labels.and_then(|labels| labels.get(key)) == Some(&Value::from(value.as_str()))
        })
    }
}
