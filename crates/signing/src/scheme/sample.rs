//! Samples: requests as a sender of the scheme would make them, signed with a key that is held here.
//!
//! ```text
//!  wishes + places of the scheme ──► draft ──► body, URL, headers ──► template ──► signature ──► sample
//! ```
//! What is signed is put together by the same code that verifies, so a sample shows whether source
//! and key fit each other, and not whether the scheme fits its sender: the published examples show that.

mod draft;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use draft::Draft;

use super::entry::encode_text;
use super::handshake::Expected;
use super::key::{SchemeKey, SchemeKeyError};
use super::model::{ClaimValue, Scheme, UrlVariant};
use super::proof::{JwtAlgorithm, JwtProof, Proof, SignatureProof};
use super::refusal::Refusal;
use super::request::{Context, Request, View};
use super::signature;
use super::template::{Part, WhenAbsent};
use super::verifier::Verifier;
use super::{JsonPath, Locator, time};

/// What values stand for that a scheme demands and nobody wished for.
const FILLER: &str = "sample";

/// The form of bodies that are no JSON.
pub(super) const FORM_TYPE: &str = "application/x-www-form-urlencoded";

/// A value that a sample is to have, unless the scheme itself needs another one there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Where it is to stand.
    pub at: Locator,
    /// For JSON places inside the items of a batch: where the items are.
    pub items: Option<JsonPath>,
    /// The value.
    pub text: String,
}

/// What a sample is made of, besides scheme and key.
#[derive(Clone, Copy)]
pub struct SampleOrder<'a> {
    /// The configured public URL.
    pub url: &'a str,
    /// The id of the message, where the scheme has a place for one: letters, digits, `-` and `_`.
    pub message_id: &'a str,
    /// Further values; the first wish for a place counts.
    pub wishes: &'a [Wish],
    /// Time and settings.
    pub context: Context<'a>,
}

/// A signed request.
#[derive(Clone, PartialEq, Eq)]
pub struct Sample {
    /// The method.
    pub method: &'static str,
    /// The URL, with the query that the scheme needs.
    pub url: String,
    /// Headers, with the content type and the signature.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl std::fmt::Debug for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Headers and query hold a valid signature, or the key itself where that is sent.
        write!(f, "Sample({} headers, {} bytes)", self.headers.len(), self.body.len())
    }
}

/// Why there is no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SampleError {
    /// The private key belongs to the sender alone.
    #[error("the sender signs with a private key, and only the public one is held here")]
    PublicKey,
    /// The private key belongs to the sender alone, and even the public one is fetched.
    #[error("the sender signs with a private key whose public half is fetched for each request")]
    FetchedKey,
    /// The text is no key of this scheme.
    #[error(transparent)]
    Key(#[from] SchemeKeyError),
    /// Two values of the scheme would stand in one place.
    #[error("the places that the scheme reads exclude each other in one request")]
    Places,
    /// The signed bytes cannot be put together.
    #[error("the signed bytes cannot be made: {0}")]
    Signed(#[from] Refusal),
}

impl Verifier {
    /// A request that passes [`verify`](Self::verify) with this key at this time.
    ///
    /// # Errors
    /// When the key cannot sign, or the scheme's places cannot be filled in one request.
    pub fn sample(&self, key: &SchemeKey, order: &SampleOrder<'_>) -> Result<Sample, SampleError> {
        let scheme = self.scheme();
        if scheme.fetches_keys() {
            return Err(SampleError::FetchedKey);
        }
        if !key.can_sign() {
            return Err(SampleError::PublicKey);
        }
        let mut draft = Draft::new(is_form(scheme, order));
        fill(&mut draft, scheme, order)?;
        match &scheme.proof {
            Proof::Signature(proof) => sign(draft, scheme, proof, key, order),
            Proof::Jwt(proof) => sign_token(draft, proof, key, order),
        }
    }
}

impl Scheme {
    /// Whether its sender signs with a private key, so that nothing that a source holds can sign a
    /// sample.
    #[must_use]
    pub fn needs_private_key(&self) -> bool {
        match &self.proof {
            Proof::Signature(proof) => {
                proof.algorithms.iter().all(|rule| rule.algorithm.is_public_key())
            }
            Proof::Jwt(proof) => matches!(
                proof.algorithm,
                JwtAlgorithm::Es256 | JwtAlgorithm::Rs256 | JwtAlgorithm::EdDsa
            ),
        }
    }
}

/// Forms only where something is read from one.
fn is_form(scheme: &Scheme, order: &SampleOrder<'_>) -> bool {
    let in_form = |at: &Locator| matches!(at, Locator::Form(_));
    let signs_form = match &scheme.proof {
        Proof::Signature(proof) => proof.template.iter().any(|part| match part {
            Part::SortedForm => true,
            Part::Value { at, .. } => in_form(at),
            _ => false,
        }),
        Proof::Jwt(_) => false,
    };
    signs_form
        || scheme.message_id.iter().any(in_form)
        || scheme.claims.iter().any(|claim| in_form(&claim.at))
        || order.wishes.iter().any(|wish| in_form(&wish.at))
}

/// Everything but the signature and what depends on the body.
fn fill(draft: &mut Draft, scheme: &Scheme, order: &SampleOrder<'_>) -> Result<(), SampleError> {
    let items = scheme.items.as_ref();
    for claim in &scheme.claims {
        match &claim.equals {
            ClaimValue::Text(text) => draft.need(&claim.at, None, text)?,
            ClaimValue::Setting(name) => {
                draft.need(&claim.at, None, order.context.setting(name)?)?;
            }
            ClaimValue::BodySha256Hex => {}
        }
    }
    if let Some(rule) = &scheme.timestamp {
        let text = time::format(order.context.now_unix_ms, rule.unit);
        draft.need(&rule.at, None, &text)?;
    }
    if let Some(at) = scheme.message_id.first() {
        draft.put(at, None, order.message_id);
    }
    for wish in order.wishes {
        draft.put(&wish.at, wish.items.as_ref(), &wish.text);
    }
    let Proof::Signature(proof) = &scheme.proof else { return Ok(()) };
    for part in &proof.template {
        if let Part::Value { at, when_absent: WhenAbsent::Refuse, .. } = part {
            draft.put(at, items, FILLER);
        }
    }
    draft.reserve_items(items);
    // An empty form would be no body at all.
    draft.put(&Locator::Form(FILLER.to_owned()), None, FILLER);
    Ok(())
}

fn sign(
    mut draft: Draft,
    scheme: &Scheme,
    proof: &SignatureProof,
    key: &SchemeKey,
    order: &SampleOrder<'_>,
) -> Result<Sample, SampleError> {
    let rule = proof.algorithms.get(key.rule).ok_or(SampleError::Places)?;
    let at = proof.sources.first().ok_or(SampleError::Places)?;
    // The fields beside the signature are read back from its header while the signed bytes are made.
    let fields = draft.signature_fields(proof);
    if !fields.is_empty() {
        draft.set(at, None, &fields)?;
    }
    let variant = proof.url_variants.first().copied().unwrap_or(UrlVariant::AsIs);
    let bare = finished(&mut draft, scheme, order)?;
    let request = request_of(&bare);
    let mut view = View::of(&request, Some(proof));
    if let Some(path) = &scheme.items {
        let items = request.items(path)?;
        view.document = items.into_iter().flatten().next().ok_or(Refusal::NoItems)?;
    }
    let stamp = match &scheme.timestamp {
        Some(rule) => Some(signature::read_timestamp(rule, &view)?.0),
        None => None,
    };
    let signs_id = proof.template.contains(&Part::MessageId);
    let id = if signs_id { Some(signature::signed_id(scheme, proof, &view)?) } else { None };
    let values = signature::Values { timestamp: stamp, id };
    let chunks = signature::render(proof, &view, &values, variant, &order.context)?;
    let bytes = key.signature(rule.algorithm, &chunks).ok_or(SampleError::PublicKey)?;
    let text = format!("{}{}", proof.syntax.prefix, encode_text(&bytes, proof.encoding));
    let entry = match (proof.syntax.key_separator, rule.tags.first()) {
        (Some(separator), tag) => {
            format!("{}{separator}{text}", tag.map_or(FILLER, String::as_str))
        }
        (None, _) => text,
    };
    let entry = match (fields.is_empty(), proof.syntax.item_separator) {
        (false, Some(separator)) => format!("{fields}{separator}{entry}"),
        _ => entry,
    };
    draft.set(at, scheme.items.as_ref(), &entry)?;
    finished(&mut draft, scheme, order)
}

/// Puts the hash of the body where a claim wants it, and everything together.
fn finished(
    draft: &mut Draft,
    scheme: &Scheme,
    order: &SampleOrder<'_>,
) -> Result<Sample, SampleError> {
    let body = draft.body();
    let of_body = |claim: &&super::Claim| claim.equals == ClaimValue::BodySha256Hex;
    for claim in scheme.claims.iter().filter(of_body) {
        draft.set(&claim.at, None, &signature::body_sha256_hex(&body))?;
    }
    // A hash of the body inside the body has no solution.
    if draft.body() != body {
        return Err(SampleError::Places);
    }
    Ok(draft.sample(order.url, body))
}

fn sign_token(
    mut draft: Draft,
    proof: &JwtProof,
    key: &SchemeKey,
    order: &SampleOrder<'_>,
) -> Result<Sample, SampleError> {
    let body = draft.body();
    let sample = draft.sample(order.url, body);
    let mut claims = Map::new();
    if !proof.timeless {
        let seconds = order.context.now_unix_ms.div_euclid(1000);
        claims.insert("iat".into(), json!(seconds));
        claims.insert("exp".into(), json!(seconds.saturating_add(proof.max_age_seconds.into())));
    }
    let parties = [("iss", proof.issuer.as_ref()), ("aud", proof.audience.as_ref())];
    let further = proof.claims.iter().map(|rule| (rule.claim.as_str(), Some(&rule.expected)));
    for (name, expected) in parties.into_iter().chain(further) {
        let text = match expected {
            None => continue,
            Some(Expected::Text(text)) => text.as_str(),
            Some(Expected::Setting(name)) => order.context.setting(name)?,
            Some(Expected::Key) => return Err(SampleError::Places),
        };
        claims.insert(name.into(), json!(text));
    }
    if let Some(name) = &proof.id_claim {
        claims.insert(name.clone(), json!(order.message_id));
    }
    if let Some(rule) = &proof.body_hash {
        claims.insert(rule.claim.clone(), json!(hash(&sample.body, rule.encoding)));
    }
    if let Some(rule) = &proof.url_hash {
        claims.insert(rule.claim.clone(), json!(hash(sample.url.as_bytes(), rule.encoding)));
    }
    let header = json!({ "alg": proof.algorithm.as_str(), "typ": "JWT" });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&Value::Object(claims)));
    let mac = key.mac(signed.as_bytes()).ok_or(SampleError::PublicKey)?;
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac.as_slice()));
    draft.set(&proof.source, None, &token)?;
    Ok(draft.sample(order.url, sample.body))
}

fn hash(bytes: &[u8], encoding: super::Encoding) -> String {
    use sha2::Digest;
    encode_text(&sha2::Sha256::digest(bytes), encoding)
}

fn request_of(sample: &Sample) -> Request<'_> {
    Request {
        method: sample.method,
        url: &sample.url,
        headers: &sample.headers,
        body: &sample.body,
    }
}
