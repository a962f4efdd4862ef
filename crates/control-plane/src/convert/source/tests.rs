//! Requests for sources: what is meant, and what is refused.

use super::*;
use turnbuckle_domain::{Answers, WithoutId};

/// A scheme of one's own: `HMAC-SHA256` in hex over the body.
pub(crate) fn scheme() -> v1::VerificationScheme {
    let header = |name: &str| v1::Locator { at: Some(v1::locator::At::Header(name.to_owned())) };
    let token = v1::template_part::Part::Token(v1::TemplateToken::Body.into());
    let proof = v1::SignatureProof {
        sources: vec![header("x-acme-signature")],
        encoding: v1::SignatureEncoding::Hex.into(),
        algorithms: vec![v1::AlgorithmRule {
            algorithm: v1::VerificationAlgorithm::HmacSha256.into(),
            key: Some(v1::KeyRule {
                encoding: v1::KeyEncoding::Utf8.into(),
                min_bytes: 8,
                ..Default::default()
            }),
            ..Default::default()
        }],
        template: vec![v1::TemplatePart { part: Some(token) }],
        ..Default::default()
    };
    v1::VerificationScheme {
        proof: Some(v1::verification_scheme::Proof::Signature(proof)),
        ..Default::default()
    }
}

fn source() -> v1::Source {
    v1::Source {
        name: "tenants/acme/sources/shop".to_owned(),
        verification: Some(v1::source::Verification::Scheme(scheme())),
        ..Default::default()
    }
}

fn creating(source: v1::Source) -> v1::CreateSourceRequest {
    v1::CreateSourceRequest {
        parent: "tenants/acme".to_owned(),
        source_id: "shop".to_owned(),
        source: Some(source),
        ..Default::default()
    }
}

fn refusal<T>(result: Result<T, Error>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_source_needs_its_verification_and_nothing_else() {
    let command = create(creating(source())).unwrap();
    assert_eq!(command.settings, SourceSettings::default());
    assert!(matches!(command.scheme, SchemeChoice::Custom(_)) && command.key.is_none());
    let text = refusal(create(creating(v1::Source::default())));
    assert!(text.contains("source.preset: is required"), "{text}");
    let preset = Some(v1::source::Verification::Preset("no-such-thing".to_owned()));
    let text = refusal(create(creating(v1::Source { verification: preset, ..source() })));
    assert!(text.contains("source.preset: is \"no-such-thing\""), "{text}");
}

#[test]
fn everything_wrong_is_told_at_once() {
    let mut wrong = source();
    wrong.display_name = "a\nb".to_owned();
    wrong.public_url = "ftp://user:hunter2@x/".to_owned();
    wrong.scheme_settings.insert("webhook_id".to_owned(), "1".to_owned());
    wrong.dedup =
        Some(v1::DedupSettings { excluded_fields: vec!["a..b".to_owned()], ..Default::default() });
    wrong.answers = Some(v1::AnswerSettings { accepted_status: 302, ..Default::default() });
    wrong.timestamp_tolerance = Some(v1::TimestampTolerance::default());
    wrong.handshake_mode = 77;
    let request = v1::CreateSourceRequest {
        parent: "acme".to_owned(),
        source_id: "Shop".to_owned(),
        secret: "hunter2".to_owned(),
        generate_secret: true,
        ..creating(wrong)
    };
    let text = refusal(create(request));
    for field in [
        "parent: ",
        "source_id: ",
        "source.display_name: ",
        "source.public_url: is no absolute",
        "source.scheme_settings.webhook_id: is not asked for",
        "source.dedup.excluded_fields[0]: ",
        "source.answers.accepted_status: is 302",
        "source.timestamp_tolerance: is set, but the scheme signs no time",
        "source.handshake_mode: is 77",
        "generate_secret: is set beside secret",
    ] {
        assert!(text.contains(field), "{field} is not in {text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn public_urls_are_absolute_and_bare() {
    for good in ["https://hooks.example.com", "http://127.0.0.1:8080/in?x=1%20y"] {
        assert_eq!(public_url(good.to_owned()), Ok(Some(good.to_owned())));
    }
    assert_eq!(public_url(String::new()), Ok(None));
    let long = format!("https://a.example/{}", "x".repeat(limits::URL_CHARS));
    for bad in [
        "/in/x",
        "hooks.example.com",
        "ftp://a.example/",
        "https://a@b.example/",
        "https://b.example/#x",
        "https:///x",
        "https://b.example/a b",
        "https://bücher.example/",
        long.as_str(),
    ] {
        assert!(public_url(bad.to_owned()).is_err(), "{bad}");
    }
}

#[test]
fn an_update_means_what_is_masked_or_set() {
    let updating = |paths: &[&str], source| v1::UpdateSourceRequest {
        source: Some(source),
        update_mask: (!paths.is_empty()).then(|| prost_types::FieldMask {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        }),
        ..Default::default()
    };
    let set = v1::Source {
        answers: Some(v1::AnswerSettings { accepted_status: 200, ..Default::default() }),
        ..source()
    };
    let meant = update(updating(&[], set.clone())).unwrap();
    assert_eq!(meant.groups.answers, Some(Some(Answers { accepted: 200, ..Answers::default() })));
    assert!(meant.scheme.is_some() && meant.groups.dedup.is_none() && meant.labels.is_none());
    let meant = update(updating(&["dedup", "public_url"], set.clone())).unwrap();
    assert_eq!((meant.groups.answers, meant.groups.dedup), (None, Some(None)));
    assert_eq!((meant.public_url, meant.scheme), (Some(None), None));
    let text = refusal(update(updating(&["preset"], set.clone())));
    assert!(text.contains("update_mask: names preset, but scheme is set"), "{text}");
    let text = refusal(update(updating(&["ordering.policy"], set)));
    assert!(text.contains("\"ordering.policy\""), "{text}");
}

#[test]
fn a_group_that_is_named_and_not_set_is_filled_as_at_creation() {
    let mut settings = SourceSettings::default();
    settings.dedup.without_id = WithoutId::Refuse;
    settings.answers.accepted = 200;
    let groups = Groups { dedup: Some(None), ..Groups::default() };
    groups.apply(&SourceSettings::default(), &mut settings);
    assert_eq!(settings.dedup.without_id, WithoutId::default());
    assert_eq!(settings.answers.accepted, 200);
}

#[test]
fn paths_change_with_an_overlap_of_three_days() {
    let with = |overlap: Option<i64>| {
        rotate_path(v1::RotateIngestPathRequest {
            name: "tenants/acme/sources/shop".to_owned(),
            overlap: overlap.map(|seconds| prost_types::Duration { seconds, nanos: 0 }),
            ..Default::default()
        })
    };
    assert_eq!(with(None).unwrap().overlap, Duration::from_secs(72 * 3600));
    assert_eq!(with(Some(0)).unwrap().overlap, Duration::ZERO);
    assert!(refusal(with(Some(31 * 86_400))).contains("use 0 s to 30 d"));
}
