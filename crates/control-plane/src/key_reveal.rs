//! Showing the secret of a key again.

use crate::{
    by::By,
    key_ring::{CreatedKey, Keys, refused},
    names::KeyName,
    write::named,
};
use turnbuckle_domain::{Error, Key, KeyAlgorithm, Precondition, SealContext};
use turnbuckle_signing::{KeyAlgorithm as SigningAlgorithm, SigningKey};

/// A key whose secret is to be shown, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RevealKey {
    pub(crate) name: KeyName,
}

impl Keys {
    /// It is recorded that the secret is shown before it is opened: there is no way to see it and
    /// leave no trace.
    pub(crate) async fn reveal(&self, by: &By, command: &RevealKey) -> Result<CreatedKey, Error> {
        let subject = command.name.to_string();
        if !self.0.reveals_keys {
            return Err(refused(Precondition::SwitchedOff, subject));
        }
        let endpoint = self.endpoint(&by.caller, &command.name.endpoint).await?;
        let (tenant, id) = (endpoint.tenant, command.name.key);
        let ring = self.0.store.key_ring(tenant, endpoint.id).await;
        let ring = ring.map_err(|error| named(error, &subject))?;
        let key = ring.keys.iter().find(|key| key.id == id);
        let missing = || Error::NotFound { resource: subject.clone() };
        if key.ok_or_else(missing)?.secret.is_none() {
            return Err(refused(Precondition::KeyRevoked, subject));
        }
        let ring = self.0.store.record_reveal(tenant, endpoint.id, id, &by.change).await;
        let ring = ring.map_err(|error| named(error, &subject))?;
        let key = ring.keys.into_iter().find(|key| key.id == id).ok_or_else(missing)?;
        let context = SealContext { tenant, endpoint: endpoint.id, key: id };
        let secret = self.unseal(context, &key)?.secret_text();
        Ok(CreatedKey {
            endpoint: command.name.endpoint.clone(),
            key,
            at: self.0.clock.now(),
            secret: Some(secret),
            ring_summary: String::new(),
        })
    }

    fn unseal(&self, context: SealContext, key: &Key) -> Result<SigningKey, Error> {
        // Revoked meanwhile.
        let sealed = key.secret.as_ref().ok_or_else(|| Error::internal("the key has no secret"))?;
        let bytes = self.0.sealer.open(context, sealed).map_err(Error::internal)?;
        let algorithm = match key.algorithm {
            KeyAlgorithm::HmacSha256 => SigningAlgorithm::HmacSha256,
            KeyAlgorithm::Ed25519 => SigningAlgorithm::Ed25519,
        };
        SigningKey::from_bytes(algorithm, &bytes).map_err(Error::internal)
    }
}
