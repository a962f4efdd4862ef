//! Who owns a key ring, and what its keys must be.

use crate::{
    Dependencies, key_material::context, key_ring::check_profile, names::OwnerName, verification,
};
use turnbuckle_domain::{
    Caller, Endpoint, Error, Key, KeyAlgorithm, KeyOwner, KeyRing, Precondition, Source, TenantId,
    Timestamp,
};

/// The owner of a ring, as it is.
#[derive(Debug, Clone)]
pub(crate) enum Owner {
    /// Its keys sign.
    Endpoint(Box<Endpoint>),
    /// Its keys verify.
    Source(Box<Source>),
}

impl Owner {
    pub(crate) fn tenant(&self) -> TenantId {
        match self {
            Self::Endpoint(endpoint) => endpoint.tenant,
            Self::Source(source) => source.tenant,
        }
    }

    /// How stores and sealed records name it.
    pub(crate) fn key_owner(&self) -> KeyOwner {
        match self {
            Self::Endpoint(endpoint) => KeyOwner::Endpoint(endpoint.id),
            Self::Source(source) => KeyOwner::Source(source.id),
        }
    }

    /// Whether the owner can use keys of these kinds.
    pub(crate) fn check_algorithms(
        &self,
        algorithms: impl IntoIterator<Item = KeyAlgorithm>,
        subject: &str,
    ) -> Result<(), Error> {
        match self {
            Self::Endpoint(endpoint) if endpoint.target.pull().is_some() => {
                Err(Error::Precondition {
                    kind: Precondition::ProfileMismatch,
                    subject: subject.to_owned(),
                    message: "a pull endpoint signs nothing: it needs no keys".to_owned(),
                })
            }
            Self::Endpoint(endpoint) => {
                check_profile(endpoint.signature_profile, algorithms, subject)
            }
            // Their texts were held against the scheme when they were put on the ring.
            Self::Source(_) => Ok(()),
        }
    }
}

impl OwnerName {
    /// A ring of this owner in words.
    pub(crate) fn words(&self, ring: &KeyRing, at: Timestamp) -> String {
        match self {
            Self::Endpoint(_) => ring.words(at),
            Self::Source(_) => ring.incoming_words(at),
        }
    }
}

impl Dependencies {
    /// Reads the owner of a ring.
    pub(crate) async fn owner(&self, caller: &Caller, name: &OwnerName) -> Result<Owner, Error> {
        let tenant = self.enter(caller, name.tenant()).await?;
        let missing = || Error::NotFound { resource: name.to_string() };
        match name {
            OwnerName::Endpoint(endpoint) => {
                let found = self.store.endpoint(tenant.id, &endpoint.id).await?;
                found.map(|endpoint| Owner::Endpoint(Box::new(endpoint))).ok_or_else(missing)
            }
            OwnerName::Source(source) => {
                let found = self.store.source(tenant.id, &source.id).await?;
                found.map(|source| Owner::Source(Box::new(source))).ok_or_else(missing)
            }
        }
    }

    /// Every one of these keys can be used by the source's scheme.
    pub(crate) fn check_keys<'a>(
        &self,
        source: &Source,
        keys: impl IntoIterator<Item = &'a Key>,
        subject: &str,
    ) -> Result<(), Error> {
        let verifier = verification::verifier(&source.scheme)?;
        let owner = (source.tenant, KeyOwner::Source(source.id));
        for key in keys {
            let Some(sealed) = &key.secret else { continue };
            let bytes =
                self.sealer.open(context(owner, key.id), sealed).map_err(Error::internal)?;
            let fits = std::str::from_utf8(&bytes).is_ok_and(|text| verifier.key(text).is_ok());
            if !fits {
                let message = format!(
                    "the source's scheme cannot use the key {}: revoke that key, or make another \
                     source",
                    key.id
                );
                let (kind, subject) = (Precondition::SchemeMismatch, subject.to_owned());
                return Err(Error::Precondition { kind, subject, message });
            }
        }
        Ok(())
    }
}
