//! Secrets that senders of sources choose themselves, kept as keys.

use crate::{key_material::context, verification};
use async_trait::async_trait;
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    AuditId, ChangeContext, Clock, ConfigStore, Error, IdGenerator, Key, KeyId, KeyOwner, Learned,
    OfferedSecret, Role, SecretLearning, SecretSealer, Timestamp,
};

/// Who keeps the secret, in the record.
const SUBJECT: &str = "turnbuckle";
/// As what, in the record.
const METHOD: &str = "turnbuckle.v1.Keys/StageKey";

/// Keeps offered secrets through the store, in the process of the ingress that was offered one: what is
/// written is what the control plane would write, in one transaction with its audit entry and its
/// revision.
pub struct KeyLearner {
    /// Where rings are kept.
    pub store: Arc<dyn ConfigStore>,
    /// Seals the secret.
    pub sealer: Arc<dyn SecretSealer>,
    /// Makes the key's id.
    pub ids: IdGenerator,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl SecretLearning for KeyLearner {
    async fn learn(&self, offer: OfferedSecret<'_>) -> Result<Learned, Error> {
        let missing = || Error::NotFound { resource: format!("sources/{}", offer.source) };
        let source = self.store.source(offer.tenant, offer.source).await?.ok_or_else(missing)?;
        let owner = KeyOwner::Source(source.id);
        let mut ring = self.store.key_ring(offer.tenant, owner).await?;
        // Not even a revoked key is followed by an offer: whoever knows the path could make it.
        if !ring.keys.is_empty() {
            return Ok(Learned::RingInUse);
        }
        let verifier = verification::verifier(&source.scheme)?;
        let Ok(fit) = verification::fit_key(&verifier, offer.text, None) else {
            return Ok(Learned::Unusable);
        };
        let (now, seen) = (self.clock.now(), ring.revision);
        let id = KeyId::from_uuid(self.ids.uuid());
        let sealed = self.sealer.seal(context((offer.tenant, owner), id), offer.text.as_bytes());
        let sealed = sealed.map_err(Error::internal)?;
        let key = Key::staged(id, fit.kind, fit.fingerprint, None, sealed, now);
        let staged = ring.stage(key, now).and_then(|()| ring.activate(Duration::ZERO, now));
        if staged.is_err() {
            return Ok(Learned::RingInUse);
        }
        let by = self.change(offer.handshake, now);
        match self.store.update_key_ring(offer.tenant, owner, ring, seen, &by).await {
            Ok(ring) => {
                tracing::info!(source.id = %source.id, key.id = %id, "a secret was learned");
                Ok(Learned::Taken { revision: ring.revision })
            }
            // Another offer, or an operator, was faster.
            Err(Error::Stale { .. }) => Ok(Learned::RingInUse),
            Err(error) => Err(error),
        }
    }
}

impl KeyLearner {
    fn change(&self, handshake: &str, now: Timestamp) -> ChangeContext {
        ChangeContext {
            id: AuditId::from_uuid(self.ids.uuid()),
            at: now,
            subject: SUBJECT.to_owned(),
            role: Role::Node,
            method: METHOD.to_owned(),
            request_id: self.ids.uuid().to_string(),
            reason: format!("learned from the sender's handshake {handshake}"),
            validate_only: false,
            request: None,
        }
    }
}
