//! Writes what was seen, disables what is to be disabled, and publishes notices.

use super::{HealthMeter, Taken};
use crate::publish::Publisher;
use std::{error::Error as StdError, sync::Arc, time::Duration};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{
    AuditId, ChangeContext, Clock, DisableCause, DisableRule, EndpointId, Error, HealthStore,
    IdGenerator, Notice, Role, StoreError, TenantId, health_limits::BATCH,
};

/// How often what was seen is written. A crash loses as much of it, which delays a decision about days
/// by seconds.
const WRITE_EVERY: Duration = Duration::from_secs(5);
/// Notices published at once.
const NOTICES_AT_ONCE: u16 = 100;
/// A notice that could not be published for so long is given up: its tenant is gone, mostly.
const NOTICE_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Who makes these changes, in the audit record.
const SUBJECT: &str = "turnbuckle";
/// What is recorded in place of a method.
const METHOD: &str = "turnbuckle/endpoint-health";

/// The task that acts on what the meter collects.
pub(crate) struct HealthKeeper {
    pub(crate) meter: Arc<HealthMeter>,
    pub(crate) store: Arc<dyn HealthStore>,
    pub(crate) publisher: Arc<Publisher>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: IdGenerator,
    pub(crate) rule: DisableRule,
}

impl HealthKeeper {
    /// Works until cancelled. It must not outlive that: it holds what the committers wait for.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(WRITE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let working = async {
            loop {
                tokio::select! {
                    _ = ticks.tick() => {}
                    () = self.meter.urgent.notified() => {}
                }
                self.turn().await;
            }
        };
        stop.run_until_cancelled(working).await.unwrap_or(());
    }

    async fn turn(&self) {
        let Taken { changes, gone } = self.meter.take();
        for batch in changes.chunks(BATCH) {
            match self.store.add_health(batch).await {
                Ok(rows) => {
                    for health in rows.iter().filter(|health| self.rule.is_due(health)) {
                        let (tenant, endpoint) = (health.tenant, health.endpoint);
                        let cause = DisableCause::Failing(self.rule);
                        // The clock is in the store: the next failure asks again.
                        drop(self.disable(tenant, endpoint, cause).await);
                    }
                }
                Err(error) => warn("the health of endpoints was not written", &error),
            }
        }
        for (endpoint, (tenant, at)) in gone {
            if self.disable(tenant, endpoint, DisableCause::Gone { at }).await.is_err() {
                self.meter.still_gone(endpoint, tenant, at);
            }
        }
        if let Err(error) = self.tell().await {
            warn("notices wait to be published", &error);
        }
    }

    async fn disable(
        &self,
        tenant: TenantId,
        endpoint: EndpointId,
        cause: DisableCause,
    ) -> Result<(), Error> {
        let by = ChangeContext {
            id: AuditId::from_uuid(self.ids.uuid()),
            at: self.clock.now(),
            subject: SUBJECT.to_owned(),
            role: Role::Admin,
            method: METHOD.to_owned(),
            request_id: self.ids.uuid().to_string(),
            reason: cause.as_str().to_owned(),
            validate_only: false,
            request: None,
        };
        let disabled = self.store.disable_unhealthy(tenant, endpoint, cause, &by).await;
        let disabled = disabled.inspect_err(|error| warn("an endpoint was not disabled", error))?;
        if disabled.is_some() {
            let cause = cause.as_str();
            metrics::counter!("turnbuckle_endpoints_disabled_total", "cause" => cause).increment(1);
        }
        Ok(())
    }

    async fn tell(&self) -> Result<(), StoreError> {
        let mut told = Vec::new();
        for notice in self.store.notices(NOTICES_AT_ONCE).await? {
            match self.publisher.publish_notice(&notice).await {
                Ok(()) => told.push(notice.id),
                Err(error) if self.is_old(&notice) => {
                    warn("a notice could not be published and is given up", &error);
                    told.push(notice.id);
                }
                Err(error) => warn("a notice was not published yet", &error),
            }
        }
        if !told.is_empty() {
            self.store.notices_told(&told).await?;
        }
        Ok(())
    }

    fn is_old(&self, notice: &Notice) -> bool {
        self.clock.now().since(notice.at) > NOTICE_KEPT
    }
}

fn warn(what: &'static str, error: &(dyn StdError + 'static)) {
    tracing::warn!(error, "{what}");
}
