//! Showing the secret of a key again.

use crate::{
    by::By,
    key_ring::{CreatedKey, Keys, refused},
    names::{EndpointName, KeyName, OwnerName},
    write::named,
};
use turnbuckle_domain::{Error, KeyId, Precondition};

/// A key whose secret is to be shown, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RevealKey {
    pub(crate) endpoint: EndpointName,
    pub(crate) key: KeyId,
}

impl RevealKey {
    fn name(&self) -> KeyName {
        KeyName { owner: OwnerName::Endpoint(self.endpoint.clone()), key: self.key }
    }
}

impl Keys {
    /// It is recorded that the secret is shown before it is opened: there is no way to see it and
    /// leave no trace.
    pub(crate) async fn reveal(&self, by: &By, command: &RevealKey) -> Result<CreatedKey, Error> {
        let name = command.name();
        let subject = name.to_string();
        if !self.0.reveals_keys {
            return Err(refused(Precondition::SwitchedOff, subject));
        }
        let owner = self.0.owner(&by.caller, &name.owner).await?;
        let (tenant, owner, id) = (owner.tenant(), owner.key_owner(), command.key);
        let ring = self.0.store.key_ring(tenant, owner).await;
        let ring = ring.map_err(|error| named(error, &subject))?;
        let key = ring.keys.iter().find(|key| key.id == id);
        let missing = || Error::NotFound { resource: subject.clone() };
        if key.ok_or_else(missing)?.secret.is_none() {
            return Err(refused(Precondition::KeyRevoked, subject));
        }
        let ring = self.0.store.record_reveal(tenant, owner, id, &by.change).await;
        let ring = ring.map_err(|error| named(error, &subject))?;
        let key = ring.keys.into_iter().find(|key| key.id == id).ok_or_else(missing)?;
        // None when it was revoked meanwhile.
        let secret = self.0.open_key((tenant, owner), &key)?;
        let secret = Some(secret.ok_or_else(|| refused(Precondition::KeyRevoked, subject))?);
        let at = self.0.clock.now();
        Ok(CreatedKey { owner: name.owner, key, at, secret, ring_summary: String::new() })
    }
}
