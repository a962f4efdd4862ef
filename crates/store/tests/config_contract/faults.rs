//! Databases that do not answer, and callers that do not wait.

use crate::common::{by, on_both_backends, tenant};
use crate::fixture::{Fixture, refusal};
use sea_orm::{ConnectionTrait as _, TransactionTrait as _};
use std::sync::Arc;
use turnbuckle_domain::{ConfigSource as _, ConfigStore as _, StoreError};

on_both_backends!(
    a_store_without_connections_is_unavailable,
    a_writer_that_waits_in_vain_is_unavailable_and_may_try_again,
    an_abandoned_change_leaves_neither_a_lock_nor_half_of_it,
);

async fn a_store_without_connections_is_unavailable(fixture: &Fixture) {
    fixture.db.clone().close().await.unwrap();
    let error = fixture.config.revision().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    let refused = fixture.config.create_tenant(tenant("acme"), &by()).await;
    assert_eq!(refusal(refused).0, "STORE_UNAVAILABLE");
}

async fn a_writer_that_waits_in_vain_is_unavailable_and_may_try_again(fixture: &Fixture) {
    let impatient = fixture.impatient().await;
    let other = fixture.db.begin().await.unwrap();
    other.execute_unprepared("update config_revision set revision = revision").await.unwrap();
    let refused = impatient.create_tenant(tenant("acme"), &by()).await;
    assert_eq!(refusal(refused).0, "STORE_UNAVAILABLE");
    // Readers do not wait for writers.
    impatient.revision().await.unwrap();
    other.rollback().await.unwrap();
    impatient.create_tenant(tenant("acme"), &by()).await.unwrap();
}

async fn an_abandoned_change_leaves_neither_a_lock_nor_half_of_it(fixture: &Fixture) {
    for moment in 0..40 {
        let config = Arc::clone(&fixture.config);
        let change = tokio::spawn(async move {
            config.create_tenant(tenant(&format!("t{moment}")), &by()).await
        });
        for _ in 0..moment {
            tokio::task::yield_now().await;
        }
        change.abort();
        // Wherever it was cut off.
        drop(change.await);
    }
    fixture.tenant("last").await;
    let tenants = fixture.config.tenants(None, 100).await.unwrap();
    let changes = usize::try_from(fixture.revision().await.0).unwrap();
    assert_eq!(tenants.len(), changes);
}
