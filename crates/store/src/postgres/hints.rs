//! Hints between workers over LISTEN and NOTIFY.
//!
//! A hint is sent after the commit, in a statement of its own and for many deliveries at once: a
//! NOTIFY inside the publishing transaction would make all commits of the database queue behind one
//! lock. A lost hint costs a second, no delivery.

use super::PostgresQueue;
use crate::error::sqlx_error;
use sqlx::postgres::PgListener;
use std::sync::Arc;
use turnbuckle_domain::{EndpointId, StoreError, WakeHint};

const CHANNEL: &str = "turnbuckle_due";
/// Stands for "shards were given back" where ids stand otherwise.
const FREED: &str = "freed";
/// Ids of one notification: 30 bytes each stay well below the 8,000 that Postgres carries.
const IDS_MAX: usize = 200;

impl PostgresQueue {
    /// Tells other workers that shards are to be had.
    pub(super) async fn hint_freed(&self) -> Result<(), StoreError> {
        let hint = sqlx::query("select pg_notify($1, $2)").bind(CHANNEL).bind(FREED);
        hint.execute(&self.pool).await.map_err(sqlx_error)?;
        Ok(())
    }

    pub(super) async fn send_hints(&self, endpoints: &[EndpointId]) -> Result<(), StoreError> {
        for chunk in endpoints.chunks(IDS_MAX) {
            let ids: Vec<String> = chunk.iter().map(EndpointId::to_string).collect();
            sqlx::query("select pg_notify($1, $2)")
                .bind(CHANNEL)
                .bind(ids.join(","))
                .execute(&self.pool)
                .await
                .map_err(sqlx_error)?;
        }
        Ok(())
    }

    pub(super) async fn pass_hints_on(&self, to: Arc<dyn WakeHint>) -> Result<(), StoreError> {
        let mut listener = PgListener::connect_with(&self.pool).await.map_err(sqlx_error)?;
        listener.listen(CHANNEL).await.map_err(sqlx_error)?;
        // `None` announces a lost connection: what was sent meanwhile is left to discovery.
        while let Some(hint) = listener.try_recv().await.map_err(sqlx_error)? {
            if hint.payload() == FREED {
                to.shards_freed();
                continue;
            }
            let ids = hint.payload().split(',').filter_map(|id| id.parse().ok());
            ids.for_each(|endpoint| to.wake(endpoint));
        }
        Ok(())
    }
}
