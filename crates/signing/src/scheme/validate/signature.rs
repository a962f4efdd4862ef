//! Rules of signatures and what they cover.

use crate::scheme::limits::{
    MAX_ALGORITHMS, MAX_PARTS, MAX_SIGNATURE_SOURCES, MAX_TAGS, MAX_TEXT_BYTES, MAX_URL_VARIANTS,
};
use crate::scheme::model::Scheme;
use crate::scheme::proof::{Algorithm, AlgorithmRule, Encoding, SignatureProof, SignatureSyntax};
use crate::scheme::template::Part;
use crate::scheme::violation::Violations;

use super::places::{Places, check_name, check_signature_source};
use super::{check_setting, check_text, keys};

pub(super) fn check(scheme: &Scheme, proof: &SignatureProof, found: &mut Violations) {
    if proof.sources.is_empty() || proof.sources.len() > MAX_SIGNATURE_SOURCES {
        let message = format!("has 1 to {MAX_SIGNATURE_SOURCES} places");
        found.add("proof.signature.sources", message);
    }
    for (index, at) in proof.sources.iter().enumerate() {
        check_signature_source(&format!("proof.signature.sources[{index}]"), at, found);
    }
    check_syntax(&proof.syntax, found);
    check_algorithms(proof, found);
    check_encoding(proof, found);
    check_template(scheme, proof, found);
    check_url_variants(proof, found);
}

fn check_syntax(syntax: &SignatureSyntax, found: &mut Violations) {
    let separators = [
        ("proof.signature.syntax.item_separator", syntax.item_separator),
        ("proof.signature.syntax.key_separator", syntax.key_separator),
    ];
    for (field, separator) in separators {
        if separator.is_some_and(|c| c != ' ' && !c.is_ascii_punctuation()) {
            found.add(field, "is a blank or an ASCII punctuation character");
        }
    }
    if syntax.item_separator.is_some() && syntax.item_separator == syntax.key_separator {
        found.add("proof.signature.syntax", "the two separators must differ");
    }
    if syntax.prefix.len() > MAX_TEXT_BYTES {
        let message = format!("has at most {MAX_TEXT_BYTES} bytes");
        found.add("proof.signature.syntax.prefix", message);
    }
}

fn check_algorithms(proof: &SignatureProof, found: &mut Violations) {
    let rules = &proof.algorithms;
    if rules.is_empty() || rules.len() > MAX_ALGORITHMS {
        let message = format!("has 1 to {MAX_ALGORITHMS} entries");
        found.add("proof.signature.algorithms", message);
    }
    for (index, rule) in rules.iter().enumerate() {
        let field = format!("proof.signature.algorithms[{index}]");
        keys::check_rule(&format!("{field}.key"), rule.algorithm, &rule.key, found);
        check_tags(&format!("{field}.tags"), proof, rule, found);
        let earlier = &rules[..index];
        if earlier.iter().any(|other| other.algorithm == rule.algorithm) {
            found.add(format!("{field}.algorithm"), "is there twice; merge the two entries");
        }
        let shares = |other: &AlgorithmRule| other.tags.iter().any(|tag| rule.tags.contains(tag));
        if earlier.iter().any(shares) {
            found.add(format!("{field}.tags"), "a tag belongs to one algorithm");
        }
        if rules.len() > 1 && rule.tags.is_empty() {
            found.add(format!("{field}.tags"), "with two algorithms, each needs tags");
        }
    }
}

fn check_tags(field: &str, proof: &SignatureProof, rule: &AlgorithmRule, found: &mut Violations) {
    if rule.tags.len() > MAX_TAGS {
        found.add(field, format!("has at most {MAX_TAGS} entries"));
    }
    if !rule.tags.is_empty() && proof.syntax.key_separator.is_none() {
        found.add(field, "tags need syntax.key_separator");
    }
    for tag in &rule.tags {
        check_name(field, tag, found);
        let separators = [proof.syntax.item_separator, proof.syntax.key_separator];
        if separators.into_iter().flatten().any(|separator| tag.contains(separator)) {
            found.add(field, "a tag holds no separator");
        }
    }
}

fn check_encoding(proof: &SignatureProof, found: &mut Violations) {
    let token = proof.algorithms.iter().any(|rule| rule.algorithm == Algorithm::Equality);
    if token && proof.algorithms.len() > 1 {
        found.add("proof.signature.algorithms", "a token has no second algorithm beside it");
    }
    let suitable = match proof.encoding {
        Encoding::Text => token,
        Encoding::Hex => !token,
        Encoding::Base64 | Encoding::Base64Url => true,
    };
    if !suitable {
        found.add(
            "proof.signature.encoding",
            "signatures are hex, base64 or base64url; tokens are text or base64",
        );
    }
}

fn check_template(scheme: &Scheme, proof: &SignatureProof, found: &mut Violations) {
    const FIELD: &str = "proof.signature.template";
    let rules = &proof.algorithms;
    if rules.iter().any(|rule| rule.algorithm == Algorithm::Equality) {
        if !proof.template.is_empty() {
            found.add(FIELD, "a token signs nothing; leave this empty");
        }
        return;
    }
    if proof.template.is_empty() || proof.template.len() > MAX_PARTS {
        found.add(FIELD, format!("has 1 to {MAX_PARTS} parts"));
    }
    let fixed = |part: &Part| matches!(part, Part::Literal(_) | Part::Secret | Part::Setting(_));
    if proof.template.iter().all(fixed) {
        found.add(FIELD, "covers nothing of the request; add body or another part of it");
    }
    let digest = rules.iter().any(|r| matches!(r.algorithm, Algorithm::Sha256 | Algorithm::Sha512));
    match (digest, proof.template.iter().filter(|part| **part == Part::Secret).count()) {
        (true, 1) | (false, 0) => {}
        (true, _) => found.add(FIELD, "a plain digest needs the part `secret` exactly once"),
        (false, _) => found.add(FIELD, "`secret` is for plain digests; a MAC holds it already"),
    }
    for (index, part) in proof.template.iter().enumerate() {
        check_part(scheme, proof, &format!("{FIELD}[{index}]"), part, found);
    }
}

fn check_part(
    scheme: &Scheme,
    proof: &SignatureProof,
    field: &str,
    part: &Part,
    found: &mut Violations,
) {
    match part {
        Part::Literal(text) => check_text(field, text, found),
        Part::Timestamp if scheme.timestamp.is_none() => {
            found.add(field, "needs the scheme's `timestamp`");
        }
        Part::MessageId if scheme.message_id.is_empty() => {
            found.add(field, "needs the scheme's `message_id`");
        }
        Part::Setting(name) => check_setting(scheme, field, name, found),
        Part::Value { at, before, after, .. } => {
            Places::of(proof).check(&format!("{field}.at"), at, found);
            if before.len() > MAX_TEXT_BYTES || after.len() > MAX_TEXT_BYTES {
                found.add(field, format!("texts around it have at most {MAX_TEXT_BYTES} bytes"));
            }
        }
        _ => {}
    }
}

fn check_url_variants(proof: &SignatureProof, found: &mut Violations) {
    const FIELD: &str = "proof.signature.url_variants";
    let used = proof.template.contains(&Part::Url);
    let variants = &proof.url_variants;
    if used && (variants.is_empty() || variants.len() > MAX_URL_VARIANTS) {
        found.add(FIELD, format!("has 1 to {MAX_URL_VARIANTS} entries where the URL is signed"));
    }
    if !used && !variants.is_empty() {
        found.add(FIELD, "the URL is not signed; leave this empty");
    }
    let twice = |(index, variant)| variants[..index].contains(variant);
    if variants.iter().enumerate().any(twice) {
        found.add(FIELD, "an entry is there twice");
    }
}
