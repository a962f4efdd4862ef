//! The rules a scheme obeys; all violations at once.

mod handshakes;
mod keys;
mod places;
mod signature;

use super::handshake::Expected;
use super::limits::{
    MAX_CLAIMS, MAX_HOSTS, MAX_ID_SOURCES, MAX_SETTINGS, MAX_TEXT_BYTES, MAX_TOLERANCE_SECONDS,
    MAX_URL_BYTES,
};
use super::model::{ClaimValue, KeySource, Scheme, TimestampRule};
use super::proof::{Encoding, JwtAlgorithm, JwtProof, Proof};
use super::template::Part;
use super::violation::Violations;
use super::{Algorithm, Locator};
use places::Places;

impl Scheme {
    /// Checks every rule.
    ///
    /// # Errors
    /// All violations at once, each with the field, the limit and the remedy.
    pub fn validate(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        match &self.proof {
            Proof::Signature(proof) => signature::check(self, proof, &mut found),
            Proof::Jwt(proof) => check_jwt(self, proof, &mut found),
        }
        keys::check_source(self, &mut found);
        if let Some(rule) = &self.timestamp {
            check_timestamp(self, rule, &mut found);
        }
        check_message_id(self, &mut found);
        check_claims(self, &mut found);
        check_items(self, &mut found);
        check_settings(self, &mut found);
        handshakes::check(self, &mut found);
        found.into_result()
    }

    /// Whether the template covers the whole body, directly or through its hash. A CRC does not
    /// count: another body with the same one is quickly made.
    #[must_use]
    pub fn covers_body(&self) -> bool {
        match &self.proof {
            Proof::Signature(proof) => {
                let covered = |part: &Part| matches!(part, Part::Body | Part::BodySha256Hex);
                proof.template.iter().any(covered)
                    || (proof.template.contains(&Part::Url) && self.claims_body_hash())
                    || proof.template.contains(&Part::SortedForm)
            }
            Proof::Jwt(proof) => proof.body_hash.is_some(),
        }
    }

    fn claims_body_hash(&self) -> bool {
        self.claims.iter().any(|claim| {
            matches!(claim.at, Locator::Query(_)) && claim.equals == ClaimValue::BodySha256Hex
        })
    }

    /// Whether the message id is covered by the proof. One that is not can be changed by whoever
    /// replays a request.
    #[must_use]
    pub fn signs_message_id(&self) -> bool {
        match &self.proof {
            Proof::Jwt(proof) => {
                let inside = |at: &Locator| matches!(at, Locator::Json(_));
                proof.id_claim.is_some()
                    || (proof.body_hash.is_some() && self.message_id.iter().all(inside))
            }
            Proof::Signature(proof) => {
                !self.message_id.is_empty()
                    && self
                        .message_id
                        .iter()
                        .all(|at| proof.template.contains(&Part::MessageId) || self.is_signed(at))
            }
        }
    }

    /// Whether the value at this place of a request, or of its body, is covered by the proof.
    #[must_use]
    pub fn signs(&self, at: &Locator) -> bool {
        match &self.proof {
            Proof::Jwt(proof) => {
                proof.body_hash.is_some() && matches!(at, Locator::Json(_) | Locator::Form(_))
            }
            Proof::Signature(_) => self.is_signed(at),
        }
    }

    /// Values that are signed together with the time while the body is not: whoever saw them once could
    /// put any body beside them, so they are to be taken once. Empty where the body is covered.
    #[must_use]
    pub fn once_values(&self) -> Vec<&Locator> {
        let Proof::Signature(proof) = &self.proof else { return Vec::new() };
        if self.covers_body() || !proof.template.contains(&Part::Timestamp) {
            return Vec::new();
        }
        let values = proof.template.iter().filter_map(|part| match part {
            Part::Value { at, .. } => Some(at),
            _ => None,
        });
        values.collect()
    }

    /// Whether the value at this place is covered by a signature.
    fn is_signed(&self, at: &Locator) -> bool {
        let Proof::Signature(proof) = &self.proof else {
            return false;
        };
        if proof.algorithms.iter().any(|rule| rule.algorithm == Algorithm::Equality) {
            return false;
        }
        let in_template = proof
            .template
            .iter()
            .any(|part| matches!(part, Part::Value { at: other, .. } if other == at));
        in_template
            || match at {
                Locator::Json(_) | Locator::Form(_) => self.covers_body() && self.items.is_none(),
                Locator::Query(_) => proof.template.contains(&Part::Url),
                _ => false,
            }
    }
}

fn check_jwt(scheme: &Scheme, proof: &JwtProof, found: &mut Violations) {
    let places = Places::of_jwt();
    places.check("proof.jwt.source", &proof.source, found);
    keys::check_jwt_rule(proof, found);
    for (field, expected) in
        [("proof.jwt.issuer", &proof.issuer), ("proof.jwt.audience", &proof.audience)]
    {
        match expected {
            Some(Expected::Key) => found.add(field, "is a text or a setting, not the key"),
            Some(expected) => check_expected(scheme, field, expected, found),
            None => {}
        }
    }
    let hashes = [
        ("proof.jwt.body_hash", proof.body_hash.as_ref().map(|rule| (&rule.claim, rule.encoding))),
        ("proof.jwt.url_hash", proof.url_hash.as_ref().map(|rule| (&rule.claim, rule.encoding))),
    ];
    for (field, rule) in hashes {
        let Some((claim, encoding)) = rule else { continue };
        places::check_name(&format!("{field}.claim"), claim, found);
        if encoding == Encoding::Text {
            found.add(format!("{field}.encoding"), "a hash is hex, base64 or base64url");
        }
    }
    if let Some(claim) = &proof.id_claim {
        places::check_name("proof.jwt.id_claim", claim, found);
    }
    if proof.claims.len() > MAX_CLAIMS {
        found.add("proof.jwt.claims", format!("has at most {MAX_CLAIMS} entries"));
    }
    for (index, rule) in proof.claims.iter().enumerate() {
        let field = format!("proof.jwt.claims[{index}]");
        places::check_name(&format!("{field}.claim"), &rule.claim, found);
        check_expected(scheme, &format!("{field}.expected"), &rule.expected, found);
    }
    if proof.timeless && proof.body_hash.is_none() {
        let message = "without a time the token must hold a hash of the body: set body_hash";
        found.add("proof.jwt.timeless", message);
    }
    check_window("proof.jwt", proof.max_age_seconds, proof.max_future_seconds, found);
    if scheme.timestamp.is_some() {
        found.add("timestamp", "a token carries its own times; leave this empty");
    }
    if scheme.items.is_some() {
        found.add("items", "a token vouches for the whole body; leave this empty");
    }
    let secret =
        matches!(proof.algorithm, JwtAlgorithm::Hs256 | JwtAlgorithm::Hs384 | JwtAlgorithm::Hs512);
    if secret && scheme.key_source != KeySource::KeyRing {
        found.add("key_source", "a shared secret comes from the key ring");
    }
}

fn check_expected(scheme: &Scheme, field: &str, expected: &Expected, found: &mut Violations) {
    match expected {
        Expected::Text(text) => check_text(field, text, found),
        Expected::Setting(name) => check_setting(scheme, field, name, found),
        Expected::Key => {
            let token = match &scheme.proof {
                Proof::Signature(proof) => {
                    proof.algorithms.iter().any(|rule| rule.algorithm == Algorithm::Equality)
                }
                Proof::Jwt(_) => false,
            };
            if !token {
                found.add(field, "a key can be compared only where it is sent as a token");
            }
        }
    }
}

fn check_text(field: &str, text: &str, found: &mut Violations) {
    if text.is_empty() || text.len() > MAX_TEXT_BYTES {
        found.add(field, format!("has 1 to {MAX_TEXT_BYTES} bytes"));
    }
}

fn check_setting(scheme: &Scheme, field: &str, name: &str, found: &mut Violations) {
    if !scheme.settings.iter().any(|known| known == name) {
        found.add(field, "names a setting that `settings` does not list; add it there");
    }
}

fn check_window(field: &str, max_age: u32, max_future: u32, found: &mut Violations) {
    if !(1..=MAX_TOLERANCE_SECONDS).contains(&max_age) {
        let message = format!("is 1 to {MAX_TOLERANCE_SECONDS} seconds");
        found.add(format!("{field}.max_age_seconds"), message);
    }
    if max_future > MAX_TOLERANCE_SECONDS {
        let message = format!("is at most {MAX_TOLERANCE_SECONDS} seconds");
        found.add(format!("{field}.max_future_seconds"), message);
    }
}

fn check_timestamp(scheme: &Scheme, rule: &TimestampRule, found: &mut Violations) {
    check_window("timestamp", rule.max_age_seconds, rule.max_future_seconds, found);
    let Proof::Signature(proof) = &scheme.proof else {
        return;
    };
    Places::of(proof).check("timestamp.at", &rule.at, found);
    if !proof.template.contains(&Part::Timestamp) && !scheme.is_signed(&rule.at) {
        found.add(
            "timestamp",
            "is not covered by the signature, so anyone could renew an old request; \
             add the part `timestamp` to the template or leave the timestamp out",
        );
    }
    if scheme.items.is_some() {
        found.add("timestamp", "cannot be checked where items are signed one by one");
    }
}

fn check_message_id(scheme: &Scheme, found: &mut Violations) {
    if scheme.message_id.len() > MAX_ID_SOURCES {
        found.add("message_id", format!("has at most {MAX_ID_SOURCES} places"));
    }
    let places = match &scheme.proof {
        Proof::Signature(proof) => Places::of(proof),
        Proof::Jwt(_) => Places::of_jwt(),
    };
    for (index, at) in scheme.message_id.iter().enumerate() {
        let field = format!("message_id[{index}]");
        places.check(&field, at, found);
        if scheme.items.is_some() && matches!(at, Locator::Json(_)) {
            found.add(field, "stands outside the body where items are signed one by one");
        }
    }
}

fn check_claims(scheme: &Scheme, found: &mut Violations) {
    if scheme.claims.len() > MAX_CLAIMS {
        found.add("claims", format!("has at most {MAX_CLAIMS} entries"));
    }
    let places = match &scheme.proof {
        Proof::Signature(proof) => Places::of(proof),
        Proof::Jwt(_) => Places::of_jwt(),
    };
    for (index, claim) in scheme.claims.iter().enumerate() {
        places.check(&format!("claims[{index}].at"), &claim.at, found);
        let field = format!("claims[{index}].equals");
        match &claim.equals {
            ClaimValue::Text(text) => check_text(&field, text, found),
            ClaimValue::Setting(name) => check_setting(scheme, &field, name, found),
            ClaimValue::BodySha256Hex => {}
        }
    }
}

fn check_items(scheme: &Scheme, found: &mut Violations) {
    let Some(items) = &scheme.items else { return };
    if items.steps().iter().filter(|step| **step == super::JsonStep::Every).count() != 1 {
        found.add("items", "has exactly one [*], such as notificationItems[*].item");
    }
}

fn check_settings(scheme: &Scheme, found: &mut Violations) {
    if scheme.settings.len() > MAX_SETTINGS {
        found.add("settings", format!("has at most {MAX_SETTINGS} names"));
    }
    for (index, name) in scheme.settings.iter().enumerate() {
        let field = format!("settings[{index}]");
        let plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if name.is_empty() || name.len() > super::limits::MAX_NAME_BYTES || !plain {
            found.add(&field, "is 1 to 128 lower-case letters, digits and underscores");
        }
        if scheme.settings[..index].contains(name) {
            found.add(&field, "is there twice");
        }
    }
}

/// The hosts that certificates come from, and the address of a key set.
fn check_hosts(hosts: &[String], found: &mut Violations) {
    if hosts.is_empty() || hosts.len() > MAX_HOSTS {
        found.add("key_source.hosts", format!("has 1 to {MAX_HOSTS} hosts"));
    }
    for (index, host) in hosts.iter().enumerate() {
        let (name, port) = match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host.as_str(), None),
        };
        let is_port =
            |port: &str| port.parse::<u16>().is_ok_and(|number| number.to_string() == port);
        let labels: Vec<&str> = name.split('.').collect();
        let well_formed = labels.len() >= 2
            && port.is_none_or(is_port)
            && labels.iter().all(|label| *label == "*" || is_host_label(label))
            // A wildcard in the registered part of a name would trust whoever buys a domain.
            && labels.iter().rev().take(2).all(|label| *label != "*");
        if !well_formed {
            found.add(
                format!("key_source.hosts[{index}]"),
                "is a lower-case host name, with a port if it is not 443; `*` stands for one label \
                 left of the last two",
            );
        }
    }
}

fn is_host_label(label: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&label.len()) && label.bytes().all(plain)
}

fn check_https(field: &str, url: &str, found: &mut Violations) {
    let host = url.strip_prefix("https://").and_then(|rest| rest.split(['/', '?']).next());
    let well_formed = host.is_some_and(|host| !host.is_empty() && !host.contains('@'))
        && url.len() <= MAX_URL_BYTES
        && url.bytes().all(|byte| byte.is_ascii_graphic());
    if !well_formed {
        found.add(field, "is an https URL without credentials");
    }
}
