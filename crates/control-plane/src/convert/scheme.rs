//! Verification schemes on the wire, field by field.

use super::wire_name::WireName;
use turnbuckle_domain::Violations;
use turnbuckle_proto::v1;
use turnbuckle_signing::scheme::{
    AlgorithmRule, BodyHashClaim, Claim, ClaimValue, Encoding, Expected, JsonPath, JwtProof,
    KeyEncoding, KeyRule, KeySource, Locator, Part, Proof, Scheme, SignatureProof, SignatureSyntax,
    TimestampRule, TokenClaim, UrlHashClaim, WhenAbsent,
};

mod handshakes;
mod outgoing;

pub(super) use outgoing::wire_scheme;

/// Where a custom scheme stands in requests.
const FIELD: &str = "source.scheme";

/// Where reading stands, and what was wrong so far.
struct At<'a> {
    field: String,
    violations: &'a mut Violations,
}

impl At<'_> {
    fn within(&mut self, part: &str) -> At<'_> {
        At { field: format!("{}.{part}", self.field), violations: self.violations }
    }

    fn add(&mut self, message: impl Into<String>) {
        self.violations.add(self.field.clone(), message);
    }

    fn required<T>(&mut self, given: Option<T>) -> Option<T> {
        if given.is_none() {
            self.add("is required");
        }
        given
    }

    /// All of a list, or none when one is malformed.
    fn list<T, R>(
        &mut self,
        part: &str,
        given: Vec<T>,
        mut read: impl FnMut(&mut At<'_>, T) -> Option<R>,
    ) -> Option<Vec<R>> {
        let mut all = Some(Vec::with_capacity(given.len()));
        for (index, item) in given.into_iter().enumerate() {
            let mut at = self.within(&format!("{part}[{index}]"));
            match (read(&mut at, item), &mut all) {
                (Some(item), Some(list)) => list.push(item),
                _ => all = None,
            }
        }
        all
    }

    fn named<T: WireName>(&mut self, part: &str, number: i32) -> Option<T> {
        let found = T::from_number(number);
        if found.is_none() {
            let what = T::WHAT;
            let message = match number {
                0 => format!("is required: name the {what}"),
                other => format!("is {other}, which names no {what}"),
            };
            self.within(part).add(message);
        }
        found
    }

    fn small<T: TryFrom<i32>>(&mut self, part: &str, number: i32) -> Option<T> {
        let small = T::try_from(number).ok();
        if small.is_none() {
            self.within(part).add(format!("is {number}, which is out of bounds"));
        }
        small
    }

    fn path(&mut self, text: &str) -> Option<JsonPath> {
        match JsonPath::parse(text) {
            Ok(path) => Some(path),
            Err(error) => {
                self.add(error.to_string());
                None
            }
        }
    }

    fn character(&mut self, part: &str, text: &str) -> Option<Option<char>> {
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (None, _) => Some(None),
            (Some(one), None) => Some(Some(one)),
            (Some(_), Some(_)) => {
                self.within(part).add("has more than one character");
                None
            }
        }
    }
}

/// A scheme without violations. What is wrong with it is noted below `source.scheme`.
pub(super) fn scheme(violations: &mut Violations, wire: v1::VerificationScheme) -> Option<Scheme> {
    let mut at = At { field: FIELD.to_owned(), violations };
    let scheme = read(&mut at, wire)?;
    match scheme.validate() {
        Ok(()) => Some(scheme),
        Err(found) => {
            for violation in found.into_vec() {
                // One message for each proof has no `proof` above it on the wire.
                let field = violation.field.strip_prefix("proof.").unwrap_or(&violation.field);
                violations.add(format!("{FIELD}.{field}"), violation.message);
            }
            None
        }
    }
}

fn read(at: &mut At<'_>, wire: v1::VerificationScheme) -> Option<Scheme> {
    use v1::verification_scheme::Proof as Wire;
    let proof = match wire.proof {
        Some(Wire::Signature(proof)) => signature(&mut at.within("signature"), proof),
        Some(Wire::Jwt(proof)) => jwt(&mut at.within("jwt"), proof),
        None => {
            at.add("has no proof; set signature or jwt");
            None
        }
    };
    let key_source = key_source(at, wire.key_source);
    let timestamp = match wire.timestamp {
        Some(rule) => timestamp(&mut at.within("timestamp"), rule).map(Some),
        None => Some(None),
    };
    let message_id = at.list("message_id", wire.message_id, locator);
    let claims = at.list("claims", wire.claims, claim);
    let body_form = match wire.body_form {
        0 => Some(None),
        number => at.named("body_form", number).map(Some),
    };
    let items = match wire.items.as_str() {
        "" => Some(None),
        text => at.within("items").path(text).map(Some),
    };
    let handshakes = at.list("handshakes", wire.handshakes, handshakes::handshake);
    Some(Scheme {
        proof: proof?,
        key_source: key_source?,
        timestamp: timestamp?,
        message_id: message_id?,
        claims: claims?,
        body_form: body_form?,
        items: items?,
        settings: wire.settings,
        handshakes: handshakes?,
    })
}

fn locator(at: &mut At<'_>, wire: v1::Locator) -> Option<Locator> {
    use v1::locator::At as Wire;
    match at.required(wire.at)? {
        Wire::Header(name) => Some(Locator::Header(name)),
        Wire::NumberedHeader(numbered) => {
            let last = at.small("numbered_header.last", numbered.last)?;
            Some(Locator::NumberedHeader { prefix: numbered.prefix, last })
        }
        Wire::Authorization(name) => Some(Locator::Authorization(name)),
        Wire::Query(name) => Some(Locator::Query(name)),
        Wire::Form(name) => Some(Locator::Form(name)),
        Wire::Json(text) => at.within("json").path(&text).map(Locator::Json),
        Wire::SignatureField(tag) => Some(Locator::SignatureField(tag)),
    }
}

/// A place that must be given.
fn place(at: &mut At<'_>, part: &str, wire: Option<v1::Locator>) -> Option<Locator> {
    let mut at = at.within(part);
    let wire = at.required(wire)?;
    locator(&mut at, wire)
}

fn signature(at: &mut At<'_>, wire: v1::SignatureProof) -> Option<Proof> {
    let sources = at.list("sources", wire.sources, locator);
    let syntax = syntax(&mut at.within("syntax"), wire.syntax.unwrap_or_default());
    let encoding = at.named("encoding", wire.encoding);
    let algorithms = at.list("algorithms", wire.algorithms, |at, rule| {
        let algorithm = at.named("algorithm", rule.algorithm);
        let key = key_rule(at, rule.key);
        Some(AlgorithmRule { algorithm: algorithm?, tags: rule.tags, key: key? })
    });
    let template = at.list("template", wire.template, part);
    let url_variants = at.list("url_variants", wire.url_variants, |at, number| {
        let found = WireName::from_number(number);
        if found.is_none() {
            at.add(format!("is {number}, which names no URL variant"));
        }
        found
    });
    Some(Proof::Signature(SignatureProof {
        sources: sources?,
        syntax: syntax?,
        encoding: encoding?,
        algorithms: algorithms?,
        template: template?,
        url_variants: url_variants?,
    }))
}

fn syntax(at: &mut At<'_>, wire: v1::SignatureSyntax) -> Option<SignatureSyntax> {
    let item_separator = at.character("item_separator", &wire.item_separator);
    let key_separator = at.character("key_separator", &wire.key_separator);
    Some(SignatureSyntax {
        item_separator: item_separator?,
        key_separator: key_separator?,
        prefix: wire.prefix,
        trim: wire.trim,
    })
}

/// Fewest bytes of a key when nothing is said: anything but an empty one.
const MIN_BYTES_DEFAULT: u16 = 1;

fn key_rule(at: &mut At<'_>, wire: Option<v1::KeyRule>) -> Option<KeyRule> {
    let mut at = at.within("key");
    let wire = at.required(wire)?;
    let encoding: Option<KeyEncoding> = at.named("encoding", wire.encoding);
    let min_bytes = match wire.min_bytes {
        0 => Some(MIN_BYTES_DEFAULT),
        number => at.small("min_bytes", number),
    };
    let digest = match wire.digest {
        0 => Some(None),
        number => at.named("digest", number).map(Some),
    };
    Some(KeyRule {
        encoding: encoding?,
        prefixes: wire.prefixes,
        min_bytes: min_bytes?,
        digest: digest?,
    })
}

fn part(at: &mut At<'_>, wire: v1::TemplatePart) -> Option<Part> {
    use v1::template_part::Part as Wire;
    match at.required(wire.part)? {
        Wire::Literal(text) => Some(Part::Literal(text)),
        Wire::Token(number) => token(at, number),
        Wire::Value(value) => {
            let mut at = at.within("value");
            let place = place(&mut at, "at", value.at)?;
            let when_absent = match value.optional {
                true => WhenAbsent::Empty,
                false => WhenAbsent::Refuse,
            };
            let (before, after) = (value.before, value.after);
            Some(Part::Value { at: place, when_absent, before, after })
        }
        Wire::Setting(name) => Some(Part::Setting(name)),
    }
}

fn token(at: &mut At<'_>, number: i32) -> Option<Part> {
    use v1::TemplateToken as Wire;
    let token = match Wire::try_from(number) {
        Ok(Wire::Body) => Part::Body,
        Ok(Wire::Timestamp) => Part::Timestamp,
        Ok(Wire::MessageId) => Part::MessageId,
        Ok(Wire::Method) => Part::Method,
        Ok(Wire::Url) => Part::Url,
        Ok(Wire::Secret) => Part::Secret,
        Ok(Wire::SortedForm) => Part::SortedForm,
        Ok(Wire::BodyCrc32) => Part::BodyCrc32,
        Ok(Wire::BodySha256Hex) => Part::BodySha256Hex,
        Ok(Wire::Unspecified) | Err(_) => {
            at.within("token").add(format!("is {number}, which names no part"));
            return None;
        }
    };
    Some(token)
}

fn jwt(at: &mut At<'_>, wire: v1::JwtProof) -> Option<Proof> {
    let source = place(at, "source", wire.source);
    let algorithm = at.named("algorithm", wire.algorithm);
    let key = key_rule(at, wire.key);
    let issuer = optional_expected(&mut at.within("issuer"), wire.issuer);
    let audience = optional_expected(&mut at.within("audience"), wire.audience);
    let claims = at.list("claims", wire.claims, |at, claim| {
        let value = at.within("expected").required(claim.expected)?;
        let expected = expected(&mut at.within("expected"), value)?;
        Some(TokenClaim { claim: claim.claim, expected })
    });
    let mut encoding = |part: &str, claim: &Option<v1::HashClaim>| match claim {
        Some(claim) => at.within(part).named::<Encoding>("encoding", claim.encoding).map(Some),
        None => Some(None),
    };
    let body_encoding = encoding("body_hash", &wire.body_hash);
    let url_encoding = encoding("url_hash", &wire.url_hash);
    let max_age_seconds = at.small("max_age_seconds", wire.max_age_seconds);
    let max_future_seconds = at.small("max_future_seconds", wire.max_future_seconds);
    let body_hash = wire.body_hash.zip(body_encoding?).map(|(wire, encoding)| BodyHashClaim {
        claim: wire.claim,
        encoding,
        absent_when_empty: wire.absent_when_empty,
    });
    let url_hash = wire
        .url_hash
        .zip(url_encoding?)
        .map(|(wire, encoding)| UrlHashClaim { claim: wire.claim, encoding });
    Some(Proof::Jwt(JwtProof {
        source: source?,
        algorithm: algorithm?,
        key: key?,
        issuer: issuer?,
        audience: audience?,
        body_hash,
        url_hash,
        max_age_seconds: max_age_seconds?,
        max_future_seconds: max_future_seconds?,
        id_claim: (!wire.id_claim.is_empty()).then_some(wire.id_claim),
        claims: claims?,
        timeless: wire.timeless,
    }))
}

fn expected(at: &mut At<'_>, wire: v1::ExpectedValue) -> Option<Expected> {
    use v1::expected_value::Value as Wire;
    match at.required(wire.value)? {
        Wire::Text(text) => Some(Expected::Text(text)),
        Wire::Setting(name) => Some(Expected::Setting(name)),
        Wire::Key(true) => Some(Expected::Key),
        Wire::Key(false) => {
            at.within("key").add("is false; set it to true, or another value");
            None
        }
    }
}

fn optional_expected(at: &mut At<'_>, wire: Option<v1::ExpectedValue>) -> Option<Option<Expected>> {
    match wire {
        Some(wire) => expected(at, wire).map(Some),
        None => Some(None),
    }
}

fn key_source(
    at: &mut At<'_>,
    wire: Option<v1::verification_scheme::KeySource>,
) -> Option<KeySource> {
    use v1::verification_scheme::KeySource as Wire;
    match wire {
        None => Some(KeySource::KeyRing),
        Some(Wire::Certificate(wire)) => {
            let url = place(&mut at.within("certificate"), "url", wire.url)?;
            Some(KeySource::Certificate {
                url,
                hosts: wire.hosts,
                path_suffix: wire.path_suffix,
                subject: (!wire.subject.is_empty()).then_some(wire.subject),
                leaf_alone: wire.leaf_alone,
            })
        }
        Some(Wire::KeySet(wire)) => Some(KeySource::KeySet { url: wire.url }),
    }
}

fn timestamp(at: &mut At<'_>, wire: v1::TimestampRule) -> Option<TimestampRule> {
    let place = place(at, "at", wire.at);
    let unit = at.named("unit", wire.unit);
    let max_age_seconds = at.small("max_age_seconds", wire.max_age_seconds);
    let max_future_seconds = at.small("max_future_seconds", wire.max_future_seconds);
    Some(TimestampRule {
        at: place?,
        unit: unit?,
        max_age_seconds: max_age_seconds?,
        max_future_seconds: max_future_seconds?,
    })
}

fn claim(at: &mut At<'_>, wire: v1::VerificationClaim) -> Option<Claim> {
    use v1::verification_claim::Equals as Wire;
    let place = place(at, "at", wire.at);
    let equals = match at.required(wire.equals)? {
        Wire::Text(text) => ClaimValue::Text(text),
        Wire::Setting(name) => ClaimValue::Setting(name),
        Wire::BodySha256Hex(true) => ClaimValue::BodySha256Hex,
        Wire::BodySha256Hex(false) => {
            at.within("body_sha256_hex").add("is false; set it to true, or another value");
            return None;
        }
    };
    Some(Claim { at: place?, equals })
}

#[cfg(test)]
mod tests;
