//! Key rings on the wire.

use super::{
    absorb, finish, required_etag, single,
    value::{self, duration_or},
};
use crate::{
    key_material::{KeyText, WantedKey, algorithm_of},
    key_ring::{CreatedKey, KeyRingView, RevokeKey, RotateKey, SeenRing, StageKey, SwitchKey},
    names::{KeyName, KeyRingName, OwnerName},
};
use std::time::Duration;
use turnbuckle_domain::{
    Error, Key, KeyAlgorithm, KeyState, Revision, RotationPause, Timestamp, Violations,
    incoming_limits, key_limits,
};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::timestamp;
use turnbuckle_signing::SigningKey;
use zeroize::Zeroizing;

/// A caller's own key. What is wrong with it is said without any part of it.
pub(super) fn imported(text: &str) -> Result<SigningKey, String> {
    SigningKey::parse(text).map_err(|error| {
        format!("is not usable: {error}; send whsec_… of 24 to 75 bytes, whsk_…, or nothing")
    })
}

/// The algorithm asked for; none leaves it to the secret, or to the default.
fn algorithm(number: i32) -> Result<Option<KeyAlgorithm>, String> {
    use v1::KeyAlgorithm as Wire;
    match Wire::try_from(number) {
        Ok(Wire::Unspecified) => Ok(None),
        Ok(Wire::HmacSha256) => Ok(Some(KeyAlgorithm::HmacSha256)),
        Ok(Wire::Ed25519) => Ok(Some(KeyAlgorithm::Ed25519)),
        Ok(Wire::SharedSecret) => Ok(Some(KeyAlgorithm::SharedSecret)),
        Ok(Wire::PublicKey) => Ok(Some(KeyAlgorithm::PublicKey)),
        Err(_) => Err(format!("is {number}, which names no algorithm")),
    }
}

/// The key a ring's owner wants. Without a known owner the algorithm is all that can be judged.
fn wanted(
    violations: &mut Violations,
    owner: Option<&OwnerName>,
    number: i32,
    secret: &str,
) -> Option<WantedKey> {
    let asked = violations.take("algorithm", algorithm(number));
    let wanted = match owner? {
        OwnerName::Endpoint(_) => signing(asked?, secret),
        OwnerName::Source(_) => verifying(asked?, secret),
    };
    absorb(violations, wanted)
}

fn verifying(asked: Option<KeyAlgorithm>, secret: &str) -> Result<WantedKey, Error> {
    if asked.is_some_and(KeyAlgorithm::signs) {
        return Err(Error::invalid(
            "algorithm",
            "is for endpoints; leave it out, or say SHARED_SECRET or PUBLIC_KEY",
        ));
    }
    if !secret.is_empty() {
        let text = KeyText::new(Zeroizing::new(secret.to_owned()));
        return Ok(WantedKey::Given { text, asked });
    }
    match asked {
        Some(KeyAlgorithm::PublicKey) => {
            Err(Error::invalid("secret", "is required: the public key, as the sender shows it"))
        }
        _ => Ok(WantedKey::FreshSecret),
    }
}

fn signing(asked: Option<KeyAlgorithm>, secret: &str) -> Result<WantedKey, Error> {
    if asked.is_some_and(|asked| !asked.signs()) {
        return Err(Error::invalid("algorithm", "is for sources; use HMAC_SHA256 or ED25519"));
    }
    if secret.is_empty() {
        return Ok(WantedKey::Fresh(asked.unwrap_or(KeyAlgorithm::HmacSha256)));
    }
    let key = single("secret", imported(secret))?;
    let has = algorithm_of(&key);
    match asked.filter(|asked| *asked != has) {
        Some(asked) => Err(Error::invalid(
            "algorithm",
            format!(
                "is {}, but the secret is for {}; leave one of them out",
                asked.as_str(),
                has.as_str()
            ),
        )),
        None => Ok(WantedKey::Imported(key)),
    }
}

/// The overlap asked for, or the default of the ring's owner.
pub(super) fn overlap(
    given: Option<&prost_types::Duration>,
    owner: Option<&OwnerName>,
) -> Result<Duration, String> {
    let default = match owner {
        Some(OwnerName::Source(_)) => incoming_limits::OVERLAP_DEFAULT,
        Some(OwnerName::Endpoint(_)) | None => key_limits::OVERLAP_DEFAULT,
    };
    duration_or(given, default, Duration::ZERO..=key_limits::OVERLAP_MAX)
}

pub(super) fn seen(violations: &mut Violations, parent: &str, etag: &str) -> Option<SeenRing> {
    let owner = violations.take("parent", OwnerName::parse(parent));
    let etag = required_etag(violations, "etag", etag);
    Some(SeenRing { owner: owner?, etag: etag? })
}

pub(crate) fn get(request: v1::GetKeyRingRequest) -> Result<KeyRingName, Error> {
    single("name", KeyRingName::parse(&request.name))
}

pub(crate) fn stage(mut request: v1::StageKeyRequest) -> Result<StageKey, Error> {
    let secret = Zeroizing::new(std::mem::take(&mut request.secret));
    let mut violations = Violations::new();
    let ring = seen(&mut violations, &request.parent, &request.etag);
    let owner = OwnerName::parse(&request.parent).ok();
    let key = wanted(&mut violations, owner.as_ref(), request.algorithm, &secret);
    let command = || Some(StageKey { ring: ring?, key: key? });
    finish(violations, command())
}

pub(crate) fn rotate(mut request: v1::RotateKeyRequest) -> Result<RotateKey, Error> {
    let secret = Zeroizing::new(std::mem::take(&mut request.secret));
    let mut violations = Violations::new();
    let ring = seen(&mut violations, &request.parent, &request.etag);
    let owner = OwnerName::parse(&request.parent).ok();
    let key = wanted(&mut violations, owner.as_ref(), request.algorithm, &secret);
    let overlap = violations.take("overlap", overlap(request.overlap.as_ref(), owner.as_ref()));
    let force = request.force;
    let command = || Some(RotateKey { ring: ring?, key: key?, overlap: overlap?, force });
    finish(violations, command())
}

fn switch(
    parent: &str,
    etag: &str,
    given: Option<&prost_types::Duration>,
) -> Result<SwitchKey, Error> {
    let mut violations = Violations::new();
    let ring = seen(&mut violations, parent, etag);
    let owner = OwnerName::parse(parent).ok();
    let overlap = violations.take("overlap", overlap(given, owner.as_ref()));
    let command = || Some(SwitchKey { ring: ring?, overlap: overlap? });
    finish(violations, command())
}

pub(crate) fn activate(request: v1::ActivateKeyRequest) -> Result<SwitchKey, Error> {
    switch(&request.parent, &request.etag, request.overlap.as_ref())
}

pub(crate) fn rollback(request: v1::RollbackKeyRequest) -> Result<SwitchKey, Error> {
    switch(&request.parent, &request.etag, request.overlap.as_ref())
}

pub(crate) fn revoke(request: v1::RevokeKeyRequest) -> Result<RevokeKey, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", KeyName::parse(&request.name));
    let etag = required_etag(&mut violations, "etag", &request.etag);
    if request.reason.trim().is_empty() {
        violations.add("reason", "is required: say why, for whoever looks later");
    }
    let reason = violations.take("reason", value::reason(request.reason));
    let command = || Some(RevokeKey { name: name?, etag: etag?, reason: reason? });
    finish(violations, command())
}

pub(super) const fn wire_state(state: KeyState) -> v1::KeyState {
    match state {
        KeyState::Staged => v1::KeyState::Staged,
        KeyState::Active => v1::KeyState::Active,
        KeyState::Retiring => v1::KeyState::Retiring,
        KeyState::Retired => v1::KeyState::Retired,
        KeyState::Revoked => v1::KeyState::Revoked,
    }
}

/// Where a state stands in a listing: what is in use first.
const fn rank(state: KeyState) -> u8 {
    match state {
        KeyState::Staged => 0,
        KeyState::Active => 1,
        KeyState::Retiring => 2,
        KeyState::Retired | KeyState::Revoked => 3,
    }
}

const fn wire_algorithm(algorithm: KeyAlgorithm) -> v1::KeyAlgorithm {
    match algorithm {
        KeyAlgorithm::HmacSha256 => v1::KeyAlgorithm::HmacSha256,
        KeyAlgorithm::Ed25519 => v1::KeyAlgorithm::Ed25519,
        KeyAlgorithm::SharedSecret => v1::KeyAlgorithm::SharedSecret,
        KeyAlgorithm::PublicKey => v1::KeyAlgorithm::PublicKey,
    }
}

fn key_message(owner: &OwnerName, key: &Key, at: Timestamp) -> v1::Key {
    v1::Key {
        name: KeyName { owner: owner.clone(), key: key.id }.to_string(),
        state: wire_state(key.state_at(at)).into(),
        algorithm: wire_algorithm(key.algorithm).into(),
        fingerprint: key.fingerprint.clone(),
        public_key: key.public_key.clone().unwrap_or_default(),
        create_time: Some(timestamp(key.created_at)),
        activate_time: key.activated_at.map(timestamp),
        retire_time: key.retire_at.map(timestamp),
        revoke_reason: key.revoke_reason.clone().unwrap_or_default(),
        secret: String::new(),
        ring_summary: String::new(),
    }
}

/// A pause as it goes out.
pub(super) fn pause_message(pause: &RotationPause) -> v1::RotationPause {
    v1::RotationPause {
        pause_time: Some(timestamp(pause.at)),
        reason: pause.reason.clone(),
        resume_time: pause.resumed_at.map(timestamp),
    }
}

/// Keys in the order in which they are shown: those in use first, newest first.
pub(super) fn shown(keys: &[Key], at: Timestamp) -> Vec<&Key> {
    let mut keys: Vec<&Key> = keys.iter().collect();
    keys.sort_by_key(|key| (rank(key.state_at(at)), std::cmp::Reverse((key.created_at, key.id))));
    keys
}

pub(crate) fn message(view: &KeyRingView) -> v1::KeyRing {
    let keys = shown(&view.ring.keys, view.at);
    let Revision(revision) = view.ring.revision;
    v1::KeyRing {
        name: KeyRingName(view.owner.clone()).to_string(),
        keys: keys.into_iter().map(|key| key_message(&view.owner, key, view.at)).collect(),
        etag: view.ring.revision.etag(),
        revision,
        summary: view.summary.clone(),
        pause: view.ring.pause.as_ref().map(pause_message),
    }
}

/// The one answer that shows the secret.
pub(crate) fn created(created: &CreatedKey) -> v1::Key {
    let secret = created.secret.as_ref().map(|secret| secret.expose().to_owned());
    v1::Key {
        secret: secret.unwrap_or_default(),
        ring_summary: created.ring_summary.clone(),
        ..key_message(&created.owner, &created.key, created.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::{KeyId, KeyRing, SealedSecret};

    const PARENT: &str = "tenants/acme/endpoints/billing";

    fn stage_with(number: i32, secret: &str) -> Result<StageKey, Error> {
        stage(v1::StageKeyRequest {
            parent: PARENT.to_owned(),
            etag: "\"4\"".to_owned(),
            algorithm: number,
            secret: secret.to_owned(),
            ..Default::default()
        })
    }

    #[test]
    fn every_verb_needs_the_etag_of_the_ring() {
        let parent = || PARENT.to_owned();
        let errors = [
            stage(v1::StageKeyRequest { parent: parent(), ..Default::default() }).err(),
            rotate(v1::RotateKeyRequest { parent: parent(), ..Default::default() }).err(),
            activate(v1::ActivateKeyRequest { parent: parent(), ..Default::default() }).err(),
            rollback(v1::RollbackKeyRequest { parent: parent(), ..Default::default() }).err(),
            revoke(v1::RevokeKeyRequest::default()).err(),
        ];
        for error in errors {
            let text = error.unwrap().to_string();
            assert!(text.contains("etag: is required: read the key ring"), "{text}");
        }
    }

    #[test]
    fn a_key_is_fresh_hmac_unless_something_else_is_asked_for() {
        for (number, expected) in [
            (0, KeyAlgorithm::HmacSha256),
            (1, KeyAlgorithm::HmacSha256),
            (2, KeyAlgorithm::Ed25519),
        ] {
            let command = stage_with(number, "").unwrap();
            assert!(matches!(command.key, WantedKey::Fresh(algorithm) if algorithm == expected));
            assert_eq!(command.ring.etag, Revision(4));
        }
        assert!(stage_with(9, "").unwrap_err().to_string().contains("algorithm: is 9"));
    }

    #[test]
    fn a_secret_decides_the_algorithm_and_must_not_contradict_it() {
        let ed25519 = SigningKey::ed25519(&[1; 32]);
        let text = ed25519.secret_text();
        assert_eq!(stage_with(0, text.expose()).unwrap().key.algorithm(), KeyAlgorithm::Ed25519);
        let error = stage_with(1, text.expose()).unwrap_err().to_string();
        assert!(error.contains("is hmac-sha256, but the secret is for ed25519"), "{error}");
    }

    #[test]
    fn a_bad_secret_is_not_repeated() {
        for bad in ["whsec_hunter2", "hunter2!", "whpk_aHVudGVyMg==", "whsec_"] {
            let error = stage_with(0, bad).unwrap_err().to_string();
            assert!(error.contains("secret: is not usable"), "{error}");
            assert!(!error.contains("hunter2") && !error.contains("aHVud"), "{error}");
        }
    }

    #[test]
    fn overlaps_are_bounded_and_default_to_a_day() {
        let with = |given: Option<i64>| {
            activate(v1::ActivateKeyRequest {
                parent: PARENT.to_owned(),
                etag: "\"4\"".to_owned(),
                overlap: given.map(|seconds| prost_types::Duration { seconds, nanos: 0 }),
                ..Default::default()
            })
        };
        assert_eq!(with(None).unwrap().overlap, Duration::from_secs(86_400));
        assert_eq!(with(Some(0)).unwrap().overlap, Duration::ZERO);
        assert!(with(Some(30 * 86_400)).is_ok());
        for bad in [-1, 30 * 86_400 + 1] {
            let error = with(Some(bad)).unwrap_err().to_string();
            assert!(error.contains("use 0 s to 30 d"), "{error}");
        }
    }

    #[test]
    fn a_revocation_says_why() {
        let error = revoke(v1::RevokeKeyRequest { reason: " ".to_owned(), ..Default::default() });
        assert!(error.unwrap_err().to_string().contains("reason: is required"));
    }

    fn key(number: u8, made: i64) -> Key {
        let text = format!("key_0000000000000000000000000{}", if number == 0 { '0' } else { '4' });
        Key::staged(
            text.parse::<KeyId>().unwrap(),
            KeyAlgorithm::HmacSha256,
            format!("{number:016x}"),
            None,
            SealedSecret::from_bytes(vec![number]),
            Timestamp::from_micros(made),
        )
    }

    #[test]
    fn a_ring_shows_what_the_clock_makes_of_it_and_no_secret() {
        let now = Timestamp::from_micros(1_000_000);
        let mut ring = KeyRing::with_first(key(0, 1), now);
        ring.rotate(key(1, 2), Duration::from_secs(60), false, now).unwrap();
        let owner = OwnerName::parse(PARENT).unwrap();
        let states = |at: Timestamp| {
            let out = message(&KeyRingView::of(owner.clone(), ring.clone(), at));
            assert_eq!(out.name, format!("{PARENT}/keyRing"));
            assert!(out.keys.iter().all(|key| key.secret.is_empty()));
            out.keys.iter().map(v1::Key::state).collect::<Vec<_>>()
        };
        assert_eq!(states(now), [v1::KeyState::Active, v1::KeyState::Retiring]);
        let later = now + Duration::from_secs(60);
        assert_eq!(states(later), [v1::KeyState::Active, v1::KeyState::Retired]);
    }
}
