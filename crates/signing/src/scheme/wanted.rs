//! Keys that must be fetched first. Nothing is fetched here: whoever receives the request fetches
//! what is wanted, through its own guard against unwanted addresses, and keeps it for a while.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::jwt;
use super::key::SchemeKey;
use super::limits::MAX_URL_BYTES;
use super::model::{KeySource, Scheme};
use super::proof::{JwtAlgorithm, Proof};
use super::refusal::{Refusal, Role};
use super::request::{Request, View};

/// The most keys of a set looked at; big providers publish some ten.
pub const MAX_SET_KEYS: usize = 64;

/// The most bytes of a key set.
pub const MAX_SET_BYTES: usize = 256 * 1024;

/// A key to be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WantedKey {
    /// A certificate chain in PEM.
    Certificate {
        /// Where it is: https, on a listed host and port, without user or query.
        url: String,
        /// The name it must be for.
        subject: String,
        /// Whether it may come without the certificates of those who issued it.
        leaf_alone: bool,
    },
    /// A JSON Web Key Set.
    KeySet {
        /// Where it is.
        url: String,
        /// The name of the key in it.
        key_id: String,
    },
}

impl WantedKey {
    /// What to fetch.
    #[must_use]
    pub fn url(&self) -> &str {
        match self {
            Self::Certificate { url, .. } | Self::KeySet { url, .. } => url,
        }
    }
}

pub(crate) fn of(scheme: &Scheme, request: &Request<'_>) -> Result<Option<WantedKey>, Refusal> {
    match &scheme.key_source {
        KeySource::KeyRing => Ok(None),
        KeySource::KeySet { url } => {
            let Proof::Jwt(proof) = &scheme.proof else { return Ok(None) };
            let view = View::of(request, None);
            let key_id = jwt::key_id(proof, &view)?;
            Ok(Some(WantedKey::KeySet { url: url.clone(), key_id }))
        }
        KeySource::Certificate { hosts, path_suffix, subject, leaf_alone, .. } => {
            let Proof::Signature(proof) = &scheme.proof else { return Ok(None) };
            let Some(at) = scheme.certificate_place() else { return Ok(None) };
            let view = View::of(request, Some(proof));
            let url = view.need(at, Role::Key, MAX_URL_BYTES)?;
            let url = std::str::from_utf8(&url).map_err(|_| Refusal::KeyAddress)?;
            let host = trusted_host(url, hosts, path_suffix).ok_or(Refusal::KeyAddress)?;
            let name = host.split_once(':').map_or(host, |(name, _)| name);
            let subject = subject.clone().unwrap_or_else(|| name.to_owned());
            let leaf_alone = *leaf_alone;
            Ok(Some(WantedKey::Certificate { url: url.to_owned(), subject, leaf_alone }))
        }
    }
}

/// The host of a URL that is exactly `https://host/path`, with nothing that two parsers could read
/// in two ways, on one of the hosts.
pub(super) fn trusted_host<'u>(
    url: &'u str,
    hosts: &[String],
    path_suffix: &str,
) -> Option<&'u str> {
    let (host, path) = url.strip_prefix("https://")?.split_once('/')?;
    let plain_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':');
    let plain_path =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
    let plain = host.bytes().all(plain_host) && path.bytes().all(plain_path);
    let trusted = plain
        && !path.split('/').any(|segment| segment == "..")
        && path.ends_with(path_suffix)
        && hosts.iter().any(|pattern| host_fits(host, pattern));
    trusted.then_some(host)
}

/// The port is the one of the pattern, letter by letter; none where it has none.
fn host_fits(host: &str, pattern: &str) -> bool {
    let (name, port) = name_and_port(host);
    let (wanted_name, wanted_port) = name_and_port(pattern);
    let (mut labels, mut wanted) = (name.split('.'), wanted_name.split('.'));
    if port != wanted_port {
        return false;
    }
    loop {
        match (labels.next(), wanted.next()) {
            (None, None) => return true,
            (Some(label), Some("*")) if !label.is_empty() => {}
            (Some(label), Some(wanted)) if label.eq_ignore_ascii_case(wanted) => {}
            _ => return false,
        }
    }
}

fn name_and_port(host: &str) -> (&str, Option<&str>) {
    match host.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (host, None),
    }
}

#[derive(Deserialize)]
struct KeySetDocument {
    keys: Vec<BTreeMap<String, serde_json::Value>>,
}

/// The key of that name; members that are no text of the right kind count as missing.
pub(crate) fn key_of_set(
    json: &[u8],
    key_id: &str,
    algorithm: JwtAlgorithm,
) -> Result<SchemeKey, Refusal> {
    if json.len() > MAX_SET_BYTES {
        return Err(Refusal::UnknownKey);
    }
    let set: KeySetDocument = serde_json::from_slice(json).map_err(|_| Refusal::UnknownKey)?;
    set.keys
        .iter()
        .take(MAX_SET_KEYS)
        .filter(|key| text(key, "kid") == Some(key_id))
        .find_map(|key| web_key(key, algorithm))
        .ok_or(Refusal::UnknownKey)
}

fn web_key(
    key: &BTreeMap<String, serde_json::Value>,
    algorithm: JwtAlgorithm,
) -> Option<SchemeKey> {
    let fits = text(key, "alg").is_none_or(|named| named == algorithm.as_str())
        && text(key, "use").is_none_or(|purpose| purpose == "sig");
    if !fits {
        return None;
    }
    let number = |name| URL_SAFE_NO_PAD.decode(text(key, name)?).ok();
    match (algorithm, text(key, "kty")?, text(key, "crv")) {
        (JwtAlgorithm::Es256, "EC", Some("P-256")) => {
            SchemeKey::from_p256_point(&number("x")?, &number("y")?)
        }
        (JwtAlgorithm::Rs256, "RSA", _) => {
            SchemeKey::from_rsa_numbers(&number("n")?, &number("e")?)
        }
        (JwtAlgorithm::EdDsa, "OKP", Some("Ed25519")) => {
            SchemeKey::from_ed25519_bytes(&number("x")?)
        }
        _ => None,
    }
}

fn text<'k>(key: &'k BTreeMap<String, serde_json::Value>, name: &str) -> Option<&'k str> {
    key.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_fetched_from_only_where_it_is_listed() {
        let hosts = ["keys.example.com:8443".to_owned()];
        let fits = |url: &str| trusted_host(url, &hosts, "").is_some();
        assert!(fits("https://keys.example.com:8443/a.pem"));
        for url in [
            "https://keys.example.com/a.pem",
            "https://keys.example.com:443/a.pem",
            "https://keys.example.com:08443/a.pem",
            "https://keys.example.com:8443:1/a.pem",
            "https://keys.example.com:/a.pem",
            "https://keys.example.com:x@evil.example:8443/a.pem",
        ] {
            assert!(!fits(url), "{url}");
        }
    }

    #[test]
    fn only_plain_urls_on_listed_hosts_are_fetched() {
        let hosts = ["sns.*.amazonaws.com".to_owned()];
        let fits = |url: &str| trusted_host(url, &hosts, ".pem").is_some();
        assert!(fits("https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem"));
        for url in [
            "http://sns.eu-west-1.amazonaws.com/a.pem",
            "https://sns.eu-west-1.amazonaws.com.evil.example/a.pem",
            "https://evil.example/sns.eu-west-1.amazonaws.com/a.pem",
            "https://sns.a.b.amazonaws.com/a.pem",
            "https://sns..amazonaws.com/a.pem",
            "https://user@sns.eu-west-1.amazonaws.com/a.pem",
            "https://sns.eu-west-1.amazonaws.com:8443/a.pem",
            "https://sns.eu-west-1.amazonaws.com/a.pem?x=.pem",
            "https://sns.eu-west-1.amazonaws.com/a.pem#.pem",
            "https://sns.eu-west-1.amazonaws.com/../a.pem",
            "https://sns.eu-west-1.amazonaws.com/a.txt",
            "https://sns.eu-west-1.amazonaws.com",
            "https://sns.eu-west-1.amazonaws.com\\@evil.example/a.pem",
            "https://sns.eu-west-1.amazonaws.com/%2e%2e/a.pem",
        ] {
            assert!(!fits(url), "{url}");
        }
    }
}
