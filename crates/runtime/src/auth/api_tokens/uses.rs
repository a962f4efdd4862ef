//! Tells the store when tokens were last used: coarsely, in batches, never in the way of a call.

use super::ApiTokens;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use turnbuckle_domain::{ApiTokenId, ApiTokenStore, Timestamp};

/// How often uses are looked at: the first use of a token shows within this.
const LOOK: Duration = Duration::from_secs(5);

/// Shortest time between two writes for one token.
const WRITE_AGAIN: Duration = Duration::from_secs(60);

/// Longest wait for the store; the next look makes up for it.
const ANSWER: Duration = Duration::from_secs(5);

/// The task that notes last uses.
pub struct ApiTokenUses {
    tokens: ApiTokens,
    store: Arc<dyn ApiTokenStore>,
    written: HashMap<ApiTokenId, Written>,
}

/// What the store was told of a token.
#[derive(Clone, Copy)]
struct Written {
    used_at: Timestamp,
    at: Instant,
}

impl ApiTokenUses {
    /// Notes uses of these tokens in this store.
    #[must_use]
    pub fn new(tokens: ApiTokens, store: Arc<dyn ApiTokenStore>) -> Self {
        Self { tokens, store, written: HashMap::new() }
    }

    /// Works until cancelled, and then once more.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(looks.tick()).await.is_some() {
            self.write(WRITE_AGAIN).await;
        }
        self.write(Duration::ZERO).await;
    }

    /// Writes what was not written for this long.
    async fn write(&mut self, again: Duration) {
        let now = Instant::now();
        let uses = self.tokens.uses();
        self.written.retain(|known, _| uses.iter().any(|(id, _)| id == known));
        let due: Vec<(ApiTokenId, Timestamp)> = uses
            .into_iter()
            .filter(|(id, used_at)| {
                let written = self.written.get(id);
                written.is_none_or(|written| {
                    *used_at > written.used_at && now.duration_since(written.at) >= again
                })
            })
            .collect();
        if due.is_empty() {
            return;
        }
        match timeout(ANSWER, self.store.note_api_token_uses(&due)).await {
            Ok(Ok(())) => {
                let written =
                    due.into_iter().map(|(id, used_at)| (id, Written { used_at, at: now }));
                self.written.extend(written);
            }
            Ok(Err(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(error, "uses of API tokens are not noted yet");
            }
            Err(_) => tracing::debug!("uses of API tokens are not noted yet: no answer"),
        }
    }
}
