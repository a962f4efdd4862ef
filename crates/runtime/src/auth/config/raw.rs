//! The file as written, and the checks on the way in.

use super::{AuthConfig, IssuerConfig, KeysAt};
use crate::auth::{
    ISSUER,
    claims::TimeRules,
    is_subject,
    issuer::{EVERY_TENANT, EveryTenant, Grant, Mapping},
};
use http::Uri;
use jsonwebtoken::Algorithm;
use serde::Deserialize;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path, PathBuf},
    time::Duration,
};
use turnbuckle_domain::{ResourceId, Role};

/// Most issuers: each costs a task and a place in memory.
const ISSUERS_MAX: usize = 32;
/// Longest issuer, audience and claim name.
const TEXT_MAX: usize = 512;
/// Clocks further apart than this are broken.
const LEEWAY_MAX: Duration = Duration::from_secs(30);
/// Clocks that are set over the network differ by less.
const LEEWAY_DEFAULT: Duration = Duration::from_secs(10);
/// A day's token is the oldest that people expect to work.
const AGE_DEFAULT: Duration = Duration::from_secs(24 * 3600);
/// Bounds of the age: below a minute nobody can use a token, above a year nobody knows it.
const AGE_MIN: Duration = Duration::from_secs(60);
const AGE_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    issuers: Vec<toml::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawIssuer {
    issuer: String,
    audiences: Vec<String>,
    algorithm: String,
    jwks_file: Option<PathBuf>,
    jwks_url: Option<String>,
    jwks_token_file: Option<PathBuf>,
    role_claim: Option<String>,
    tenant_claim: Option<String>,
    #[serde(default)]
    subjects: BTreeMap<String, RawGrant>,
    max_token_age: Option<String>,
    leeway: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGrant {
    role: String,
    tenant: String,
}

pub(super) fn read(text: &str, directory: &Path) -> Result<AuthConfig, Vec<String>> {
    let file: RawFile = toml::from_str(text).map_err(|error| vec![one_line(&error)])?;
    let mut faults = Faults::default();
    if !(1..=ISSUERS_MAX).contains(&file.issuers.len()) {
        faults.add("issuers", &format!("name 1 to {ISSUERS_MAX}"));
    }
    let mut issuers = Vec::new();
    let mut names = HashSet::new();
    for (position, value) in file.issuers.into_iter().enumerate() {
        let place = format!("issuers[{position}]");
        match value.try_into::<RawIssuer>() {
            Err(error) => faults.add(&place, &one_line(&error)),
            Ok(raw) => {
                if !names.insert(raw.issuer.clone()) {
                    faults.add(&format!("{place}.issuer"), "is there twice");
                }
                issuers.extend(faults.within(&place, |faults| issuer(raw, directory, faults)));
            }
        }
    }
    if faults.list.is_empty() { Ok(AuthConfig { issuers }) } else { Err(faults.list) }
}

fn one_line(error: &toml::de::Error) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is wrong, with places.
#[derive(Default)]
struct Faults {
    place: String,
    list: Vec<String>,
}

impl Faults {
    fn add(&mut self, field: &str, fault: &str) {
        let dot = if self.place.is_empty() { "" } else { "." };
        self.list.push(format!("{}{dot}{field}: {fault}", self.place));
    }

    fn within<T>(&mut self, place: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.place, place.to_owned());
        let done = work(self);
        self.place = outer;
        done
    }

    /// The value, or its fault noted.
    fn take<T>(&mut self, field: &str, outcome: Result<T, String>) -> Option<T> {
        outcome.map_err(|fault| self.add(field, &fault)).ok()
    }
}

/// Checks every field before it gives up.
fn issuer(raw: RawIssuer, directory: &Path, faults: &mut Faults) -> Option<IssuerConfig> {
    let algorithm = faults.take("algorithm", algorithm(&raw.algorithm));
    let keys = keys(&raw, directory, faults);
    let leeway =
        span(faults, "leeway", raw.leeway.as_deref(), LEEWAY_DEFAULT, Duration::ZERO..=LEEWAY_MAX);
    let age =
        span(faults, "max_token_age", raw.max_token_age.as_deref(), AGE_DEFAULT, AGE_MIN..=AGE_MAX);
    let name = faults.take("issuer", issuer_name(raw.issuer));
    if raw.audiences.is_empty() {
        faults.add("audiences", "name at least one: a token for somebody else must not work here");
    }
    for (position, audience) in raw.audiences.iter().enumerate() {
        faults.take(&format!("audiences[{position}]"), text(audience));
    }
    let mapping = Mapping {
        role_claim: claim("role_claim", raw.role_claim, "role", faults),
        tenant_claim: claim("tenant_claim", raw.tenant_claim, "tenant", faults),
        every_tenant: EveryTenant::Star,
        subjects: subjects(raw.subjects, faults),
    };
    Some(IssuerConfig {
        issuer: name?,
        audiences: raw.audiences,
        algorithm: algorithm?,
        keys: keys?,
        times: TimeRules { leeway: leeway?, age_max: Some(age?) },
        mapping,
    })
}

fn algorithm(text: &str) -> Result<Algorithm, String> {
    match text {
        "RS256" => Ok(Algorithm::RS256),
        "ES256" => Ok(Algorithm::ES256),
        "EdDSA" => Ok(Algorithm::EdDSA),
        _ => {
            Err(format!("is {text:?}; use RS256, ES256 or EdDSA, whichever the issuer signs with"))
        }
    }
}

fn issuer_name(name: String) -> Result<String, String> {
    if name == ISSUER {
        return Err(format!("{ISSUER:?} is the name of tokens made with the token key"));
    }
    text(&name).map(|()| name)
}

fn text(text: &str) -> Result<(), String> {
    let fits = (1..=TEXT_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    fits.then_some(())
        .ok_or_else(|| format!("use 1 to {TEXT_MAX} bytes without control characters"))
}

fn claim(field: &str, name: Option<String>, default: &str, faults: &mut Faults) -> String {
    let name = name.unwrap_or_else(|| default.to_owned());
    faults.take(field, text(&name));
    name
}

fn keys(raw: &RawIssuer, directory: &Path, faults: &mut Faults) -> Option<KeysAt> {
    if raw.jwks_token_file.is_some() && raw.jwks_url.is_none() {
        faults.add("jwks_token_file", "is for a jwks_url, which is missing");
    }
    match (&raw.jwks_file, &raw.jwks_url) {
        (Some(file), None) => Some(KeysAt::File(directory.join(file))),
        (None, Some(url)) => {
            faults.take("jwks_url", address(url))?;
            let token_file = raw.jwks_token_file.as_ref().map(|file| directory.join(file));
            Some(KeysAt::Address { url: url.clone(), token_file })
        }
        (Some(_), Some(_)) | (None, None) => {
            faults.add("jwks_file", "give either jwks_file or jwks_url");
            None
        }
    }
}

/// Whoever can change keys under way can be anyone: https only, but for this machine.
fn address(url: &str) -> Result<(), String> {
    let uri: Uri = url.parse().map_err(|_| "is no URL".to_owned())?;
    let is_here = matches!(uri.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match uri.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if is_here => Ok(()),
        _ => Err("use https: keys that can be changed under way let anybody in".to_owned()),
    }
}

fn subjects(raw: BTreeMap<String, RawGrant>, faults: &mut Faults) -> HashMap<String, Grant> {
    let mut subjects = HashMap::new();
    for (subject, grant) in raw {
        let place = format!("subjects.{subject:?}");
        if !is_subject(&subject) {
            faults.add(&place, "a subject has 1 to 256 bytes without control characters");
        }
        let role = Role::parse(&grant.role).ok_or_else(|| {
            let known = Role::ALL.map(Role::as_str).join(", ");
            format!("is {:?}; use one of {known}", grant.role)
        });
        let role = faults.take(&format!("{place}.role"), role);
        let tenant = match grant.tenant.as_str() {
            EVERY_TENANT => Ok(None),
            id => {
                ResourceId::new(id).map(Some).map_err(|error| format!("{error}; * is every tenant"))
            }
        };
        let tenant = faults.take(&format!("{place}.tenant"), tenant);
        if let (Some(role), Some(tenant)) = (role, tenant) {
            subjects.insert(subject, Grant { role, tenant });
        }
    }
    subjects
}

fn span(
    faults: &mut Faults,
    field: &str,
    text: Option<&str>,
    default: Duration,
    bounds: std::ops::RangeInclusive<Duration>,
) -> Option<Duration> {
    let Some(text) = text else {
        return Some(default);
    };
    let value = seconds(text).filter(|value| bounds.contains(value));
    let (least, most) = (bounds.start().as_secs(), bounds.end().as_secs());
    let outcome = value.ok_or_else(|| {
        format!("is {text:?}; use {least}s to {most}s, as a number with s, m, h or d")
    });
    faults.take(field, outcome)
}

/// `30s`, `15m`, `12h`, `7d`.
fn seconds(text: &str) -> Option<Duration> {
    let unit = text.chars().last()?;
    let length = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 24 * 3600,
        _ => return None,
    };
    let number = text.strip_suffix(unit)?;
    let count: u64 =
        number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())??;
    count.checked_mul(length).map(Duration::from_secs)
}
