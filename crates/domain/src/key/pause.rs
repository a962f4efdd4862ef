//! A pause of an open rotation: the key before goes on signing until somebody has decided.

use super::{KeyRing, KeyState};
use crate::{Precondition, Timestamp};
use std::time::Duration;

/// Why and when a rotation was paused. Kept after it was resumed, for as long as the rotation is
/// open: whoever resumed it has seen the reason, so it is not paused for it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotationPause {
    /// When.
    pub at: Timestamp,
    /// Why, in words.
    pub reason: String,
    /// When somebody let it go on.
    pub resumed_at: Option<Timestamp>,
}

impl KeyRing {
    /// Whether the rotation stands still now.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.pause.as_ref().is_some_and(|pause| pause.resumed_at.is_none())
    }

    /// Holds the retiring key past its time, until the rotation is resumed, rolled back or ended.
    ///
    /// # Errors
    /// [`Precondition::NoOpenRotation`] when no key is retiring, or it is held already.
    pub fn pause(&mut self, reason: &str, now: Timestamp) -> Result<(), Precondition> {
        self.settle(now);
        let retiring = self.position(KeyState::Retiring, now).filter(|_| !self.is_paused());
        let retiring = retiring.ok_or(Precondition::NoOpenRotation)?;
        self.keys[retiring].held = true;
        self.pause = Some(RotationPause { at: now, reason: reason.to_owned(), resumed_at: None });
        Ok(())
    }

    /// Lets the rotation go on: the retiring key signs for `overlap` from now.
    ///
    /// # Errors
    /// [`Precondition::NoOpenRotation`] when it is not paused.
    pub fn resume(&mut self, overlap: Duration, now: Timestamp) -> Result<(), Precondition> {
        self.settle(now);
        let retiring = self.position(KeyState::Retiring, now).filter(|_| self.is_paused());
        let retiring = retiring.ok_or(Precondition::NoOpenRotation)?;
        self.keys[retiring].retire(now + overlap, now);
        if let Some(pause) = &mut self.pause {
            pause.resumed_at = Some(now);
        }
        self.forget_pause();
        Ok(())
    }

    /// A pause is over with its rotation: when no key is retiring any more.
    pub(super) fn forget_pause(&mut self) {
        if !self.keys.iter().any(|key| key.state == KeyState::Retiring) {
            self.pause = None;
        }
    }
}
