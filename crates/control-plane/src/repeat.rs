//! Repeats of requests: a caller that lost an answer asks again and gets what the first call made.

use crate::{
    Dependencies,
    by::By,
    key_material::{KeyText, context},
};
use std::future::Future;
use turnbuckle_domain::{Endpoint, Error, Key, KeyAlgorithm, KeyOwner, KeyRing, Made, TenantId};
use turnbuckle_signing::{KeyAlgorithm as SigningAlgorithm, SigningKey};
use zeroize::Zeroizing;

/// What was made is gone since.
pub(crate) fn gone(resource: impl ToString) -> impl FnOnce() -> Error {
    move || Error::NotFound { resource: resource.to_string() }
}

impl Dependencies {
    /// Makes the change, or answers with what an earlier call with the same request id made. Of
    /// concurrent calls one makes it: the others are refused for one reason or another, and then
    /// find it made. No tenant stands for tenants themselves.
    pub(crate) async fn once<T, F>(
        &self,
        by: &By,
        tenant: Option<TenantId>,
        fresh: impl Future<Output = Result<T, Error>> + Send,
        again: impl FnOnce(Made) -> F + Send,
    ) -> Result<T, Error>
    where
        T: Send,
        F: Future<Output = Result<T, Error>> + Send,
    {
        if by.change.request.is_none() {
            return fresh.await;
        }
        if let Some(made) = self.store.made_before(tenant, &by.change).await? {
            return again(made).await;
        }
        let error = match fresh.await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        match self.store.made_before(tenant, &by.change).await {
            Ok(Some(made)) => again(made).await,
            Err(reused @ Error::RequestIdReused { .. }) => Err(reused),
            Ok(None) | Err(_) => Err(error),
        }
    }

    /// The key that a call made, with its secret as long as a repeat may see it.
    pub(crate) fn key_again(
        &self,
        owner: (TenantId, KeyOwner),
        ring: &KeyRing,
        made: &Made,
    ) -> Result<Option<(Key, Option<KeyText>)>, Error> {
        let Some(key) = ring.keys.iter().find(|key| Some(key.id) == made.key) else {
            return Ok(None);
        };
        let shown = made.shows_secret_at(self.clock.now());
        let secret = if shown { self.open_key(owner, key)? } else { None };
        Ok(Some((key.clone(), secret)))
    }

    /// The secret of a new endpoint once more; none for one that is deleted meanwhile.
    pub(crate) async fn secret_again(
        &self,
        endpoint: &Endpoint,
        made: &Made,
    ) -> Result<Option<KeyText>, Error> {
        let place = (endpoint.tenant, KeyOwner::Endpoint(endpoint.id));
        let ring = match self.store.key_ring(place.0, place.1).await {
            Ok(ring) => ring,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(self.key_again(place, &ring, made)?.and_then(|(_, secret)| secret))
    }

    /// The secret of a key; none once it is destroyed.
    pub(crate) fn open_key(
        &self,
        owner: (TenantId, KeyOwner),
        key: &Key,
    ) -> Result<Option<KeyText>, Error> {
        let Some(sealed) = &key.secret else {
            return Ok(None);
        };
        let bytes = self.sealer.open(context(owner, key.id), sealed).map_err(Error::internal)?;
        let algorithm = match key.algorithm {
            KeyAlgorithm::HmacSha256 => SigningAlgorithm::HmacSha256,
            KeyAlgorithm::Ed25519 => SigningAlgorithm::Ed25519,
            // A source's secret is kept as the text it was shown as.
            KeyAlgorithm::SharedSecret => {
                let text = std::str::from_utf8(&bytes).map_err(Error::internal)?;
                return Ok(Some(KeyText::new(Zeroizing::new(text.to_owned()))));
            }
            // Nothing about it is secret: the answer shows it anyway.
            KeyAlgorithm::PublicKey => return Ok(None),
        };
        let signing_key = SigningKey::from_bytes(algorithm, &bytes).map_err(Error::internal)?;
        Ok(Some(KeyText::signing(&signing_key)))
    }
}
