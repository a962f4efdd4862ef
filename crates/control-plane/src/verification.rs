//! Verification schemes: presets, documents, and the keys that fit them.

use data_encoding::{BASE64, BASE64URL_NOPAD, HEXLOWER};
use std::{collections::BTreeMap, time::Duration};
use turnbuckle_domain::{
    Error, KeyAlgorithm, SchemeChoice, SchemeDocument, SourceSettings, TimestampWindow, Violations,
    source_limits,
};
use turnbuckle_signing::scheme::{
    self as signing, AlgorithmRule, JwtAlgorithm, KeyEncoding, KeyRule, Proof, Scheme, Verifier,
};
use zeroize::Zeroizing;

/// Where the texts that a scheme asks for stand in requests.
const SCHEME_SETTINGS_FIELD: &str = "source.scheme_settings";

/// Bytes of a fresh secret, unless the scheme wants more: as many as the widest hash in use needs.
const FRESH_SECRET_BYTES: usize = 32;

/// The scheme that a source is verified by.
pub(crate) fn scheme(choice: &SchemeChoice) -> Result<Scheme, Error> {
    match choice {
        SchemeChoice::Preset(name) => match signing::preset(name) {
            Some(preset) => Ok(preset.scheme.clone()),
            // Stored by a newer release.
            None => Err(Error::invalid("source.preset", unknown_preset(name))),
        },
        SchemeChoice::Custom(document) => {
            serde_json::from_str(document.as_str()).map_err(Error::internal)
        }
    }
}

/// What is wrong with a name that no preset has.
pub(crate) fn unknown_preset(name: &str) -> String {
    let shown: String = name.chars().take(63).collect();
    format!(
        "is {shown:?}, which this server does not know; see ListSourcePresets, or give a scheme"
    )
}

/// The same, ready to read keys.
pub(crate) fn verifier(choice: &SchemeChoice) -> Result<Verifier, Error> {
    Verifier::new(scheme(choice)?).map_err(Error::internal)
}

/// A scheme as it is stored.
pub(crate) fn document(scheme: &Scheme) -> Result<SchemeDocument, String> {
    let text = serde_json::to_string(scheme).map_err(|error| error.to_string())?;
    SchemeDocument::new(text).map_err(|error| error.to_string())
}

/// How far the times of a scheme's requests may be off; none when they carry no time.
pub(crate) fn tolerance(scheme: &Scheme) -> Option<TimestampWindow> {
    let window = |past: u32, future: u32| TimestampWindow {
        past: Duration::from_secs(past.into()),
        future: Duration::from_secs(future.into()),
    };
    match (&scheme.proof, &scheme.timestamp) {
        (Proof::Jwt(proof), _) => Some(window(proof.max_age_seconds, proof.max_future_seconds)),
        (Proof::Signature(_), Some(rule)) => {
            Some(window(rule.max_age_seconds, rule.max_future_seconds))
        }
        (Proof::Signature(_), None) => None,
    }
}

/// What scheme and settings demand of each other.
pub(crate) fn check_whole(
    scheme: &Scheme,
    texts: &BTreeMap<String, String>,
    settings: &SourceSettings,
    violations: &mut Violations,
) {
    for name in scheme.settings.iter().filter(|name| !texts.contains_key(*name)) {
        violations.add(format!("{SCHEME_SETTINGS_FIELD}.{name}"), "is required by the scheme");
    }
    for (name, text) in texts {
        let field =
            || format!("{SCHEME_SETTINGS_FIELD}.{}", name.chars().take(63).collect::<String>());
        if !scheme.settings.contains(name) {
            violations.add(field(), "is not asked for by the scheme; leave it out");
        }
        let (count, most) = (text.chars().count(), source_limits::SCHEME_SETTING_CHARS);
        if count == 0 || count > most || text.contains(char::is_control) {
            let message = format!("use 1 to {most} characters without control characters");
            violations.add(field(), message);
        }
    }
    if settings.timestamp.is_some() && tolerance(scheme).is_none() {
        violations.add(
            "source.timestamp_tolerance",
            "is set, but the scheme signs no time; leave it out",
        );
    }
    settings.check("source", tolerance(scheme), violations);
}

/// What a key text is for, and how it is written.
struct Use<'a> {
    kind: KeyAlgorithm,
    rule: &'a KeyRule,
}

fn uses(scheme: &Scheme) -> Vec<Use<'_>> {
    let kind = |public: bool| match public {
        true => KeyAlgorithm::PublicKey,
        false => KeyAlgorithm::SharedSecret,
    };
    match &scheme.proof {
        Proof::Signature(proof) => proof
            .algorithms
            .iter()
            .map(|AlgorithmRule { algorithm, key, .. }| Use {
                kind: kind(algorithm.is_public_key()),
                rule: key,
            })
            .collect(),
        Proof::Jwt(proof) => {
            let public = matches!(
                proof.algorithm,
                JwtAlgorithm::Es256 | JwtAlgorithm::Rs256 | JwtAlgorithm::EdDsa
            );
            vec![Use { kind: kind(public), rule: &proof.key }]
        }
    }
}

/// The kind of a key text: the prefix says which of a scheme's algorithms it is for, else it is for the
/// first.
fn kind_of(scheme: &Scheme, text: &str) -> KeyAlgorithm {
    let uses = uses(scheme);
    let text = text.trim_ascii();
    let meant = |wanted: &&Use<'_>| {
        wanted.rule.prefixes.iter().any(|prefix| text.starts_with(prefix.as_str()))
    };
    let found = uses.iter().find(meant).or_else(|| uses.first());
    found.map_or(KeyAlgorithm::SharedSecret, |found| found.kind)
}

/// A key text that its scheme can use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FitKey {
    pub(crate) kind: KeyAlgorithm,
    pub(crate) fingerprint: String,
}

/// Holds a key text against a scheme. What is wrong is said without any part of the key.
pub(crate) fn fit_key(
    verifier: &Verifier,
    text: &str,
    asked: Option<KeyAlgorithm>,
) -> Result<FitKey, Error> {
    let key = verifier.key(text).map_err(|error| {
        Error::invalid("secret", format!("is not usable with the source's scheme: {error}"))
    })?;
    let kind = kind_of(verifier.scheme(), text);
    match asked.filter(|asked| *asked != kind) {
        Some(asked) => Err(Error::invalid(
            "algorithm",
            format!("is {}, but the scheme takes this as {}", asked.as_str(), kind.as_str()),
        )),
        None => Ok(FitKey { kind, fingerprint: key.fingerprint().to_owned() }),
    }
}

/// A fresh secret, written as the scheme reads it.
pub(crate) fn fresh_secret(scheme: &Scheme) -> Result<Zeroizing<String>, Error> {
    let refuse = |message: &str| Error::invalid("secret", message);
    if scheme.fetches_keys() {
        return Err(refuse("is not for this scheme, which fetches its keys itself"));
    }
    let uses = uses(scheme);
    let shared = uses.iter().find(|wanted| wanted.kind == KeyAlgorithm::SharedSecret);
    let rule = shared.map(|wanted| wanted.rule).ok_or_else(|| {
        refuse("is required: the scheme verifies with a public key, which the sender has")
    })?;
    let mut random = Zeroizing::new(vec![0; FRESH_SECRET_BYTES.max(rule.min_bytes.into())]);
    getrandom::fill(&mut random).map_err(Error::internal)?;
    // Of several spellings the plain one.
    let prefix = rule.prefixes.iter().min_by_key(|prefix| prefix.len());
    let prefix = prefix.map_or("", String::as_str);
    let encode = |encoding: &data_encoding::Encoding| {
        let mut text =
            Zeroizing::new(String::with_capacity(prefix.len() + encoding.encode_len(random.len())));
        text.push_str(prefix);
        encoding.encode_append(&random, &mut text);
        text
    };
    Ok(match rule.encoding {
        KeyEncoding::Hex => encode(&HEXLOWER),
        KeyEncoding::Base64 => encode(&BASE64),
        KeyEncoding::Utf8 | KeyEncoding::SpkiBase64 | KeyEncoding::Pem => encode(&BASE64URL_NOPAD),
    })
}
