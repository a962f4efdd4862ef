//! The keys of one issuer as callers see them.

use super::{
    JWKS_FETCH_TIMEOUT, JwksError, JwksFetch, JwksRefresher,
    document::{self, KeySet},
    source::{AddressSource, FileSource, Source},
};
use crate::auth::config::{IssuerConfig, KeysAt};
use jsonwebtoken::{Algorithm, DecodingKey};
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};
use turnbuckle_domain::Clock;

/// Longest wait for a read: its own limit, and time to be scheduled.
const WAIT: Duration = JWKS_FETCH_TIMEOUT.saturating_add(Duration::from_secs(1));

/// What refresher and callers share.
#[derive(Default)]
pub(super) struct State {
    pub(super) keys: KeySet,
    /// Reads that have ended, well or not.
    pub(super) rounds: u64,
    /// When the last one began.
    pub(super) started_at: Option<Instant>,
    pub(super) is_reading: bool,
}

/// The keys of one issuer. Clones are the same.
#[derive(Clone)]
pub(in crate::auth) struct KeyCache {
    state: watch::Receiver<State>,
    wish: Arc<Notify>,
    cooldown: Duration,
}

/// What the cache knows of a key.
pub(in crate::auth) enum Lookup {
    /// Here it is.
    Found(Arc<DecodingKey>),
    /// Not yet known, and the keys are being read.
    Reading(Round),
    /// The issuer had none of this name a moment ago.
    Absent,
}

/// A read under way.
pub(in crate::auth) struct Round {
    state: watch::Receiver<State>,
    seen: u64,
}

impl Round {
    /// Waits until it has ended, or takes too long.
    pub(in crate::auth) async fn ended(mut self) {
        let over = self.state.wait_for(|state| state.rounds > self.seen);
        // Late, or stopping: whoever waits looks again and finds what there is.
        drop(timeout(WAIT, over).await);
    }
}

impl KeyCache {
    /// Reads the keys if they are in a file. Ones at an address are read when the refresher runs:
    /// a server must start while an issuer is down.
    pub(in crate::auth) fn open(
        issuer: &IssuerConfig,
        fetch: &Arc<dyn JwksFetch>,
        clock: &Arc<dyn Clock>,
    ) -> Result<(Self, JwksRefresher), JwksError> {
        let mut state = State::default();
        let source = match &issuer.keys {
            KeysAt::File(path) => {
                let mut file = FileSource::new(path.clone());
                let document = file.read_here()?.document.unwrap_or_default();
                state.keys = document::parse(&document, issuer.algorithm)?;
                if state.keys.is_empty() {
                    let algorithm = algorithm_name(issuer.algorithm);
                    return Err(JwksError::NoKeys { path: path.clone(), algorithm });
                }
                let mut source = Source::File(file);
                source.accept();
                source
            }
            KeysAt::Address { url, token_file } => Source::Address(AddressSource {
                url: url.as_str().into(),
                token_file: token_file.clone(),
                fetch: Arc::clone(fetch),
            }),
        };
        let cooldown = source.cooldown();
        let (sender, receiver) = watch::channel(state);
        let wish = Arc::new(Notify::new());
        let cache = Self { state: receiver, wish: Arc::clone(&wish), cooldown };
        let refresher = JwksRefresher::new(issuer, source, sender, wish, Arc::clone(clock));
        Ok((cache, refresher))
    }

    /// Looks up a key by its id. An unknown one asks for a read, if the last is long enough ago.
    pub(in crate::auth) fn find(&self, id: &str) -> Lookup {
        let state = self.state.borrow();
        if let Some(key) = state.keys.get(id) {
            return Lookup::Found(Arc::clone(key));
        }
        let is_due = state.started_at.is_none_or(|begin| begin.elapsed() >= self.cooldown);
        if !state.is_reading && !is_due {
            return Lookup::Absent;
        }
        if !state.is_reading {
            self.wish.notify_one();
        }
        Lookup::Reading(Round { state: self.state.clone(), seen: state.rounds })
    }
}

fn algorithm_name(algorithm: Algorithm) -> String {
    format!("{algorithm:?}")
}
