//! Repeats of requests: a caller that lost an answer asks again and gets what the first call made.

use crate::{Dependencies, by::By};
use std::future::Future;
use turnbuckle_domain::{
    Endpoint, EndpointId, Error, Key, KeyAlgorithm, KeyRing, Made, SealContext, TenantId,
};
use turnbuckle_signing::{KeyAlgorithm as SigningAlgorithm, SecretText, SigningKey};

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

    /// The key that a call made for an endpoint, with its secret as long as a repeat may see it.
    pub(crate) fn key_again(
        &self,
        endpoint: (TenantId, EndpointId),
        ring: &KeyRing,
        made: &Made,
    ) -> Result<Option<(Key, Option<SecretText>)>, Error> {
        let Some(key) = ring.keys.iter().find(|key| Some(key.id) == made.key) else {
            return Ok(None);
        };
        let shown = made.shows_secret_at(self.clock.now());
        let secret = if shown { self.open_key(endpoint, key)? } else { None };
        Ok(Some((key.clone(), secret)))
    }

    /// The secret of a new endpoint once more; none for one that is deleted meanwhile.
    pub(crate) async fn secret_again(
        &self,
        endpoint: &Endpoint,
        made: &Made,
    ) -> Result<Option<SecretText>, Error> {
        let place = (endpoint.tenant, endpoint.id);
        let ring = match self.store.key_ring(place.0, place.1).await {
            Ok(ring) => ring,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(self.key_again(place, &ring, made)?.and_then(|(_, secret)| secret))
    }

    fn open_key(
        &self,
        (tenant, endpoint): (TenantId, EndpointId),
        key: &Key,
    ) -> Result<Option<SecretText>, Error> {
        let Some(sealed) = &key.secret else {
            return Ok(None);
        };
        let context = SealContext { tenant, endpoint, key: key.id };
        let bytes = self.sealer.open(context, sealed).map_err(Error::internal)?;
        let algorithm = match key.algorithm {
            KeyAlgorithm::HmacSha256 => SigningAlgorithm::HmacSha256,
            KeyAlgorithm::Ed25519 => SigningAlgorithm::Ed25519,
        };
        let signing_key = SigningKey::from_bytes(algorithm, &bytes).map_err(Error::internal)?;
        Ok(Some(signing_key.secret_text()))
    }
}
