//! The plane's gRPC services: decode, use case, encode.

mod convert;
mod deliveries;
mod events;
mod key_tests;
mod list;
mod processing;
mod pull;
mod replay_convert;
mod replays;

use crate::{plane::DeliveryPlane, pull::REQUEST_BYTES};
use deliveries::DeliveriesService;
use events::EventsService;
use key_tests::KeyTestsService;
use pull::PullService;
use replays::ReplaysService;
use turnbuckle_domain::event_limits;
use turnbuckle_proto::v1::{
    deliveries_server::DeliveriesServer, events_server::EventsServer,
    key_tests_server::KeyTestsServer, pull_server::PullServer, replays_server::ReplaysServer,
};

/// A batch of events with its framing.
const MESSAGE_BYTES: usize = event_limits::BATCH_BYTES + 1024 * 1024;

impl DeliveryPlane {
    /// The Events service.
    #[must_use]
    pub fn events_service(
        &self,
    ) -> EventsServer<impl turnbuckle_proto::v1::events_server::Events + use<>> {
        EventsServer::new(EventsService::new(self)).max_decoding_message_size(MESSAGE_BYTES)
    }

    /// The KeyTests service.
    #[must_use]
    pub fn key_tests_service(
        &self,
    ) -> KeyTestsServer<impl turnbuckle_proto::v1::key_tests_server::KeyTests + use<>> {
        KeyTestsServer::new(KeyTestsService::new(self))
    }

    /// The Pull service.
    #[must_use]
    pub fn pull_service(&self) -> PullServer<impl turnbuckle_proto::v1::pull_server::Pull + use<>> {
        PullServer::new(PullService::new(self)).max_decoding_message_size(REQUEST_BYTES)
    }

    /// The Replays service.
    #[must_use]
    pub fn replays_service(
        &self,
    ) -> ReplaysServer<impl turnbuckle_proto::v1::replays_server::Replays + use<>> {
        ReplaysServer::new(ReplaysService::new(self))
    }

    /// The Deliveries service.
    #[must_use]
    pub fn deliveries_service(
        &self,
    ) -> DeliveriesServer<impl turnbuckle_proto::v1::deliveries_server::Deliveries + use<>> {
        DeliveriesServer::new(DeliveriesService::new(self))
    }
}
