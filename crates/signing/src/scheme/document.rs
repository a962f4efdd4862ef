//! Schemes and presets as files.

mod proof;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::handshake::{Handshake, Piece, Reply};
use super::json_path::JsonPath;
use super::locator::Locator;
use super::model::{BodyForm, Claim, ClaimValue, KeySource, Scheme, TimestampRule};
use super::preset::{EventRule, Preset};
use super::proof::Proof;
use super::text::text_or_setting;
use super::violation::Violations;
use proof::{JwtDocument, SignatureDocument};

/// Why a file is no preset or scheme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The file does not have the form: which line, and what is expected there.
    #[error("{0}")]
    Form(String),
    /// The form is right, and rules are broken.
    #[error(transparent)]
    Rules(#[from] Violations),
}

impl Scheme {
    /// A scheme from TOML, with the fields of the `scheme` of a preset file.
    ///
    /// # Errors
    /// When the text does not have the form, or the scheme breaks rules.
    pub fn from_toml(text: &str) -> Result<Self, DocumentError> {
        let deserializer = toml::Deserializer::parse(text);
        let document = deserializer
            .and_then(SchemeDocument::deserialize)
            .map_err(|error| DocumentError::Form(error.to_string()))?;
        finished(document.read())
    }
}

impl Scheme {
    /// The same from any other format, such as YAML or JSON.
    ///
    /// # Errors
    /// When the document does not have the form, or the scheme breaks rules.
    pub fn from_document<'de, D: Deserializer<'de>>(document: D) -> Result<Self, DocumentError> {
        let document = SchemeDocument::deserialize(document)
            .map_err(|error| DocumentError::Form(error.to_string()))?;
        finished(document.read())
    }
}

impl Preset {
    /// A preset from a file's text, in YAML.
    ///
    /// # Errors
    /// When the text does not have the form, or its scheme breaks rules.
    pub fn from_yaml(text: &str) -> Result<Self, DocumentError> {
        let document: PresetDocument =
            serde_norway::from_str(text).map_err(|error| DocumentError::Form(error.to_string()))?;
        let mut found = Violations::default();
        let event = document.event.read(&mut found);
        let hash_exclude = all(&document.hash_exclude, "hash_exclude", JsonPath::parse, &mut found);
        let evidence = one(&document.evidence, "evidence", str::parse, &mut found);
        let Some(evidence) = evidence else { return Err(found.into()) };
        found.into_result()?;
        Ok(Self {
            name: document.name,
            title: document.title,
            evidence,
            scheme: finished(document.scheme.read())?,
            event,
            hash_exclude,
            dedup_window_seconds: document.dedup_window_seconds,
            accepted_status: document.accepted_status,
            accepted_without_body: document.accepted_without_body,
            repeats_without_id: document.repeats_without_id,
            notes: document.notes,
        })
    }
}

fn finished((scheme, found): (Option<Scheme>, Violations)) -> Result<Scheme, DocumentError> {
    found.into_result()?;
    let scheme = scheme.ok_or_else(|| {
        DocumentError::Form("a scheme has either [signature] or [jwt]".to_owned())
    })?;
    scheme.validate()?;
    Ok(scheme)
}

fn one<T, E: std::fmt::Display>(
    text: &str,
    field: &str,
    parse: impl Fn(&str) -> Result<T, E>,
    found: &mut Violations,
) -> Option<T> {
    parse(text).map_err(|error| found.add(field, error.to_string())).ok()
}

fn all<T, E: std::fmt::Display>(
    texts: &[String],
    field: &str,
    parse: impl Fn(&str) -> Result<T, E>,
    found: &mut Violations,
) -> Vec<T> {
    let mut values = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        values.extend(one(text, &format!("{field}[{index}]"), &parse, found));
    }
    values
}

fn place(text: &str, field: &str, found: &mut Violations) -> Option<Locator> {
    one(text, field, str::parse, found)
}

fn places(texts: &[String], field: &str, found: &mut Violations) -> Vec<Locator> {
    all(texts, field, str::parse, found)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PresetDocument {
    name: String,
    title: String,
    evidence: String,
    dedup_window_seconds: u32,
    accepted_status: u16,
    #[serde(default)]
    accepted_without_body: bool,
    #[serde(default)]
    repeats_without_id: bool,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    hash_exclude: Vec<String>,
    #[serde(default)]
    event: EventDocument,
    scheme: SchemeDocument,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EventDocument {
    id: Vec<String>,
    #[serde(rename = "type")]
    event_type: Vec<String>,
    /// The type of what has none at those places.
    type_default: Option<String>,
    /// Other values that name it together, tried when those of `id` are not all there.
    id_otherwise: Vec<Vec<String>>,
    version: Option<String>,
    time: Option<String>,
    items: Option<String>,
    form_payload: Option<String>,
}

impl EventDocument {
    fn read(&self, found: &mut Violations) -> EventRule {
        EventRule {
            id: places(&self.id, "event.id", found),
            event_type: places(&self.event_type, "event.type", found),
            type_default: self.type_default.clone(),
            id_otherwise: self
                .id_otherwise
                .iter()
                .map(|parts| places(parts, "event.id_otherwise", found))
                .collect(),
            version: self.version.as_ref().and_then(|at| place(at, "event.version", found)),
            time: self.time.as_ref().and_then(|at| place(at, "event.time", found)),
            items: self
                .items
                .as_ref()
                .and_then(|path| one(path, "event.items", JsonPath::parse, found)),
            form_payload: self.form_payload.clone(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemeDocument {
    signature: Option<SignatureDocument>,
    jwt: Option<JwtDocument>,
    certificate: Option<CertificateDocument>,
    key_set: Option<String>,
    timestamp: Option<TimestampDocument>,
    #[serde(default)]
    message_id: Vec<String>,
    #[serde(default)]
    claims: Vec<ClaimDocument>,
    body_form: Option<String>,
    items: Option<String>,
    #[serde(default)]
    settings: Vec<String>,
    #[serde(default)]
    handshakes: Vec<HandshakeDocument>,
}

impl SchemeDocument {
    fn read(self) -> (Option<Scheme>, Violations) {
        let mut found = Violations::default();
        let proof = match (&self.signature, &self.jwt) {
            (Some(signature), None) => signature.read(&mut found).map(Proof::Signature),
            (None, Some(jwt)) => jwt.read(&mut found).map(Proof::Jwt),
            _ => None,
        };
        let key_source = self.read_key_source(&mut found);
        let timestamp = self.timestamp.as_ref().and_then(|rule| rule.read(&mut found));
        let message_id = places(&self.message_id, "message_id", &mut found);
        let claims = self.claims.iter().enumerate();
        let claims = claims.filter_map(|(index, claim)| claim.read(index, &mut found)).collect();
        let form = self.body_form.as_deref();
        let body_form: Option<BodyForm> =
            form.and_then(|form| one(form, "body_form", str::parse, &mut found));
        let items = self.items.as_ref();
        let items = items.and_then(|path| one(path, "items", JsonPath::parse, &mut found));
        let handshakes = self.handshakes.iter().enumerate();
        let handshakes =
            handshakes.filter_map(|(index, one)| one.read(index, &mut found)).collect();
        let settings = self.settings;
        let scheme = proof.zip(key_source).map(|(proof, key_source)| Scheme {
            proof,
            key_source,
            timestamp,
            message_id,
            claims,
            body_form,
            items,
            settings,
            handshakes,
        });
        (scheme, found)
    }

    fn read_key_source(&self, found: &mut Violations) -> Option<KeySource> {
        match (&self.certificate, &self.key_set) {
            (Some(certificate), None) => {
                place(&certificate.url, "certificate.url", found).map(|url| {
                    KeySource::Certificate {
                        url,
                        hosts: certificate.hosts.clone(),
                        path_suffix: certificate.path_suffix.clone(),
                        subject: certificate.subject.clone(),
                        leaf_alone: certificate.leaf_alone,
                    }
                })
            }
            (None, Some(url)) => Some(KeySource::KeySet { url: url.clone() }),
            (None, None) => Some(KeySource::KeyRing),
            (Some(_), Some(_)) => {
                found.add("key_set", "keys come from one place: leave out one of the two");
                None
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CertificateDocument {
    url: String,
    hosts: Vec<String>,
    #[serde(default)]
    path_suffix: String,
    subject: Option<String>,
    #[serde(default)]
    leaf_alone: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TimestampDocument {
    at: String,
    unit: String,
    max_age_seconds: u32,
    max_future_seconds: u32,
}

impl TimestampDocument {
    fn read(&self, found: &mut Violations) -> Option<TimestampRule> {
        let at = place(&self.at, "timestamp.at", found);
        let unit = one(&self.unit, "timestamp.unit", str::parse, found);
        Some(TimestampRule {
            at: at?,
            unit: unit?,
            max_age_seconds: self.max_age_seconds,
            max_future_seconds: self.max_future_seconds,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimDocument {
    at: String,
    equals: String,
}

impl ClaimDocument {
    /// A text, `{setting:NAME}` or `{body_sha256}`.
    fn read(&self, index: usize, found: &mut Violations) -> Option<Claim> {
        let at = place(&self.at, &format!("claims[{index}].at"), found)?;
        if self.equals == "{body_sha256}" {
            return Some(Claim { at, equals: ClaimValue::BodySha256Hex });
        }
        let field = format!("claims[{index}].equals");
        let equals = match one(&self.equals, &field, text_or_setting, found)? {
            super::Expected::Text(text) => ClaimValue::Text(text),
            super::Expected::Setting(name) => ClaimValue::Setting(name),
            super::Expected::Key => {
                found.add(field, "is a text, {setting:NAME} or {body_sha256}");
                return None;
            }
        };
        Some(Claim { at, equals })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HandshakeDocument {
    name: String,
    when: Vec<String>,
    signed: bool,
    status: u16,
    #[serde(default)]
    content_type: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    learns_secret: Option<String>,
}

impl HandshakeDocument {
    fn read(&self, index: usize, found: &mut Violations) -> Option<Handshake> {
        let field = format!("handshakes[{index}]");
        let mut headers = Vec::new();
        for (name, value) in &self.headers {
            let field = format!("{field}.headers.{name}");
            let pieces = one(value, &field, Piece::parse_answer, found)?;
            headers.push((name.clone(), pieces));
        }
        let learns = self.learns_secret.as_ref();
        Some(Handshake {
            name: self.name.clone(),
            when: all(&self.when, &format!("{field}.when"), str::parse, found),
            signed: self.signed,
            reply: Reply {
                status: self.status,
                content_type: self.content_type.clone(),
                headers,
                body: one(&self.body, &format!("{field}.body"), Piece::parse_answer, found)?,
            },
            learns_secret: learns
                .and_then(|at| place(at, &format!("{field}.learns_secret"), found)),
        })
    }
}
