//! The proof of a scheme as a file has it.

use serde::Deserialize;

use crate::scheme::proof::{
    AlgorithmRule, BodyHashClaim, Encoding, JwtProof, KeyEncoding, KeyRule, SignatureProof,
    SignatureSyntax, TokenClaim, UrlHashClaim,
};
use crate::scheme::template::{Part, WhenAbsent};
use crate::scheme::text::text_or_setting;
use crate::scheme::violation::Violations;

use super::{all, one, place, places};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignatureDocument {
    at: Vec<String>,
    item_separator: Option<char>,
    key_separator: Option<char>,
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    trim: bool,
    encoding: String,
    #[serde(default)]
    template: TemplateDocument,
    #[serde(default)]
    url_variants: Vec<String>,
    algorithms: Vec<AlgorithmDocument>,
}

impl SignatureDocument {
    pub(super) fn read(&self, found: &mut Violations) -> Option<SignatureProof> {
        let algorithms = self.algorithms.iter().enumerate();
        let algorithms: Vec<_> =
            algorithms.filter_map(|(index, rule)| rule.read(index, found)).collect();
        Some(SignatureProof {
            sources: places(&self.at, "signature.at", found),
            syntax: SignatureSyntax {
                item_separator: self.item_separator,
                key_separator: self.key_separator,
                prefix: self.prefix.clone(),
                trim: self.trim,
            },
            template: self.template.read(found),
            url_variants: all(&self.url_variants, "signature.url_variants", str::parse, found),
            encoding: one(&self.encoding, "signature.encoding", str::parse, found)?,
            algorithms,
        })
    }
}

/// One text, or texts and values with texts around them.
#[derive(Default, Deserialize)]
#[serde(untagged)]
enum TemplateDocument {
    #[default]
    Nothing,
    Text(String),
    List(Vec<PartDocument>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PartDocument {
    Text(String),
    Value(ValueDocument),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValueDocument {
    at: String,
    #[serde(default)]
    optional: bool,
    #[serde(default)]
    before: String,
    #[serde(default)]
    after: String,
}

impl TemplateDocument {
    fn read(&self, found: &mut Violations) -> Vec<Part> {
        const FIELD: &str = "signature.template";
        match self {
            Self::Nothing => Vec::new(),
            Self::Text(text) => one(text, FIELD, Part::parse_template, found).unwrap_or_default(),
            Self::List(list) => {
                let mut parts = Vec::new();
                for (index, part) in list.iter().enumerate() {
                    part.read(&format!("{FIELD}[{index}]"), &mut parts, found);
                }
                parts
            }
        }
    }
}

impl PartDocument {
    fn read(&self, field: &str, parts: &mut Vec<Part>, found: &mut Violations) {
        match self {
            Self::Text(text) => {
                parts.extend(one(text, field, Part::parse_template, found).unwrap_or_default());
            }
            Self::Value(value) => {
                let when_absent =
                    if value.optional { WhenAbsent::Empty } else { WhenAbsent::Refuse };
                let at = place(&value.at, field, found);
                parts.extend(at.map(|at| Part::Value {
                    at,
                    when_absent,
                    before: value.before.clone(),
                    after: value.after.clone(),
                }));
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AlgorithmDocument {
    algorithm: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    key: KeyDocument,
}

impl AlgorithmDocument {
    fn read(&self, index: usize, found: &mut Violations) -> Option<AlgorithmRule> {
        let field = format!("signature.algorithms[{index}]");
        let key = self.key.read(&format!("{field}.key"), found);
        let algorithm = one(&self.algorithm, &format!("{field}.algorithm"), str::parse, found)?;
        Some(AlgorithmRule { algorithm, tags: self.tags.clone(), key: key? })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct KeyDocument {
    encoding: String,
    prefixes: Vec<String>,
    min_bytes: u16,
    digest: Option<String>,
}

impl Default for KeyDocument {
    fn default() -> Self {
        Self {
            encoding: KeyEncoding::Utf8.as_str().to_owned(),
            prefixes: Vec::new(),
            min_bytes: 1,
            digest: None,
        }
    }
}

impl KeyDocument {
    fn read(&self, field: &str, found: &mut Violations) -> Option<KeyRule> {
        let digest = self.digest.as_ref();
        let digest =
            digest.and_then(|name| one(name, &format!("{field}.digest"), str::parse, found));
        Some(KeyRule {
            encoding: one(&self.encoding, &format!("{field}.encoding"), str::parse, found)?,
            prefixes: self.prefixes.clone(),
            min_bytes: self.min_bytes,
            digest,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JwtDocument {
    at: String,
    algorithm: String,
    #[serde(default)]
    key: KeyDocument,
    issuer: Option<String>,
    audience: Option<String>,
    body_hash: Option<HashDocument>,
    url_hash: Option<HashDocument>,
    max_age_seconds: u32,
    max_future_seconds: u32,
    id_claim: Option<String>,
    #[serde(default)]
    claims: Vec<TokenClaimDocument>,
    #[serde(default)]
    timeless: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenClaimDocument {
    claim: String,
    equals: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HashDocument {
    claim: String,
    encoding: String,
    #[serde(default)]
    absent_when_empty: bool,
}

impl HashDocument {
    fn encoding(&self, field: &str, found: &mut Violations) -> Option<Encoding> {
        one(&self.encoding, &format!("{field}.encoding"), str::parse, found)
    }
}

impl JwtDocument {
    pub(super) fn read(&self, found: &mut Violations) -> Option<JwtProof> {
        let source = place(&self.at, "jwt.at", found);
        let algorithm = one(&self.algorithm, "jwt.algorithm", str::parse, found);
        let key = self.key.read("jwt.key", found);
        let issuer = self.issuer.as_ref();
        let issuer = issuer.and_then(|text| one(text, "jwt.issuer", text_or_setting, found));
        let audience = self.audience.as_ref();
        let audience = audience.and_then(|text| one(text, "jwt.audience", text_or_setting, found));
        let body_hash = self.body_hash.as_ref().and_then(|hash| {
            Some(BodyHashClaim {
                claim: hash.claim.clone(),
                encoding: hash.encoding("jwt.body_hash", found)?,
                absent_when_empty: hash.absent_when_empty,
            })
        });
        let url_hash = self.url_hash.as_ref().and_then(|hash| {
            let encoding = hash.encoding("jwt.url_hash", found)?;
            Some(UrlHashClaim { claim: hash.claim.clone(), encoding })
        });
        let mut claims = Vec::new();
        for (index, rule) in self.claims.iter().enumerate() {
            let field = format!("jwt.claims[{index}].equals");
            let expected = one(&rule.equals, &field, text_or_setting, found)?;
            claims.push(TokenClaim { claim: rule.claim.clone(), expected });
        }
        Some(JwtProof {
            source: source?,
            algorithm: algorithm?,
            key: key?,
            issuer,
            audience,
            body_hash,
            url_hash,
            max_age_seconds: self.max_age_seconds,
            max_future_seconds: self.max_future_seconds,
            id_claim: self.id_claim.clone(),
            claims,
            timeless: self.timeless,
        })
    }
}
