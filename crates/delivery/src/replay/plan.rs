//! What a step is to do, by the configuration of this moment.

use super::{ReplayParts, makes};
use crate::config::{ConfigIndex, Route, Routes};
use std::sync::Arc;
use turnbuckle_domain::{
    Event, EventOrder, Looked, NewDelivery, Reopening, Replay, ReplayRow, Rerouted, StepPlan,
    StoreError,
};

impl ReplayParts {
    /// Puts a row into the plan.
    pub(super) async fn plan(
        &self,
        replay: &Replay,
        row: ReplayRow,
        plan: &mut StepPlan,
    ) -> Result<(), StoreError> {
        let looked = replay.filter.look(&row);
        match row {
            ReplayRow::Delivery { id, endpoint, .. } => {
                let index = self.config.load();
                let is_active = |endpoint| is_active(&index, endpoint);
                plan.delivery(looked, Reopening { delivery: id, endpoint }, is_active);
            }
            ReplayRow::Event(event) => {
                let uid = event.uid;
                let targets = match looked {
                    Looked::Chosen => Some(self.targets(replay, *event).await?),
                    Looked::Other | Looked::Gone => None,
                };
                plan.event(uid, targets);
            }
        }
        Ok(())
    }

    /// Where an event goes today. The payload is read only where a condition looks into it.
    async fn targets(&self, replay: &Replay, event: Event) -> Result<Vec<Rerouted>, StoreError> {
        // What its source leaves out stays out.
        let left_out = matches!(event.order, Some(EventOrder::Stale | EventOrder::AfterFinal));
        if left_out || !makes(replay.scope) {
            return Ok(Vec::new());
        }
        let Some(routes) = routes_of(&self.config.load(), &event) else { return Ok(Vec::new()) };
        let event = match routes.is_conditional() {
            true => match self.history.event(event.tenant, event.uid).await? {
                Some(whole) => whole,
                None => return Ok(Vec::new()),
            },
            false => event,
        };
        let only = replay.filter.endpoint;
        let wanted = routes.of(&event).filter(|route| only.is_none_or(|id| id == route.endpoint));
        let place = |route: &Route| Rerouted {
            event: event.uid,
            delivery: NewDelivery {
                id: self.ids.delivery_of(event.uid),
                endpoint: route.endpoint,
                format: route.format,
            },
        };
        Ok(wanted.map(place).collect())
    }
}

fn is_active(index: &Arc<ConfigIndex>, endpoint: turnbuckle_domain::EndpointId) -> bool {
    index.endpoint(endpoint).is_some_and(|entry| entry.endpoint.is_active())
}

fn routes_of(index: &Arc<ConfigIndex>, event: &Event) -> Option<Routes> {
    match index.type_rules(event.tenant, &event.event_type) {
        Some(rules) => Some(rules.routes.clone()),
        // Received events may be of a type that nobody registered.
        None => index.routes_of(event.tenant, &event.event_type),
    }
}
