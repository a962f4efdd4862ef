//! Sources on the wire.

use super::{
    absorb,
    change::{self, split_name},
    etag, finish,
    mask::{Fields, Mask},
    new_id, page, scheme, single, source_settings as groups,
    value::{self, duration_or},
};
use crate::{
    key_material::{KeyText, WantedKey},
    names::{SourceName, TenantName},
    preset_settings,
    source::{CreateSource, DeleteSource, Groups, ListSources, RotateIngestPath, UpdateSource},
    verification,
    write::Upsert,
};
use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};
use turnbuckle_domain::{
    Error, OperationalEvent, SchemeChoice, SourceSettings, Violations, limits, source_limits,
};
use turnbuckle_proto::v1;
use zeroize::Zeroizing;

const NAME_FIELD: &str = "source.display_name";
const PRESET_FIELD: &str = "source.preset";
const SCHEME_FIELD: &str = "source.scheme";
const TEXTS_FIELD: &str = "source.scheme_settings";
const URL_FIELD: &str = "source.public_url";
const HANDSHAKE_FIELD: &str = "source.handshake_mode";
const UNPROCESSABLE_FIELD: &str = "source.unprocessable_mode";
const LABELS_FIELD: &str = "source.labels";

/// How requests are verified: a preset that is known, or a scheme without violations.
fn verification(
    violations: &mut Violations,
    wire: Option<v1::source::Verification>,
) -> Option<SchemeChoice> {
    use v1::source::Verification as Wire;
    match wire {
        None => {
            violations.add(PRESET_FIELD, "is required: name a preset, or set scheme");
            None
        }
        Some(Wire::Preset(name)) => match turnbuckle_signing::scheme::preset(&name) {
            Some(_) => Some(SchemeChoice::Preset(name)),
            None => {
                violations.add(PRESET_FIELD, verification::unknown_preset(&name));
                None
            }
        },
        Some(Wire::Scheme(wire)) => {
            let scheme = scheme::scheme(violations, wire)?;
            let document = violations.take(SCHEME_FIELD, verification::document(&scheme))?;
            Some(SchemeChoice::Custom(document))
        }
    }
}

/// The URL a sender calls; none when it is left out. Never repeated in a message: it may carry
/// credentials.
fn public_url(text: String) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let count = text.chars().count();
    if count > limits::URL_CHARS {
        return Err(format!("has {count} characters; use at most {}", limits::URL_CHARS));
    }
    let uri: Option<http::Uri> = text.parse().ok();
    let absolute = uri.as_ref().is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|h| !h.is_empty())
    });
    let bare = !text.contains('#')
        && uri.as_ref().and_then(http::Uri::authority).is_some_and(|at| !at.as_str().contains('@'));
    if !absolute || !bare || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("is no absolute http or https URL without fragment and user information".into());
    }
    Ok(Some(text))
}

/// Most texts read: a scheme asks for no more.
fn texts(
    violations: &mut Violations,
    given: HashMap<String, String>,
) -> Option<BTreeMap<String, String>> {
    let (count, most) = (given.len(), source_limits::SCHEME_SETTINGS);
    if count > most {
        violations.add(TEXTS_FIELD, format!("has {count} entries; use at most {most}"));
        return None;
    }
    Some(given.into_iter().collect())
}

/// The groups that are meant. One that is malformed is noted and left out.
fn meant_groups(
    violations: &mut Violations,
    source: &mut v1::Source,
    means: impl Fn(&str) -> bool,
) -> Groups {
    fn group<W, T>(
        violations: &mut Violations,
        meant: bool,
        wire: Option<W>,
        read: impl FnOnce(&mut Violations, W) -> Option<T>,
    ) -> Option<Option<T>> {
        match wire {
            _ if !meant => None,
            None => Some(None),
            Some(wire) => read(violations, wire).map(Some),
        }
    }
    let tolerance = source.timestamp_tolerance.take();
    let answers = source.answers.take();
    Groups {
        event: group(violations, means("event"), source.event.take(), groups::event),
        dedup: group(violations, means("dedup"), source.dedup.take(), groups::dedup),
        ordering: group(violations, means("ordering"), source.ordering.take(), groups::ordering),
        timestamp: group(
            violations,
            means("timestamp_tolerance"),
            tolerance,
            |violations, wire| groups::tolerance(violations, &wire),
        ),
        limits: group(violations, means("limits"), source.limits.take(), groups::intake),
        answers: group(violations, means("answers"), answers, |violations, wire| {
            groups::answers(violations, &wire)
        }),
        handshake: means("handshake_mode")
            .then(|| violations.take(HANDSHAKE_FIELD, groups::handshake(source.handshake_mode)))
            .flatten(),
        unprocessable: means("unprocessable_mode").then(|| match source.unprocessable_mode {
            0 => None,
            given => violations.take(UNPROCESSABLE_FIELD, groups::unprocessable(given)),
        }),
        receipts: group(violations, means("receipts"), source.receipts.take(), groups::receipts),
    }
}

/// The settings of a new source, held against everything that is known of it.
fn whole(
    violations: &mut Violations,
    choice: Option<&SchemeChoice>,
    texts: Option<&BTreeMap<String, String>>,
    groups: &Groups,
) -> SourceSettings {
    let filled = choice.map(preset_settings::filled).unwrap_or_default();
    let mut settings = filled.clone();
    groups.apply(&filled, &mut settings);
    let scheme = choice.and_then(|choice| absorb(violations, verification::scheme(choice)));
    match scheme.as_ref().zip(texts) {
        Some((scheme, texts)) => {
            verification::check_whole(scheme, texts, &settings, violations);
        }
        None => settings.check("source", None, violations),
    }
    settings
}

fn first_key(violations: &mut Violations, secret: &str, generate: bool) -> Option<WantedKey> {
    match (secret, generate) {
        ("", false) => None,
        ("", true) => Some(WantedKey::FreshSecret),
        (_, true) => {
            violations.add("generate_secret", "is set beside secret; leave one of them out");
            None
        }
        (secret, false) => {
            let text = KeyText::new(Zeroizing::new(secret.to_owned()));
            Some(WantedKey::Given { text, asked: None })
        }
    }
}

pub(crate) fn create(mut request: v1::CreateSourceRequest) -> Result<CreateSource, Error> {
    let secret = Zeroizing::new(std::mem::take(&mut request.secret));
    let mut violations = Violations::new();
    let mut source = request.source.unwrap_or_default();
    let parent = violations.take("parent", TenantName::parse(&request.parent));
    if request.source_id == OperationalEvent::SOURCE {
        violations.add("source_id", "is the source of operational events: choose another");
    }
    let slug = new_id(&mut violations, "source_id", request.source_id);
    let groups = meant_groups(&mut violations, &mut source, |_| true);
    let display_name = violations.take(NAME_FIELD, value::display_name(source.display_name));
    let scheme = verification(&mut violations, source.verification);
    let texts = texts(&mut violations, source.scheme_settings);
    let public_url = violations.take(URL_FIELD, public_url(source.public_url));
    let labels = value::labels(&mut violations, LABELS_FIELD, source.labels);
    let settings = whole(&mut violations, scheme.as_ref(), texts.as_ref(), &groups);
    let key = first_key(&mut violations, &secret, request.generate_secret);
    let command = || {
        Some(CreateSource {
            tenant: parent?.0,
            slug: slug?,
            display_name: display_name?,
            scheme: scheme?,
            scheme_settings: texts?,
            public_url: public_url?,
            settings,
            labels: labels?,
            key,
        })
    };
    finish(violations, command())
}

pub(crate) fn get(request: v1::GetSourceRequest) -> Result<SourceName, Error> {
    single("name", SourceName::parse(&request.name))
}

pub(crate) fn list(request: v1::ListSourcesRequest) -> Result<ListSources, Error> {
    let mut violations = Violations::new();
    let parent = violations.take("parent", TenantName::parse(&request.parent));
    let scope = format!("{}/sources", request.parent);
    let page = page(&mut violations, scope, request.page_size, &request.page_token);
    let command = || Some(ListSources { tenant: parent?.0, page: page? });
    finish(violations, command())
}

fn read_mask(
    mask: Option<prost_types::FieldMask>,
    source: &v1::Source,
    violations: &mut Violations,
) -> Mask {
    use v1::source::Verification as Wire;
    let fields = Fields {
        changeable: &[
            ("display_name", !source.display_name.is_empty()),
            ("preset", matches!(source.verification, Some(Wire::Preset(_)))),
            ("scheme", matches!(source.verification, Some(Wire::Scheme(_)))),
            ("scheme_settings", !source.scheme_settings.is_empty()),
            ("public_url", !source.public_url.is_empty()),
            ("event", source.event.is_some()),
            ("dedup", source.dedup.is_some()),
            ("ordering", source.ordering.is_some()),
            ("timestamp_tolerance", source.timestamp_tolerance.is_some()),
            ("limits", source.limits.is_some()),
            ("answers", source.answers.is_some()),
            ("handshake_mode", source.handshake_mode != 0),
            ("unprocessable_mode", source.unprocessable_mode != 0),
            ("receipts", source.receipts.is_some()),
            ("labels", !source.labels.is_empty()),
        ],
        output_only: &[
            "ingest_path",
            "previous_ingest_path",
            "previous_ingest_path_expire_time",
            "weaknesses",
            "verification_secret",
        ],
        fixed: &[],
    };
    Mask::read(mask, &fields, violations)
}

/// The verification an update means. Only one kind can be set; a mask that names the other one alone
/// contradicts its message.
fn masked_verification(
    violations: &mut Violations,
    mask: &Mask,
    wire: Option<v1::source::Verification>,
) -> Option<SchemeChoice> {
    use v1::source::Verification as Wire;
    match ([mask.has("preset"), mask.has("scheme")], wire) {
        ([false, false], _) => None,
        ([true, false], Some(Wire::Scheme(_))) => {
            violations.add("update_mask", "names preset, but scheme is set: name scheme");
            None
        }
        ([false, true], Some(Wire::Preset(_))) => {
            violations.add("update_mask", "names scheme, but preset is set: name preset");
            None
        }
        (_, wire) => verification(violations, wire),
    }
}

fn update(request: v1::UpdateSourceRequest) -> Result<UpdateSource, Error> {
    let mut violations = Violations::new();
    let Some(mut source) = request.source else {
        return Err(Error::invalid("source", "is required"));
    };
    let mask = read_mask(request.update_mask, &source, &mut violations);
    let name = violations.take("source.name", SourceName::parse(&source.name));
    let etag = etag(&mut violations, "source.etag", &source.etag);
    let groups = meant_groups(&mut violations, &mut source, |path| mask.has(path));
    let display_name = mask
        .has("display_name")
        .then(|| violations.take(NAME_FIELD, value::display_name(source.display_name)))
        .flatten();
    let scheme = masked_verification(&mut violations, &mask, source.verification);
    let texts = mask
        .has("scheme_settings")
        .then(|| texts(&mut violations, source.scheme_settings))
        .flatten();
    let public_url = mask
        .has("public_url")
        .then(|| violations.take(URL_FIELD, public_url(source.public_url)))
        .flatten();
    let labels = mask
        .has("labels")
        .then(|| value::labels(&mut violations, LABELS_FIELD, source.labels))
        .flatten();
    let command = name.map(|name| UpdateSource {
        name,
        etag,
        display_name,
        scheme,
        scheme_settings: texts,
        public_url,
        groups,
        labels,
    });
    finish(violations, command)
}

pub(crate) fn upsert(
    request: v1::UpdateSourceRequest,
) -> Result<Upsert<UpdateSource, CreateSource>, Error> {
    let wanted = request.allow_missing.then(|| request.source.clone().unwrap_or_default());
    let update = update(request)?;
    let create = wanted.map(|source| {
        let (parent, source_id) = split_name(&source.name);
        let source = Some(source);
        create(v1::CreateSourceRequest { parent, source_id, source, ..Default::default() })
    });
    change::upsert(update, create)
}

pub(crate) fn delete(request: v1::DeleteSourceRequest) -> Result<DeleteSource, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", SourceName::parse(&request.name));
    let etag = etag(&mut violations, "etag", &request.etag);
    finish(violations, name.map(|name| DeleteSource { name, etag }))
}

pub(crate) fn rotate_path(request: v1::RotateIngestPathRequest) -> Result<RotateIngestPath, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", SourceName::parse(&request.name));
    let etag = etag(&mut violations, "etag", &request.etag);
    let overlap = duration_or(
        request.overlap.as_ref(),
        source_limits::PATH_OVERLAP_DEFAULT,
        Duration::ZERO..=source_limits::PATH_OVERLAP_MAX,
    );
    let overlap = violations.take("overlap", overlap);
    let command = || Some(RotateIngestPath { name: name?, etag, overlap: overlap? });
    finish(violations, command())
}

mod outgoing;

pub(crate) use outgoing::{created, message, messages};

#[cfg(test)]
mod tests;
