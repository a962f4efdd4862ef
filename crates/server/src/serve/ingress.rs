//! The ingress of this process, and what takes its events.

use super::{Base, nodes::Sources};
use std::{sync::Arc, time::Duration};
use turnbuckle_delivery::{DeliveryPlane, IntakeParts, start_intake};
use turnbuckle_domain::{EventIntake, Propagation};
use turnbuckle_ingress::{IngressParts, IngressPlane, TrustedProxies};
use turnbuckle_runtime::Supervisor;

/// The way into the event log for what third parties sent: into the lanes of the delivery plane here,
/// when there is one; else events are routed and committed here, by the configuration in the store they
/// go to, and delivered by whoever leases their endpoints.
pub(super) async fn intake(
    base: &Base,
    delivery: Option<&DeliveryPlane>,
    supervisor: &Supervisor,
) -> anyhow::Result<Arc<dyn EventIntake>> {
    Ok(match delivery {
        Some(plane) => plane.intake(),
        None => start_intake(intake_parts(base), supervisor).await?,
    })
}

/// Starts the plane.
pub(super) async fn start(
    base: &Base,
    sources: &Sources,
    intake: Arc<dyn EventIntake>,
    receipt_retention: Duration,
    proxies: TrustedProxies,
    supervisor: &Supervisor,
) -> anyhow::Result<IngressPlane> {
    let parts = IngressParts {
        config: sources.of_ingress(base),
        intake,
        receipts: Arc::clone(&base.store.receipts),
        clock: Arc::clone(&base.clock),
        random: Arc::clone(&base.random),
        sealer: Arc::clone(&base.sealer),
        receipt_retention,
        proxies,
    };
    Ok(IngressPlane::start(parts, supervisor).await?)
}

fn intake_parts(base: &Base) -> IntakeParts {
    IntakeParts {
        log: Arc::clone(&base.store.log),
        queue: Arc::clone(&base.store.queue),
        history: Arc::clone(&base.store.history),
        config: base.store.config_source(),
        clock: Arc::clone(&base.clock),
        random: Arc::clone(&base.random),
        sealer: Arc::clone(&base.sealer),
        guard: Arc::clone(&base.guard),
    }
}

/// Lets a writer wait until the sources it changed are in use here.
pub(super) fn propagation(plane: &IngressPlane) -> Arc<dyn Propagation> {
    Arc::new(plane.sources())
}
