//! Reading configuration by revision.

use super::{
    ConfigDb, api_tokens,
    aside::Aside,
    entity::{
        endpoint, event_type, event_type_version, retry_policy, source, subscription, tenant,
    },
    ring_tables::{OfEndpoints, OfSources},
    rings,
    table::changed_since,
    write::{begin_snapshot, position},
};
use crate::error::store_error;
use async_trait::async_trait;
use sea_orm::DatabaseTransaction;
use turnbuckle_domain::{ConfigDelta, ConfigSource, Revision, SourcePosition, StoreError};

impl ConfigDb {
    async fn delta(
        &self,
        snapshot: &DatabaseTransaction,
        known: Revision,
    ) -> Result<ConfigDelta, StoreError> {
        let at = position(snapshot).await?;
        let mut out = Aside::new(&self.told);
        let aside = &mut out;
        let delta = ConfigDelta {
            epoch: at.epoch,
            revision: at.revision,
            tenants: changed_since::<tenant::Entity>(snapshot, known, aside).await?,
            event_types: changed_since::<event_type::Entity>(snapshot, known, aside).await?,
            event_type_versions: changed_since::<event_type_version::Entity>(
                snapshot, known, aside,
            )
            .await?,
            retry_policies: changed_since::<retry_policy::Entity>(snapshot, known, aside).await?,
            endpoints: changed_since::<endpoint::Entity>(snapshot, known, aside).await?,
            key_rings: rings::changed_since::<OfEndpoints>(snapshot, known, aside).await?,
            subscriptions: changed_since::<subscription::Entity>(snapshot, known, aside).await?,
            sources: changed_since::<source::Entity>(snapshot, known, aside).await?,
            source_key_rings: rings::changed_since::<OfSources>(snapshot, known, aside).await?,
            api_tokens: api_tokens::changed_since(snapshot, known, aside).await?,
            unreadable: Vec::new(),
        };
        Ok(ConfigDelta { unreadable: out.finish(), ..delta })
    }
}

#[async_trait]
impl ConfigSource for ConfigDb {
    async fn revision(&self) -> Result<Revision, StoreError> {
        Ok(position(&self.db).await?.revision)
    }

    async fn changes_since(&self, known: Revision) -> Result<ConfigDelta, StoreError> {
        let snapshot = begin_snapshot(&self.db).await?;
        let delta = self.delta(&snapshot, known).await?;
        snapshot.commit().await.map_err(store_error)?;
        Ok(delta)
    }

    async fn position(&self) -> Result<SourcePosition, StoreError> {
        // A read that begins now sees everything committed before.
        Ok(SourcePosition { at: position(&self.db).await?, is_proven: true })
    }
}
