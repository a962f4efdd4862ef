//! Use cases of key rings. Every verb takes the ring's etag, so none is retried here.

use crate::{
    Dependencies,
    by::By,
    key_material::{KeyText, WantedKey},
    key_owner::Owner,
    key_propagation::{self, Behind},
    names::{KeyName, KeyRingName, OwnerName},
    repeat::gone,
    write::{check_etag, named},
};
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    Caller, Error, Key, KeyAlgorithm, KeyId, KeyRing, KeyState, Made, Precondition, Revision,
    SignatureProfile, TenantId, Timestamp,
};

/// A key ring with the name of its owner, seen at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRingView {
    pub(crate) owner: OwnerName,
    pub(crate) ring: KeyRing,
    pub(crate) at: Timestamp,
    /// The ring in words; and what it was, when a verb was only validated.
    pub(crate) summary: String,
}

impl KeyRingView {
    /// A ring as it is.
    pub(crate) fn of(owner: OwnerName, ring: KeyRing, at: Timestamp) -> Self {
        let summary = owner.words(&ring, at);
        Self { owner, ring, at, summary }
    }
}

/// A key just made, with the one look at its secret.
#[derive(Debug)]
pub(crate) struct CreatedKey {
    pub(crate) owner: OwnerName,
    pub(crate) key: Key,
    pub(crate) at: Timestamp,
    /// None when the key was not made.
    pub(crate) secret: Option<KeyText>,
    /// The ring in words, where the key was put on it.
    pub(crate) ring_summary: String,
}

/// Which ring a verb works on, and the state of it the caller has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenRing {
    pub(crate) owner: OwnerName,
    pub(crate) etag: Revision,
}

/// A key to be staged.
#[derive(Debug, Clone)]
pub(crate) struct StageKey {
    pub(crate) ring: SeenRing,
    pub(crate) key: WantedKey,
}

/// A key to be staged and activated.
#[derive(Debug, Clone)]
pub(crate) struct RotateKey {
    pub(crate) ring: SeenRing,
    pub(crate) key: WantedKey,
    pub(crate) overlap: Duration,
    pub(crate) force: bool,
}

/// A step forward to the staged key, or back to the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SwitchKey {
    pub(crate) ring: SeenRing,
    pub(crate) overlap: Duration,
}

/// A key to be destroyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RevokeKey {
    pub(crate) name: KeyName,
    pub(crate) etag: Revision,
    pub(crate) reason: String,
}

/// A ring that a verb has changed, to be written.
struct Moved {
    owner: Owner,
    /// In words, as it was.
    before: String,
    ring: KeyRing,
    at: Timestamp,
}

/// What can be done with keys.
pub(crate) struct Keys(pub(crate) Arc<Dependencies>);

impl Keys {
    pub(crate) async fn get(
        &self,
        caller: &Caller,
        name: &KeyRingName,
    ) -> Result<KeyRingView, Error> {
        let owner = self.0.owner(caller, &name.0).await?;
        let ring = self.0.store.key_ring(owner.tenant(), owner.key_owner()).await;
        let ring = ring.map_err(|error| named(error, &name.to_string()))?;
        Ok(KeyRingView::of(name.0.clone(), ring, self.0.clock.now()))
    }

    pub(crate) async fn stage(&self, by: &By, command: &StageKey) -> Result<CreatedKey, Error> {
        let ring = &command.ring;
        let verb = |ring: &mut KeyRing, key, now| ring.stage(key, now);
        self.key_once(by, (&ring.owner, &command.key), self.add(by, ring, &command.key, verb)).await
    }

    pub(crate) async fn rotate(&self, by: &By, command: &RotateKey) -> Result<CreatedKey, Error> {
        let ring = &command.ring;
        let verb =
            |ring: &mut KeyRing, key, now| ring.rotate(key, command.overlap, command.force, now);
        self.key_once(by, (&ring.owner, &command.key), self.add(by, ring, &command.key, verb)).await
    }

    pub(crate) async fn activate(
        &self,
        by: &By,
        command: &SwitchKey,
    ) -> Result<KeyRingView, Error> {
        let fresh = async {
            self.check_propagated(&by.caller, &command.ring).await?;
            self.switch(by, command, |ring, now| ring.activate(command.overlap, now)).await
        };
        self.ring_once(by, &command.ring.owner, fresh).await
    }

    /// A key that is to sign must be known to every data plane that is alive, or some would sign with
    /// it and others without. A source's key is accepted before: nothing changes for its senders.
    async fn check_propagated(&self, caller: &Caller, seen: &SeenRing) -> Result<(), Error> {
        let (Owner::Endpoint(endpoint), ring) = self.open(caller, seen).await? else {
            return Ok(());
        };
        // A script stages and activates in one breath: nodes that follow have it a moment later.
        let wanted = (endpoint.id, ring.revision);
        let (applied, clock) = (self.0.applied.as_ref(), self.0.clock.as_ref());
        let message = match key_propagation::wait(applied, clock, wanted).await? {
            None => return Ok(()),
            Some(Behind { node, refuses: None }) => format!(
                "{node} does not have the staged key yet: wait until GetKeyRingStatus shows its \
                 revision at {} or above",
                ring.revision.0
            ),
            Some(Behind { node, refuses: Some(reason) }) => format!(
                "{node} refuses the present state of the ring ({reason}) and would go on signing \
                 without the key: mend what it refuses, or stop that node"
            ),
        };
        let (kind, subject) = (Precondition::KeyNotPropagated, seen.owner.to_string());
        Err(Error::Precondition { kind, subject, message })
    }

    pub(crate) async fn rollback(
        &self,
        by: &By,
        command: &SwitchKey,
    ) -> Result<KeyRingView, Error> {
        let fresh = self.switch(by, command, |ring, now| ring.rollback(command.overlap, now));
        self.ring_once(by, &command.ring.owner, fresh).await
    }

    pub(crate) async fn revoke(&self, by: &By, command: &RevokeKey) -> Result<KeyRingView, Error> {
        self.ring_once(by, &command.name.owner, self.destroy(by, command)).await
    }

    /// Does not look at the profile: destroying a key must always be possible.
    async fn destroy(&self, by: &By, command: &RevokeKey) -> Result<KeyRingView, Error> {
        let seen = SeenRing { owner: command.name.owner.clone(), etag: command.etag };
        let (owner, mut ring) = self.open(&by.caller, &seen).await?;
        let now = self.0.clock.now();
        let subject = command.name.to_string();
        let before = seen.owner.words(&ring, now);
        let (key, reason) = (command.name.key, &command.reason);
        let revoked = match owner {
            Owner::Endpoint(_) => ring.revoke(key, reason, now),
            Owner::Source(_) => ring.revoke_incoming(key, reason, now),
        };
        match revoked {
            Ok(true) => self.close(by, Moved { owner, before, ring, at: now }, &seen).await,
            Ok(false) => Err(Error::NotFound { resource: subject }),
            Err(kind) => Err(refused(kind, subject)),
        }
    }

    /// Makes a key once, however often it is asked for.
    async fn key_once(
        &self,
        by: &By,
        (owner, wanted): (&OwnerName, &WantedKey),
        fresh: impl Future<Output = Result<CreatedKey, Error>> + Send,
    ) -> Result<CreatedKey, Error> {
        if by.change.request.is_none() {
            return fresh.await;
        }
        let tenant = self.0.enter(&by.caller, owner.tenant()).await?.id;
        let again = |made: Made| async move {
            let view = self.ring_again(tenant, owner, &made).await?;
            let place = (tenant, owner.with_id(made.id));
            let found = self.0.key_again(place, &view.ring, &made)?;
            // So many keys were made since then that the ring has forgotten it.
            let (key, secret) = found.ok_or_else(gone(owner))?;
            // What the caller gave was not shown the first time either.
            let secret = secret.filter(|_| !matches!(wanted, WantedKey::Given { .. }));
            let ring_summary = view.summary;
            Ok(CreatedKey { owner: view.owner, key, at: view.at, secret, ring_summary })
        };
        self.0.once(by, Some(tenant), fresh, again).await
    }

    /// Changes a ring once, however often it is asked for.
    pub(crate) async fn ring_once(
        &self,
        by: &By,
        owner: &OwnerName,
        fresh: impl Future<Output = Result<KeyRingView, Error>> + Send,
    ) -> Result<KeyRingView, Error> {
        if by.change.request.is_none() {
            return fresh.await;
        }
        let tenant = self.0.enter(&by.caller, owner.tenant()).await?.id;
        let again = |made: Made| async move { self.ring_again(tenant, owner, &made).await };
        self.0.once(by, Some(tenant), fresh, again).await
    }

    /// The present ring of the owner that an earlier call changed, which may be deleted now.
    async fn ring_again(
        &self,
        tenant: TenantId,
        owner: &OwnerName,
        made: &Made,
    ) -> Result<KeyRingView, Error> {
        let ring = self.0.store.key_ring(tenant, owner.with_id(made.id)).await;
        let name = KeyRingName(owner.clone());
        let ring = ring.map_err(|error| named(error, &name.to_string()))?;
        self.0.propagation.applied(ring.revision).await;
        Ok(KeyRingView::of(name.0, ring, self.0.clock.now()))
    }

    async fn add(
        &self,
        by: &By,
        seen: &SeenRing,
        wanted: &WantedKey,
        verb: impl FnOnce(&mut KeyRing, Key, Timestamp) -> Result<(), Precondition> + Send,
    ) -> Result<CreatedKey, Error> {
        let (owner, mut ring) = self.open(&by.caller, seen).await?;
        let subject = seen.owner.to_string();
        let now = self.0.clock.now();
        let before = seen.owner.words(&ring, now);
        if by.validates_only() {
            let key = self.0.unmade_key(&owner, wanted, now)?;
            owner.check_algorithms([key.algorithm], &subject)?;
            check_new(&ring, &key.fingerprint)?;
            let id = key.id;
            verb(&mut ring, key, now).map_err(|kind| refused(kind, subject))?;
            let ring_summary = would_be(&before, &seen.owner.words(&ring, now));
            let (key, owner) = (find(ring, id)?, seen.owner.clone());
            return Ok(CreatedKey { owner, key, at: now, secret: None, ring_summary });
        }
        let material = self.0.material(&owner, wanted)?;
        owner.check_algorithms([material.algorithm], &subject)?;
        check_new(&ring, &material.fingerprint)?;
        let key = self.0.seal((owner.tenant(), owner.key_owner()), &material, now)?;
        let id = key.id;
        verb(&mut ring, key, now).map_err(|kind| refused(kind, subject))?;
        let view = self.close(by, Moved { owner, before, ring, at: now }, seen).await?;
        let key = find(view.ring, id)?;
        let (secret, ring_summary) = (material.shown, view.summary);
        Ok(CreatedKey { owner: view.owner, key, at: now, secret, ring_summary })
    }

    pub(crate) async fn switch(
        &self,
        by: &By,
        command: &SwitchKey,
        verb: impl FnOnce(&mut KeyRing, Timestamp) -> Result<(), Precondition> + Send,
    ) -> Result<KeyRingView, Error> {
        let (owner, mut ring) = self.open(&by.caller, &command.ring).await?;
        let now = self.0.clock.now();
        let subject = command.ring.owner.to_string();
        let before = command.ring.owner.words(&ring, now);
        verb(&mut ring, now).map_err(|kind| refused(kind, subject.clone()))?;
        let active = ring.keys.iter().filter(|key| key.state == KeyState::Active);
        let algorithms: Vec<KeyAlgorithm> = active.map(|key| key.algorithm).collect();
        owner.check_algorithms(algorithms, &subject)?;
        if let Owner::Source(source) = &owner {
            // The scheme may have changed since the key was put on the ring.
            let active = ring.keys.iter().filter(|key| key.state == KeyState::Active);
            self.0.check_keys(source, active, &subject)?;
        }
        self.close(by, Moved { owner, before, ring, at: now }, &command.ring).await
    }

    /// Reads the ring in the state the caller has seen.
    async fn open(&self, caller: &Caller, seen: &SeenRing) -> Result<(Owner, KeyRing), Error> {
        let owner = self.0.owner(caller, &seen.owner).await?;
        let name = KeyRingName(seen.owner.clone()).to_string();
        let ring = self.0.store.key_ring(owner.tenant(), owner.key_owner()).await;
        let ring = ring.map_err(|error| named(error, &name))?;
        check_etag(Some(seen.etag), ring.revision, &name)?;
        Ok((owner, ring))
    }

    /// Writes the ring, if it is still in that state, and waits until it is used. One that is only
    /// validated is answered as it would be, with the etag that it has.
    async fn close(&self, by: &By, moved: Moved, seen: &SeenRing) -> Result<KeyRingView, Error> {
        let name = KeyRingName(seen.owner.clone());
        let Moved { owner, before, ring, at } = moved;
        let (tenant, id) = (owner.tenant(), owner.key_owner());
        let ring = self.0.store.update_key_ring(tenant, id, ring, seen.etag, &by.change).await;
        let ring = ring.map_err(|error| named(error, &name.to_string()))?;
        let summary = name.0.words(&ring, at);
        if by.validates_only() {
            let ring = KeyRing { revision: seen.etag, ..ring };
            let summary = would_be(&before, &summary);
            return Ok(KeyRingView { owner: name.0, ring, at, summary });
        }
        self.0.propagation.applied(ring.revision).await;
        Ok(KeyRingView { owner: name.0, ring, at, summary })
    }
}

/// What is, and what would be.
fn would_be(before: &str, after: &str) -> String {
    format!("Now: {before} Then: {after}")
}

fn find(ring: KeyRing, id: KeyId) -> Result<Key, Error> {
    let found = ring.keys.into_iter().find(|key| key.id == id);
    found.ok_or_else(|| Error::internal("the store returned a ring without the key just written"))
}

/// Only the Standard Webhooks profile can carry an Ed25519 signature.
pub(crate) fn check_profile(
    profile: SignatureProfile,
    algorithms: impl IntoIterator<Item = KeyAlgorithm>,
    subject: &str,
) -> Result<(), Error> {
    let standard = profile == SignatureProfile::StandardWebhooks;
    if standard || algorithms.into_iter().all(|algorithm| algorithm == KeyAlgorithm::HmacSha256) {
        return Ok(());
    }
    Err(Error::Precondition {
        kind: Precondition::ProfileMismatch,
        subject: subject.to_owned(),
        message: format!(
            "Ed25519 keys sign only with the standard-webhooks profile, not with {}: \
             use that profile or HMAC-SHA256 keys",
            profile.as_str()
        ),
    })
}

/// Refuses a key the ring has had before: the same material twice would be two signatures that look
/// like a rotation, and a revoked one must not come back. A key that is not made yet has no fingerprint.
fn check_new(ring: &KeyRing, fingerprint: &str) -> Result<(), Error> {
    if ring.keys.iter().any(|known| known.fingerprint == fingerprint) {
        return Err(Error::invalid(
            "secret",
            format!("is already on the ring, with fingerprint {fingerprint}: import another"),
        ));
    }
    Ok(())
}

/// Says what is in the way of a verb, and what helps.
pub(crate) fn refused(kind: Precondition, subject: String) -> Error {
    let message = match kind {
        Precondition::RotationOpen => {
            "a rotation is open: activate or revoke the staged key, wait until the retiring key's \
             time is over or revoke it, or rotate with force"
        }
        Precondition::NoStagedKey => "there is no staged key: stage one first",
        Precondition::NothingToRollBack => {
            "no earlier key is left inside the roll-back window of 7 days: rotate instead"
        }
        Precondition::KeyRevoked => "the key is revoked already: its material is destroyed",
        Precondition::NoOpenRotation => {
            "no key is retiring, or the rotation is not as the verb needs it: read where it stands \
             with GetKeyRingStatus"
        }
        Precondition::SwitchedOff => {
            "secrets are not shown again by this server: rotate the key, or start the server with \
             --allow-key-reveal"
        }
        Precondition::ProfileMismatch
        | Precondition::SchemeMismatch
        | Precondition::KeyNotPropagated
        | Precondition::InUse
        | Precondition::DeliveryFinished
        | Precondition::ReplayFinished
        | Precondition::EndpointInactive
        | Precondition::LatestVersion
        | Precondition::TooManyVersions
        | Precondition::NameRetired
        | Precondition::LimitReached
        | Precondition::NameTaken
        | Precondition::PayloadGone
        | Precondition::ReferenceDeleted => "the ring does not allow this now",
    };
    Error::Precondition { kind, subject, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::SealedSecret;
    use turnbuckle_signing::SigningKey;

    #[test]
    fn ed25519_needs_the_standard_profile() {
        use KeyAlgorithm::{Ed25519, HmacSha256};
        for profile in SignatureProfile::ALL {
            assert!(check_profile(profile, [HmacSha256, HmacSha256], "e").is_ok());
            let result = check_profile(profile, [HmacSha256, Ed25519], "e");
            assert_eq!(result.is_ok(), profile == SignatureProfile::StandardWebhooks);
            if let Err(error) = result {
                assert_eq!(error.reason(), "SIGNATURE_PROFILE_MISMATCH");
                assert!(error.to_string().contains(profile.as_str()));
            }
        }
    }

    #[test]
    fn a_key_is_on_a_ring_once_while_the_ring_remembers_it() {
        let signing_key = SigningKey::generate_hmac(&[1; 32]);
        let now = Timestamp::from_micros(1);
        let key = Key::staged(
            "key_00000000000000000000000000".parse().unwrap(),
            KeyAlgorithm::HmacSha256,
            signing_key.fingerprint(),
            None,
            SealedSecret::from_bytes(vec![0]),
            now,
        );
        let id = key.id;
        let mut ring = KeyRing::with_first(key, now);
        ring.revoke(id, "leaked", now).unwrap();
        let error = check_new(&ring, &signing_key.fingerprint()).unwrap_err().to_string();
        assert!(error.contains("already on the ring"), "{error}");
        assert!(!error.contains(signing_key.secret_text().expose()));
        assert!(check_new(&ring, &SigningKey::generate_hmac(&[2; 32]).fingerprint()).is_ok());
    }

    #[test]
    fn every_refusal_of_a_ring_says_what_helps() {
        for kind in [
            Precondition::RotationOpen,
            Precondition::NoStagedKey,
            Precondition::NothingToRollBack,
            Precondition::KeyRevoked,
            Precondition::NoOpenRotation,
            Precondition::SwitchedOff,
        ] {
            let text = refused(kind, "tenants/a/endpoints/b".to_owned()).to_string();
            assert!(text.contains(": "), "{text}");
        }
    }
}
