//! Reading configuration by revision.

use super::{
    ConfigDb, api_tokens,
    entity::{endpoint, event_type, retry_policy, source, subscription, tenant},
    ring_tables::{OfEndpoints, OfSources},
    rings,
    table::changed_since,
    versions,
    write::{begin_snapshot, position},
};
use crate::error::store_error;
use async_trait::async_trait;
use turnbuckle_domain::{ConfigDelta, ConfigSource, Revision, SourcePosition, StoreError};

#[async_trait]
impl ConfigSource for ConfigDb {
    async fn revision(&self) -> Result<Revision, StoreError> {
        Ok(position(&self.db).await?.revision)
    }

    async fn changes_since(&self, known: Revision) -> Result<ConfigDelta, StoreError> {
        let snapshot = begin_snapshot(&self.db).await?;
        let at = position(&snapshot).await?;
        let delta = ConfigDelta {
            epoch: at.epoch,
            revision: at.revision,
            tenants: changed_since::<tenant::Entity>(&snapshot, known).await?,
            event_types: changed_since::<event_type::Entity>(&snapshot, known).await?,
            event_type_versions: versions::changed_since(&snapshot, known).await?,
            retry_policies: changed_since::<retry_policy::Entity>(&snapshot, known).await?,
            endpoints: changed_since::<endpoint::Entity>(&snapshot, known).await?,
            key_rings: rings::changed_since::<OfEndpoints>(&snapshot, known).await?,
            subscriptions: changed_since::<subscription::Entity>(&snapshot, known).await?,
            sources: changed_since::<source::Entity>(&snapshot, known).await?,
            source_key_rings: rings::changed_since::<OfSources>(&snapshot, known).await?,
            api_tokens: api_tokens::changed_since(&snapshot, known).await?,
        };
        snapshot.commit().await.map_err(store_error)?;
        Ok(delta)
    }

    async fn position(&self) -> Result<SourcePosition, StoreError> {
        // A read that begins now sees everything committed before.
        Ok(SourcePosition { at: position(&self.db).await?, is_proven: true })
    }
}
