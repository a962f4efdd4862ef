//! Published requests are accepted.

use serde::Deserialize;

use crate::sample::Sample;

#[derive(Deserialize)]
struct File {
    vector: Vec<Vector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    name: String,
    /// Who published it.
    source: String,
    preset: String,
    key: String,
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: String,
    body_covered: bool,
    now_ms: i64,
    #[serde(default)]
    settings: Vec<(String, String)>,
    id: Option<String>,
    signed_at_ms: Option<i64>,
}

/// All published requests.
pub(crate) fn published() -> Vec<Sample> {
    read(include_str!("vectors.toml"))
}

/// All requests: published ones, and ones made from the rules that senders document.
pub(crate) fn all() -> Vec<Sample> {
    let mut samples = published();
    samples.extend(read(include_str!("made.toml")));
    samples
}

fn read(text: &str) -> Vec<Sample> {
    let file: File = toml::from_str(text).unwrap();
    let sample = |vector: Vector| {
        assert!(!vector.source.is_empty());
        let bytes = |(name, value): (String, String)| (name, value.into_bytes());
        Sample {
            name: vector.name,
            preset: vector.preset,
            key: vector.key,
            method: vector.method,
            url: vector.url,
            headers: vector.headers.into_iter().map(bytes).collect(),
            body: vector.body.into_bytes(),
            body_covered: vector.body_covered,
            now_ms: vector.now_ms,
            settings: vector.settings,
            id: vector.id,
            signed_at_ms: vector.signed_at_ms,
        }
    };
    file.vector.into_iter().map(sample).collect()
}

/// The one of that name.
pub(crate) fn named(name: &str) -> Sample {
    all().into_iter().find(|sample| sample.name == name).unwrap()
}

#[test]
fn every_request_is_accepted() {
    assert_eq!(published().len(), 60);
    for sample in all() {
        let verified = sample.verify().unwrap_or_else(|why| panic!("{}: {why}", sample.name));
        assert_eq!(verified.key_index, 0, "{}", sample.name);
        assert_eq!(verified.signed_at_ms, sample.signed_at_ms, "{}", sample.name);
        if sample.id.is_some() {
            assert_eq!(verified.message_id, sample.id, "{}", sample.name);
        }
    }
}

#[test]
fn a_preset_that_claims_a_vector_has_one() {
    use turnbuckle_signing::scheme::{Evidence, presets};
    let samples = published();
    for preset in presets().iter().filter(|preset| preset.evidence == Evidence::Vector) {
        let own = ["turnbuckle", "hub"].contains(&preset.name.as_str());
        let proven = own || samples.iter().any(|sample| sample.preset == preset.name);
        assert!(proven, "{}", preset.name);
    }
}

#[test]
fn both_keys_of_a_sender_with_two_headers_are_told_apart() {
    let (first, second) = (named("box-primary"), named("box-secondary"));
    let keys = [first.parsed_key(), second.parsed_key()];
    assert_eq!(first.verify_with(&keys).unwrap().key_index, 0);
    assert_eq!(first.verify_with(&keys[1..]).unwrap().key_index, 0);
}

/// The rest are tokens that are sent as they are, key sets and certificates, which have tests of
/// their own.
#[test]
fn every_other_preset_has_a_request() {
    use turnbuckle_signing::scheme::presets;
    const ELSEWHERE: [&str; 13] = [
        "aws-sns",
        "aws-sns-v1",
        "gitlab-token",
        "google-pubsub",
        "hub",
        "messenger",
        "microsoft-graph",
        "netlify",
        "okta",
        "paypal",
        "postmark",
        "turnbuckle",
        "xendit",
    ];
    let samples = all();
    for preset in presets() {
        let here = samples.iter().any(|sample| sample.preset == preset.name);
        assert!(here != ELSEWHERE.contains(&preset.name.as_str()), "{}", preset.name);
    }
}
