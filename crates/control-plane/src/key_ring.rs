//! Use cases of key rings. Every verb takes the ring's etag, so none is retried here.

use crate::{
    Dependencies,
    by::By,
    key_material::WantedKey,
    names::{EndpointName, KeyName, KeyRingName},
    write::{check_etag, named},
};
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{
    Caller, Endpoint, Error, Key, KeyAlgorithm, KeyId, KeyRing, KeyState, Precondition, Revision,
    SignatureProfile, Timestamp,
};
use turnbuckle_signing::{SecretText, SigningKey};

/// A key ring with the name of its endpoint, seen at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRingView {
    pub(crate) endpoint: EndpointName,
    pub(crate) ring: KeyRing,
    pub(crate) at: Timestamp,
    /// The ring in words; and what it was, when a verb was only validated.
    pub(crate) summary: String,
}

/// A key just made, with the one look at its secret.
#[derive(Debug)]
pub(crate) struct CreatedKey {
    pub(crate) endpoint: EndpointName,
    pub(crate) key: Key,
    pub(crate) at: Timestamp,
    /// None when the key was not made.
    pub(crate) secret: Option<SecretText>,
    /// The ring in words, where the key was put on it.
    pub(crate) ring_summary: String,
}

/// Which ring a verb works on, and the state of it the caller has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenRing {
    pub(crate) endpoint: EndpointName,
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
    endpoint: Endpoint,
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
        let endpoint = self.endpoint(caller, &name.0).await?;
        let ring = self.0.store.key_ring(endpoint.tenant, endpoint.id).await;
        let ring = ring.map_err(|error| named(error, &name.to_string()))?;
        let at = self.0.clock.now();
        let summary = ring.words(at);
        Ok(KeyRingView { endpoint: name.0.clone(), ring, at, summary })
    }

    pub(crate) async fn stage(&self, by: &By, command: &StageKey) -> Result<CreatedKey, Error> {
        self.add(by, &command.ring, &command.key, |ring, key, now| ring.stage(key, now)).await
    }

    pub(crate) async fn rotate(&self, by: &By, command: &RotateKey) -> Result<CreatedKey, Error> {
        self.add(by, &command.ring, &command.key, |ring, key, now| {
            ring.rotate(key, command.overlap, command.force, now)
        })
        .await
    }

    pub(crate) async fn activate(
        &self,
        by: &By,
        command: &SwitchKey,
    ) -> Result<KeyRingView, Error> {
        self.check_propagated(&by.caller, &command.ring).await?;
        self.switch(by, command, |ring, now| ring.activate(command.overlap, now)).await
    }

    /// A key that is to sign must be known to every data plane that is alive, or some would sign with
    /// it and others without.
    async fn check_propagated(&self, caller: &Caller, seen: &SeenRing) -> Result<(), Error> {
        let (_, ring) = self.open(caller, seen).await?;
        let now = self.0.clock.now();
        let nodes = self.0.applied.applied_revisions().await?;
        match nodes.iter().find(|node| node.lags(ring.revision, now)) {
            None => Ok(()),
            Some(node) => Err(Error::Precondition {
                kind: Precondition::KeyNotPropagated,
                subject: seen.endpoint.to_string(),
                message: format!(
                    "{} does not have the staged key yet: wait until GetKeyRingStatus shows its \
                     revision at {} or above",
                    node.node, ring.revision.0
                ),
            }),
        }
    }

    pub(crate) async fn rollback(
        &self,
        by: &By,
        command: &SwitchKey,
    ) -> Result<KeyRingView, Error> {
        self.switch(by, command, |ring, now| ring.rollback(command.overlap, now)).await
    }

    /// Does not look at the profile: destroying a key must always be possible.
    pub(crate) async fn revoke(&self, by: &By, command: &RevokeKey) -> Result<KeyRingView, Error> {
        let seen = SeenRing { endpoint: command.name.endpoint.clone(), etag: command.etag };
        let (endpoint, mut ring) = self.open(&by.caller, &seen).await?;
        let now = self.0.clock.now();
        let subject = command.name.to_string();
        let before = ring.words(now);
        match ring.revoke(command.name.key, &command.reason, now) {
            Ok(true) => {
                let after = Moved { endpoint, before, ring, at: now };
                self.close(by, after, &seen).await
            }
            Ok(false) => Err(Error::NotFound { resource: subject }),
            Err(kind) => Err(refused(kind, subject)),
        }
    }

    async fn add(
        &self,
        by: &By,
        seen: &SeenRing,
        wanted: &WantedKey,
        verb: impl FnOnce(&mut KeyRing, Key, Timestamp) -> Result<(), Precondition> + Send,
    ) -> Result<CreatedKey, Error> {
        let (endpoint, mut ring) = self.open(&by.caller, seen).await?;
        let subject = seen.endpoint.to_string();
        check_profile(endpoint.signature_profile, [wanted.algorithm()], &subject)?;
        let now = self.0.clock.now();
        if let WantedKey::Imported(signing_key) = wanted {
            check_new(&ring, signing_key)?;
        }
        let before = ring.words(now);
        if by.validates_only() {
            let key = self.0.unmade_key(wanted, now);
            let id = key.id;
            verb(&mut ring, key, now).map_err(|kind| refused(kind, subject))?;
            let ring_summary = would_be(&before, &ring.words(now));
            let (key, endpoint) = (find(ring, id)?, seen.endpoint.clone());
            return Ok(CreatedKey { endpoint, key, at: now, secret: None, ring_summary });
        }
        let signing_key = wanted.make()?;
        let key = self.0.seal_key(&endpoint, &signing_key, now)?;
        let id = key.id;
        verb(&mut ring, key, now).map_err(|kind| refused(kind, subject))?;
        let view = self.close(by, Moved { endpoint, before, ring, at: now }, seen).await?;
        let key = find(view.ring, id)?;
        let secret = Some(signing_key.secret_text());
        let ring_summary = view.summary;
        Ok(CreatedKey { endpoint: view.endpoint, key, at: now, secret, ring_summary })
    }

    pub(crate) async fn switch(
        &self,
        by: &By,
        command: &SwitchKey,
        verb: impl FnOnce(&mut KeyRing, Timestamp) -> Result<(), Precondition> + Send,
    ) -> Result<KeyRingView, Error> {
        let (endpoint, mut ring) = self.open(&by.caller, &command.ring).await?;
        let now = self.0.clock.now();
        let subject = command.ring.endpoint.to_string();
        let before = ring.words(now);
        verb(&mut ring, now).map_err(|kind| refused(kind, subject.clone()))?;
        let active = ring.keys.iter().filter(|key| key.state == KeyState::Active);
        let algorithms: Vec<KeyAlgorithm> = active.map(|key| key.algorithm).collect();
        check_profile(endpoint.signature_profile, algorithms, &subject)?;
        self.close(by, Moved { endpoint, before, ring, at: now }, &command.ring).await
    }

    /// Reads the ring in the state the caller has seen.
    async fn open(&self, caller: &Caller, seen: &SeenRing) -> Result<(Endpoint, KeyRing), Error> {
        let endpoint = self.endpoint(caller, &seen.endpoint).await?;
        let name = KeyRingName(seen.endpoint.clone()).to_string();
        let ring = self.0.store.key_ring(endpoint.tenant, endpoint.id).await;
        let ring = ring.map_err(|error| named(error, &name))?;
        check_etag(Some(seen.etag), ring.revision, &name)?;
        Ok((endpoint, ring))
    }

    /// Writes the ring, if it is still in that state, and waits until it is used. One that is only
    /// validated is answered as it would be, with the etag that it has.
    async fn close(&self, by: &By, moved: Moved, seen: &SeenRing) -> Result<KeyRingView, Error> {
        let name = KeyRingName(seen.endpoint.clone());
        let Moved { endpoint, before, ring, at } = moved;
        let ring = self
            .0
            .store
            .update_key_ring(endpoint.tenant, endpoint.id, ring, seen.etag, &by.change)
            .await;
        let ring = ring.map_err(|error| named(error, &name.to_string()))?;
        let summary = ring.words(at);
        if by.validates_only() {
            let ring = KeyRing { revision: seen.etag, ..ring };
            let summary = would_be(&before, &summary);
            return Ok(KeyRingView { endpoint: name.0, ring, at, summary });
        }
        self.0.propagation.applied(ring.revision).await;
        Ok(KeyRingView { endpoint: name.0, ring, at, summary })
    }

    pub(crate) async fn endpoint(
        &self,
        caller: &Caller,
        name: &EndpointName,
    ) -> Result<Endpoint, Error> {
        let tenant = self.0.enter(caller, &name.tenant).await?;
        let found = self.0.store.endpoint(tenant.id, &name.id).await?;
        found.ok_or_else(|| Error::NotFound { resource: name.to_string() })
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
/// like a rotation, and a revoked one must not come back.
fn check_new(ring: &KeyRing, key: &SigningKey) -> Result<(), Error> {
    let fingerprint = key.fingerprint();
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
        | Precondition::KeyNotPropagated
        | Precondition::InUse
        | Precondition::DeliveryFinished
        | Precondition::EndpointInactive => "the ring does not allow this now",
    };
    Error::Precondition { kind, subject, message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::SealedSecret;

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
    fn a_key_is_on_a_ring_once_for_ever() {
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
        let error = check_new(&ring, &signing_key).unwrap_err().to_string();
        assert!(error.contains("already on the ring"), "{error}");
        assert!(!error.contains(signing_key.secret_text().expose()));
        assert!(check_new(&ring, &SigningKey::generate_hmac(&[2; 32])).is_ok());
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
