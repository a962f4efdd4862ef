//! Where the rotation of a ring stands.

use crate::{
    key_owner::Owner,
    key_ring::{KeyRingView, Keys},
    names::KeyRingName,
    write::named,
};
use turnbuckle_domain::{Caller, Endpoint, Error, Evidence, NodeApplied, Standing};

/// A ring with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRingStatus {
    pub(crate) view: KeyRingView,
    pub(crate) evidence: Evidence,
    pub(crate) standing: Standing,
}

impl Keys {
    pub(crate) async fn status(
        &self,
        caller: &Caller,
        name: &KeyRingName,
    ) -> Result<KeyRingStatus, Error> {
        let owner = self.0.owner(caller, &name.0).await?;
        let ring = self.0.store.key_ring(owner.tenant(), owner.key_owner()).await;
        let ring = ring.map_err(|error| named(error, &name.to_string()))?;
        let at = self.0.clock.now();
        let (evidence, standing) = match &owner {
            Owner::Endpoint(endpoint) => {
                let evidence = self.evidence(caller, endpoint).await?;
                let standing = Standing::of(&ring, &evidence, at);
                (evidence, standing)
            }
            Owner::Source(source) => {
                let usage = self.0.key_usage.source_usage(source.tenant, source.id).await?;
                let standing = Standing::of_incoming(&ring, &usage, at);
                (Evidence { usage, ..Evidence::default() }, standing)
            }
        };
        let summary = standing.summary.clone();
        let view = KeyRingView { owner: name.0.clone(), ring, at, summary };
        Ok(KeyRingStatus { view, evidence, standing })
    }

    async fn evidence(&self, caller: &Caller, endpoint: &Endpoint) -> Result<Evidence, Error> {
        let nodes = self.nodes(caller).await?;
        let now = self.0.clock.now();
        let refusing = nodes.iter().filter(|node| node.is_alive(now)).filter_map(|node| {
            let reason = node.refuses_ring(endpoint.id)?;
            Some((node.node.clone(), reason))
        });
        Ok(Evidence {
            usage: self.0.key_usage.ring_usage(endpoint.tenant, endpoint.id).await?,
            refusing: refusing.collect(),
            nodes,
        })
    }

    /// What delivery nodes work by, as this caller may know it.
    pub(crate) async fn nodes(&self, caller: &Caller) -> Result<Vec<NodeApplied>, Error> {
        let nodes = self.0.applied.applied_revisions().await?;
        Ok(if caller.tenant.is_some() { NodeApplied::numbered(nodes) } else { nodes })
    }
}
