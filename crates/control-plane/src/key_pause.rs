//! Pausing a rotation by hand, and letting it go on.

use crate::{
    by::By,
    key_ring::{KeyRingView, Keys, SeenRing, SwitchKey},
};
use std::time::Duration;
use turnbuckle_domain::Error;

/// A rotation to be paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PauseRotation {
    pub(crate) ring: SeenRing,
    pub(crate) reason: String,
}

impl Keys {
    pub(crate) async fn pause(
        &self,
        by: &By,
        command: &PauseRotation,
    ) -> Result<KeyRingView, Error> {
        let switch = SwitchKey { ring: command.ring.clone(), overlap: Duration::ZERO };
        let fresh = self.switch(by, &switch, |ring, now| ring.pause(&command.reason, now));
        self.ring_once(by, &command.ring.owner, fresh).await
    }

    pub(crate) async fn resume(&self, by: &By, command: &SwitchKey) -> Result<KeyRingView, Error> {
        let fresh = self.switch(by, command, |ring, now| ring.resume(command.overlap, now));
        self.ring_once(by, &command.ring.owner, fresh).await
    }
}
