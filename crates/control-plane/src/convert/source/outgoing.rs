//! Sources as they go out.

use crate::{
    convert::{
        page, scheme, source_settings as groups,
        value::{self, WireMeta},
        wire_name::WireName as _,
    },
    kept::Listed,
    names::SourceName,
    page::Page,
    source::{CreatedSource, SourceView},
    verification,
};
use turnbuckle_domain::{IngestPath, IngestToken, SchemeChoice, ValuePart, ValueSource};
use turnbuckle_proto::v1;
use turnbuckle_runtime::grpc::timestamp;
use turnbuckle_signing::scheme::{JsonPath, Locator, Scheme, Weakness};

fn wire_verification(choice: &SchemeChoice) -> Option<v1::source::Verification> {
    use v1::source::Verification as Wire;
    match choice {
        SchemeChoice::Preset(name) => Some(Wire::Preset(name.clone())),
        SchemeChoice::Custom(_) => verification::scheme(choice)
            .ok()
            .map(|custom| Wire::Scheme(scheme::wire_scheme(&custom))),
    }
}

fn path(token: &IngestToken) -> String {
    format!("{}{}", IngestPath::PREFIX, token.as_str())
}

/// What a valid request does not prove; the settings may choose an id that the signature leaves out.
fn weaknesses(scheme: &Scheme, chosen: &[ValueSource]) -> Vec<Weakness> {
    let mut found = scheme.weaknesses();
    if chosen.is_empty() {
        return found;
    }
    found.retain(|weakness| *weakness != Weakness::IdNotSigned);
    let signed = |part: &ValuePart| match part {
        ValuePart::Fixed(_) => true,
        ValuePart::Header(name) => scheme.signs(&Locator::Header(name.clone())),
        ValuePart::Query(name) => scheme.signs(&Locator::Query(name.clone())),
        ValuePart::Form(name) => scheme.signs(&Locator::Form(name.clone())),
        ValuePart::JsonPath(path) => {
            JsonPath::parse(path.as_str()).is_ok_and(|path| scheme.signs(&Locator::Json(path)))
        }
    };
    if !chosen.iter().all(|source| source.parts.iter().all(signed)) {
        found.push(Weakness::IdNotSigned);
    }
    found
}

pub(crate) fn message(view: &SourceView) -> v1::Source {
    let source = &view.source;
    let meta = WireMeta::from(&source.meta);
    let name = SourceName { tenant: view.tenant.clone(), id: source.slug.clone() };
    let settings = &source.settings;
    let previous = source.path.previous.as_ref();
    let weaknesses = verification::scheme(&source.scheme)
        .map(|scheme| weaknesses(&scheme, &settings.dedup.event_id));
    let weaknesses = weaknesses.unwrap_or_default().into_iter();
    let state = match source.disabled {
        None => v1::SourceState::Active,
        Some(_) => v1::SourceState::Disabled,
    };
    v1::Source {
        name: name.to_string(),
        uid: value::uid(&source.meta, source.id),
        display_name: source.display_name.clone(),
        verification: wire_verification(&source.scheme),
        scheme_settings: source.scheme_settings.clone().into_iter().collect(),
        ingest_path: value::made(&source.meta, || path(&source.path.token)),
        previous_ingest_path: previous.map(|(token, _)| path(token)).unwrap_or_default(),
        previous_ingest_path_expire_time: previous.map(|(_, until)| timestamp(*until)),
        public_url: source.public_url.clone().unwrap_or_default(),
        event: Some(groups::wire_event(&settings.event)),
        dedup: Some(groups::wire_dedup(&settings.dedup)),
        ordering: Some(groups::wire_ordering(&settings.ordering)),
        timestamp_tolerance: settings.timestamp.map(groups::wire_tolerance),
        limits: Some(groups::wire_intake(&settings.limits)),
        answers: Some(groups::wire_answers(settings.answers)),
        handshake_mode: groups::wire_handshake(settings.handshake),
        unprocessable_mode: groups::wire_unprocessable(settings.unprocessable),
        receipts: Some(groups::wire_receipts(&settings.receipts)),
        weaknesses: weaknesses.map(|weakness| weakness.number()).collect(),
        labels: value::label_map(&source.labels),
        create_time: meta.create_time,
        update_time: meta.update_time,
        etag: meta.etag,
        revision: meta.revision,
        verification_secret: String::new(),
        state: state.into(),
        disable_reason: source.disabled.clone().unwrap_or_default(),
        delete_time: view.deleted_at.map(timestamp),
        purge_time: value::purge_time(view.deleted_at),
    }
}

/// The one answer that shows the secret.
pub(crate) fn created(created: &CreatedSource) -> v1::Source {
    let secret = created.secret.as_ref().map(|secret| secret.expose().to_owned());
    v1::Source { verification_secret: secret.unwrap_or_default(), ..message(&created.view) }
}

pub(crate) fn messages(page: &Page<Listed<SourceView>>) -> v1::ListSourcesResponse {
    let (sources, next_page_token) =
        page::messages(page, |listed| listed.place.as_str(), |listed| message(&listed.row));
    v1::ListSourcesResponse { sources, next_page_token }
}
