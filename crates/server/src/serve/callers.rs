//! Who calls, besides what issuers sign: API tokens in memory, and where denied calls are noted.

use std::{convert::Infallible, sync::Arc};
use turnbuckle_domain::{Clock, ConfigSource, IdGenerator, Propagation, Random, StoreError};
use turnbuckle_runtime::{
    Supervisor,
    auth::{ApiTokenFollower, ApiTokenUses, ApiTokens, Authenticator, Denials, ObservedConfig},
    supervisor::OnExit,
};
use turnbuckle_store::Store;

/// What the API's listener knows of callers.
pub(super) struct Callers {
    pub(super) authenticator: Authenticator,
    pub(super) denials: Denials,
    api_tokens: ApiTokens,
    clock: Arc<dyn Clock>,
}

impl Callers {
    /// Takes API tokens too. None is known until somebody reads the configuration.
    pub(super) fn new(
        authenticator: Authenticator,
        clock: &Arc<dyn Clock>,
        random: &Arc<dyn Random>,
    ) -> Self {
        let api_tokens = ApiTokens::default();
        let ids = IdGenerator::new(Arc::clone(clock), Arc::clone(random));
        Self {
            authenticator: authenticator.with_api_tokens(api_tokens.clone()),
            denials: Denials::new(Arc::clone(clock), ids),
            api_tokens,
            clock: Arc::clone(clock),
        }
    }

    /// The configuration, from which tokens are taken as it is read. For one reader.
    pub(super) fn observe(&self, source: Arc<dyn ConfigSource>) -> ObservedConfig {
        ObservedConfig::new(source, self.api_tokens.clone(), Arc::clone(&self.clock))
    }

    /// Reads the configuration for the tokens alone, where no other part of the process reads it.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(super) async fn follow(
        &self,
        source: Arc<dyn ConfigSource>,
        supervisor: &Supervisor,
    ) -> Result<Arc<dyn Propagation>, StoreError> {
        let (follower, propagation) = ApiTokenFollower::start(self.observe(source)).await?;
        let following = follower.run(supervisor.shutdown());
        supervisor.spawn("api-token-follower", OnExit::StopProcess, endless(following));
        Ok(Arc::new(propagation))
    }

    /// Starts what writes last uses and denied calls down.
    pub(super) fn spawn(&self, supervisor: &Supervisor, store: &Store) {
        let uses = ApiTokenUses::new(self.api_tokens.clone(), Arc::clone(&store.config) as _);
        let writing = uses.run(supervisor.shutdown());
        supervisor.spawn("api-token-uses", OnExit::Log, endless(writing));
        let log = Arc::clone(&store.config);
        let writing = self.denials.clone().run(log, supervisor.shutdown());
        supervisor.spawn("denials", OnExit::Log, endless(writing));
    }
}

/// A task that cannot fail, in the supervisor's form.
async fn endless(task: impl Future<Output = ()>) -> Result<(), Infallible> {
    task.await;
    Ok(())
}
