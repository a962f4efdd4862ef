//! A request to be judged, easy to change.

use turnbuckle_signing::scheme::{
    Context, HandshakeReply, Refusal, Request, SchemeKey, Verified, Verifier, preset,
};

/// A request, its key and its time.
#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) preset: String,
    pub(crate) key: String,
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    /// Whether every byte of the body is signed.
    pub(crate) body_covered: bool,
    pub(crate) now_ms: i64,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) id: Option<String>,
    pub(crate) signed_at_ms: Option<i64>,
}

impl Sample {
    pub(crate) fn of(preset: &str, key: &str) -> Self {
        Self {
            name: preset.to_owned(),
            preset: preset.to_owned(),
            key: key.to_owned(),
            method: "POST".to_owned(),
            url: "https://hooks.example/in".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            body_covered: true,
            now_ms: 1_700_000_000_000,
            settings: Vec::new(),
            id: None,
            signed_at_ms: None,
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.as_bytes().to_vec()));
        self
    }

    pub(crate) fn body(mut self, body: &str) -> Self {
        self.body = body.as_bytes().to_vec();
        self
    }

    pub(crate) fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn verifier(&self) -> Verifier {
        Verifier::new(preset(&self.preset).unwrap().scheme.clone()).unwrap()
    }

    pub(crate) fn parsed_key(&self) -> SchemeKey {
        self.verifier().key(&self.key).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    pub(crate) fn verify(&self) -> Result<Verified, Refusal> {
        self.verify_with(&[self.parsed_key()])
    }

    pub(crate) fn verify_with(&self, keys: &[SchemeKey]) -> Result<Verified, Refusal> {
        self.verify_under(&self.verifier(), keys)
    }

    pub(crate) fn verify_under(
        &self,
        verifier: &Verifier,
        keys: &[SchemeKey],
    ) -> Result<Verified, Refusal> {
        self.judged(|request, context| verifier.verify(request, keys, context))
    }

    /// The name of the handshake, and its answer.
    pub(crate) fn handshake(&self, keys: &[SchemeKey]) -> Option<(String, HandshakeReply)> {
        let verifier = self.verifier();
        self.judged(|request, context| {
            let handshake = verifier.handshake(request, keys, context)?;
            if handshake.signed {
                verifier.verify(request, keys, context).ok()?;
            }
            let reply = verifier.answer(handshake, request, keys, context).ok()?;
            Some((handshake.name.clone(), reply))
        })
    }

    pub(crate) fn judged<T>(&self, judge: impl FnOnce(&Request<'_>, &Context<'_>) -> T) -> T {
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let request = Request {
            method: &self.method,
            url: &self.url,
            headers: &self.headers,
            body: &self.body,
        };
        judge(&request, &Context { now_unix_ms: self.now_ms, settings: &settings })
    }
}

/// HMAC in hex or base64, written here once more so that the tests do not sign with what they
/// test.
pub(crate) fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    use hmac::{KeyInit, Mac};
    let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    data_encoding::BASE64.encode(bytes)
}
