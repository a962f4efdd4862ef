//! The ingress of this process, and what takes its events.

use super::{Base, api::RouteMaker, nodes::Sources, outbound::GuardedDocuments};
use std::{sync::Arc, time::Duration};
use turnbuckle_control_plane::KeyLearner;
use turnbuckle_delivery::{DeliveryPlane, IntakeParts, start_intake};
use turnbuckle_domain::{ConfigSource, EventIntake, IdGenerator, Propagation};
use turnbuckle_ingress::{IngressParts, IngressPlane, TrustedProxies};
use turnbuckle_runtime::Supervisor;

/// What the operator chose.
pub(super) struct Settings {
    pub(super) receipt_retention: Duration,
    pub(super) proxies: TrustedProxies,
    pub(super) key_usage_every: Duration,
}

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
    settings: Settings,
    supervisor: &Supervisor,
) -> anyhow::Result<IngressPlane> {
    start_on(base, sources.of_ingress(base), intake, settings, supervisor).await
}

/// Tests of sources: with the ingress of this process, or with its pipeline alone, which listens to
/// nobody.
pub(super) async fn tests(
    base: &Base,
    ingress: Option<&IngressPlane>,
    intake: Arc<dyn EventIntake>,
    settings: Settings,
    supervisor: &Supervisor,
) -> anyhow::Result<SourceTests> {
    let (service, follows) = match ingress {
        Some(plane) => (plane.source_tests_service(), None),
        None => {
            let config = base.store.config_source();
            let plane = start_on(base, config, intake, settings, supervisor).await?;
            (plane.source_tests_service(), Some(propagation(&plane)))
        }
    };
    let add: RouteMaker = Box::new(move |routes| {
        routes.add_service(service);
    });
    Ok(SourceTests { add, follows })
}

/// Tests of sources, and what a writer waits for so that they know what it wrote.
pub(super) struct SourceTests {
    pub(super) add: RouteMaker,
    /// None where the ingress of this process is waited for anyway.
    pub(super) follows: Option<Arc<dyn Propagation>>,
}

async fn start_on(
    base: &Base,
    config: Arc<dyn ConfigSource>,
    intake: Arc<dyn EventIntake>,
    settings: Settings,
    supervisor: &Supervisor,
) -> anyhow::Result<IngressPlane> {
    let Settings { receipt_retention, proxies, key_usage_every } = settings;
    let parts = IngressParts {
        config,
        intake,
        receipts: Arc::clone(&base.store.receipts),
        clock: Arc::clone(&base.clock),
        random: Arc::clone(&base.random),
        sealer: Arc::clone(&base.sealer),
        receipt_retention,
        proxies,
        fetch: Arc::new(GuardedDocuments(Arc::clone(&base.guard))),
        anchors: base.guard.trust_anchors().to_vec(),
        learning: Arc::new(learner(base)),
        key_usage: Arc::clone(&base.store.key_usage),
        key_usage_every,
    };
    Ok(IngressPlane::start(parts, supervisor).await?)
}

/// Keeps offered secrets as the control plane would, in the store that this process has.
fn learner(base: &Base) -> KeyLearner {
    KeyLearner {
        store: Arc::clone(&base.store.config),
        sealer: Arc::clone(&base.sealer),
        ids: IdGenerator::new(Arc::clone(&base.clock), Arc::clone(&base.random)),
        clock: Arc::clone(&base.clock),
    }
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
