//! The ingress of this process, and what takes its events.

use super::{Base, nodes::Sources};
use std::{sync::Arc, time::Duration};
use turnbuckle_delivery::{DeliveryPlane, IntakeParts, start_intake};
use turnbuckle_domain::Propagation;
use turnbuckle_ingress::{IngressParts, IngressPlane};
use turnbuckle_runtime::Supervisor;

/// Starts the plane. Its events go into the lanes of the delivery plane here, when there is one; else
/// they are routed and committed here, by the configuration in the store they go to, and delivered by
/// whoever leases their endpoints.
pub(super) async fn start(
    base: &Base,
    sources: &Sources,
    delivery: Option<&DeliveryPlane>,
    key_usage_every: Duration,
    supervisor: &Supervisor,
) -> anyhow::Result<IngressPlane> {
    let intake = match delivery {
        Some(plane) => plane.intake(),
        None => start_intake(intake_parts(base), supervisor).await?,
    };
    let parts = IngressParts {
        config: sources.of_ingress(base),
        intake,
        receipts: Arc::clone(&base.store.receipts),
        clock: Arc::clone(&base.clock),
        random: Arc::clone(&base.random),
        sealer: Arc::clone(&base.sealer),
        key_usage: Arc::clone(&base.store.key_usage),
        key_usage_every,
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
