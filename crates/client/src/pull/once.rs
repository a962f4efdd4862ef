//! Idempotency keys of effects that happened in this process.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

/// Remembers idempotency keys, so that a repeat finds its effect done: bounded, and for this process only.
/// Across restarts and machines the key belongs into the same transaction as the effect.
#[derive(Debug, Clone)]
pub struct OnceKeys(Arc<Mutex<Keys>>);

#[derive(Debug)]
struct Keys {
    capacity: usize,
    /// Done, or under way.
    known: HashMap<String, bool>,
    /// Done ones, oldest first.
    order: VecDeque<String>,
}

/// What is known of a key.
#[derive(Debug)]
pub enum Claim {
    /// Nothing: make the effect, then call [`Effect::done`].
    First(Effect),
    /// The effect happened: acknowledge.
    Done,
    /// Another handler is at it: give the delivery back.
    UnderWay,
}

/// An effect that is being made. Dropping it without [`Effect::done`] forgets the key.
#[derive(Debug)]
pub struct Effect {
    keys: OnceKeys,
    key: String,
    is_done: bool,
}

impl OnceKeys {
    /// Remembers this many keys, the oldest forgotten first.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let keys = Keys { capacity, known: HashMap::new(), order: VecDeque::new() };
        Self(Arc::new(Mutex::new(keys)))
    }

    /// Asks for the right to make the effect of a key.
    #[must_use]
    pub fn claim(&self, key: &str) -> Claim {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match keys.known.get(key) {
            Some(true) => Claim::Done,
            Some(false) => Claim::UnderWay,
            None => {
                keys.known.insert(key.to_owned(), false);
                let key = key.to_owned();
                Claim::First(Effect { keys: self.clone(), key, is_done: false })
            }
        }
    }
}

impl Effect {
    /// The effect has happened.
    pub fn done(mut self) {
        self.is_done = true;
        let mut keys = self.keys.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.known.insert(self.key.clone(), true);
        keys.order.push_back(self.key.clone());
        while keys.order.len() > keys.capacity
            && let Some(oldest) = keys.order.pop_front()
        {
            keys.known.remove(&oldest);
        }
    }
}

impl Drop for Effect {
    fn drop(&mut self) {
        if !self.is_done {
            self.keys.0.lock().unwrap_or_else(PoisonError::into_inner).known.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_happens_once_unless_it_failed() {
        let keys = OnceKeys::new(2);
        let Claim::First(effect) = keys.claim("a") else { panic!("known") };
        assert!(matches!(keys.claim("a"), Claim::UnderWay));
        drop(effect);
        let Claim::First(effect) = keys.claim("a") else { panic!("known") };
        effect.done();
        assert!(matches!(keys.claim("a"), Claim::Done));
        for key in ["b", "c"] {
            let Claim::First(effect) = keys.claim(key) else { panic!("known") };
            effect.done();
        }
        assert!(matches!(keys.claim("a"), Claim::First(_)), "the oldest is forgotten");
        assert!(matches!(keys.claim("c"), Claim::Done));
    }
}
