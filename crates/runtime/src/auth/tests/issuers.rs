//! Issuers for tests: keys made on the spot, and answers that can be changed.

use super::*;
use async_trait::async_trait;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, jwk::Jwk};
use rsa::pkcs1::EncodeRsaPrivateKey as _;
use serde_json::{Value, json};
use std::{
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::Semaphore;

pub(super) const ISSUER_URL: &str = "https://issuer.example";
pub(super) const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];

/// PKCS#8 up to the private key, for P-256 and Ed25519.
const P256_PREFIX: &str = "3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420";
const ED25519_PREFIX: &str = "302e020100300506032b657004220420";

/// A key of an issuer.
pub(super) struct Signer {
    pub(super) id: &'static str,
    pub(super) algorithm: Algorithm,
    pub(super) key: EncodingKey,
}

impl Signer {
    pub(super) fn new(algorithm: Algorithm, id: &'static str) -> Self {
        let key = match algorithm {
            Algorithm::RS256 => return Self::rsa(id, 2048),
            Algorithm::ES256 => EncodingKey::from_ec_der(&pkcs8(P256_PREFIX)),
            Algorithm::EdDSA => EncodingKey::from_ed_der(&pkcs8(ED25519_PREFIX)),
            other => panic!("{other:?}"),
        };
        Self { id, algorithm, key }
    }

    pub(super) fn rsa(id: &'static str, bits: usize) -> Self {
        let private = rsa::PrivateKey::new(&mut rand::rng(), bits).unwrap();
        let key = EncodingKey::from_rsa_der(private.to_pkcs1_der().unwrap().as_bytes());
        Self { id, algorithm: Algorithm::RS256, key }
    }

    /// The public half, as it is published.
    pub(super) fn public(&self) -> Value {
        let key = Jwk::from_encoding_key(&self.key, self.algorithm).unwrap();
        let mut value = serde_json::to_value(key).unwrap();
        value["kid"] = json!(self.id);
        value["use"] = json!("sig");
        value
    }

    pub(super) fn public_with(&self, name: &str, value: Value) -> Value {
        let mut public = self.public();
        public[name] = value;
        public
    }

    pub(super) fn header(&self) -> Header {
        Header { kid: Some(self.id.to_owned()), ..Header::new(self.algorithm) }
    }

    pub(super) fn sign(&self, claims: &Value) -> String {
        encode(&self.header(), claims, &self.key).unwrap()
    }
}

fn pkcs8(prefix: &str) -> Vec<u8> {
    let mut der = data_encoding::HEXLOWER.decode(prefix.as_bytes()).unwrap();
    der.extend(crate::random::os_bytes::<32>().unwrap());
    der
}

pub(super) fn set(keys: &[Value]) -> String {
    json!({ "keys": keys }).to_string()
}

pub(super) fn claims() -> Value {
    json!({
        "iss": ISSUER_URL, "aud": "hooks", "sub": "alice", "role": "viewer", "tenant": "shop",
        "iat": NOW, "exp": NOW + 3600,
    })
}

pub(super) fn with(name: &str, value: Value) -> Value {
    let mut changed = claims();
    changed[name] = value;
    changed
}

pub(super) fn without(name: &str) -> Value {
    let mut changed = claims();
    changed.as_object_mut().unwrap().remove(name);
    changed
}

/// One issuer's table, with lines of its own.
pub(super) fn table(issuer: &str, algorithm: Algorithm, lines: &str) -> String {
    format!(
        "[[issuers]]\nissuer = \"{issuer}\"\naudiences = [\"hooks\"]\n\
         algorithm = \"{algorithm:?}\"\n{lines}\n"
    )
}

pub(super) fn at_address(algorithm: Algorithm) -> AuthConfig {
    let text = table(ISSUER_URL, algorithm, "jwks_url = \"https://issuer.example/jwks\"");
    AuthConfig::parse(&text, Path::new("")).unwrap()
}

/// The answer of an issuer, and how often it was asked for.
pub(super) struct Published {
    answer: Mutex<Result<String, JwksFetchError>>,
    pub(super) calls: AtomicUsize,
    /// Answers are given while there are permits.
    pub(super) gate: Semaphore,
}

impl Published {
    pub(super) fn new(keys: &[Value]) -> Arc<Self> {
        Arc::new(Self {
            answer: Mutex::new(Ok(set(keys))),
            calls: AtomicUsize::new(0),
            gate: Semaphore::new(1000),
        })
    }

    pub(super) fn publish(&self, keys: &[Value]) {
        *self.answer.lock().unwrap() = Ok(set(keys));
    }

    pub(super) fn fail(&self) {
        *self.answer.lock().unwrap() = Err(JwksFetchError("the answer is 500".to_owned()));
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl JwksFetch for Published {
    async fn fetch(&self, _: JwksRequest) -> Result<JwksAnswer, JwksFetchError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.gate.acquire().await.unwrap().forget();
        let answer = self.answer.lock().unwrap().clone();
        answer.map(|body| JwksAnswer { body: body.into_bytes(), cache_control: None })
    }
}

/// An authenticator at [`NOW`] whose refreshers run.
pub(super) fn running(config: AuthConfig, published: &Arc<Published>) -> Authenticator {
    let fetch: Arc<dyn JwksFetch> = Arc::clone(published) as _;
    let clock = Arc::new(Fixed(at(NOW)));
    let (authenticator, refreshers) =
        Authenticator::with_issuers(config, Some(key()), &fetch, clock).unwrap();
    for refresher in refreshers {
        tokio::spawn(refresher.run(tokio_util::sync::CancellationToken::new()));
    }
    authenticator
}

/// An authenticator at [`NOW`] that takes tokens of one issuer with these keys.
pub(super) fn taking(algorithm: Algorithm, keys: &[Value], lines: &str) -> Authenticator {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("keys.json"), set(keys)).unwrap();
    let text = table(ISSUER_URL, algorithm, &format!("jwks_file = \"keys.json\"\n{lines}"));
    from_files(&text, directory.path())
}

pub(super) fn from_files(text: &str, directory: &Path) -> Authenticator {
    let config = AuthConfig::parse(text, directory).unwrap();
    let fetch: Arc<dyn JwksFetch> = Published::new(&[]);
    let clock = Arc::new(Fixed(at(NOW)));
    Authenticator::with_issuers(config, Some(key()), &fetch, clock).unwrap().0
}
