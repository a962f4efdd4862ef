//! Routing and committing in a process that delivers nothing: the back of an ingress that runs alone.

use crate::{
    config::ConfigFollower,
    egress::EgressGuard,
    engine::Input,
    key_meter::KeyMeter,
    plane::{COMMITTERS, endless},
    publish::{CommitQueue, Intake, Publisher},
};
use std::{collections::BTreeSet, sync::Arc};
use tokio::sync::mpsc;
use turnbuckle_domain::{
    Clock, ConfigSource, DeliveryQueue, EndpointId, EventIntake, EventLog, History, IdGenerator,
    Random, SecretSealer, StoreError,
};
use turnbuckle_runtime::supervisor::{OnExit, Supervisor};

/// Groups that wait to be told to the workers. Past it committers wait.
const HINTS_WAITING: usize = 64;

/// What routing and committing are made of.
pub struct IntakeParts {
    /// The entrance of events.
    pub log: Arc<dyn EventLog>,
    /// Tells the workers what is due.
    pub queue: Arc<dyn DeliveryQueue>,
    /// What happened before.
    pub history: Arc<dyn History>,
    /// Configuration: event types and subscriptions.
    pub config: Arc<dyn ConfigSource>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub random: Arc<dyn Random>,
    /// For the index; opens nothing here.
    pub sealer: Arc<dyn SecretSealer>,
    /// For the index; dials nothing here.
    pub guard: Arc<EgressGuard>,
}

/// Reads the configuration and starts what routes and commits. What is committed reaches the workers
/// of other processes as a hint, and as a row that they find without it.
///
/// # Errors
/// When the store does not answer.
pub async fn start_intake(
    parts: IntakeParts,
    supervisor: &Supervisor,
) -> Result<Arc<dyn EventIntake>, StoreError> {
    crate::metrics::describe();
    // Nothing is signed here, so nothing is counted.
    let meter = Arc::new(KeyMeter::default());
    let starting = ConfigFollower::start(parts.config, parts.guard, parts.sealer, meter);
    let (follower, config) = starting.await?;
    let following = follower.run(supervisor.shutdown());
    supervisor.spawn("routing-follower", OnExit::StopProcess, endless(following));
    let (committed, hints) = mpsc::channel(HINTS_WAITING);
    let (commits, committer) = CommitQueue::new(parts.log, committed);
    for _ in 0..COMMITTERS {
        let committer = committer.clone();
        supervisor.spawn("committer", OnExit::StopProcess, endless(committer.run()));
    }
    // The last sender goes with the committers, and with it this task.
    drop(committer);
    supervisor.spawn("due-hints", OnExit::Log, endless(tell_workers(parts.queue, hints)));
    let ids = IdGenerator::new(Arc::clone(&parts.clock), parts.random);
    let (publisher, teller) = Publisher::new(config, parts.clock, ids, commits);
    let publisher = Arc::new(publisher);
    let telling = teller.run(Arc::clone(&publisher), supervisor.shutdown());
    supervisor.spawn("operational-events", OnExit::Log, endless(telling));
    Ok(Arc::new(Intake::new(publisher, parts.history)))
}

/// Hints for everything that was committed while the last hint was on its way.
async fn tell_workers(queue: Arc<dyn DeliveryQueue>, mut committed: mpsc::Receiver<Input>) {
    let mut due: BTreeSet<EndpointId> = BTreeSet::new();
    while let Some(first) = committed.recv().await {
        note(first, &mut due);
        while let Ok(next) = committed.try_recv() {
            note(next, &mut due);
        }
        let endpoints: Vec<EndpointId> = std::mem::take(&mut due).into_iter().collect();
        if let Err(error) = queue.hint(&endpoints).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "workers were not told; they find what is due by polling"
            );
        }
    }
}

fn note(input: Input, due: &mut BTreeSet<EndpointId>) {
    match input {
        Input::HandedOff(handoffs) => {
            let deliveries = handoffs.iter().flat_map(|handoff| &handoff.deliveries);
            due.extend(deliveries.map(|delivery| delivery.endpoint));
        }
        // What is due later is found without a hint.
        Input::Due(now) => {
            due.extend(now.iter().filter(|due| due.at.is_none()).map(|due| due.endpoint));
        }
        _ => {}
    }
}
