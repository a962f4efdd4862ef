//! Presets of sources on the wire.

use super::{
    finish, page, scheme, single,
    source_settings::{wire_answers, wire_dedup, wire_event},
    wire_name::WireName as _,
};
use crate::{
    names::SourcePresetName,
    page::{Page, PageRequest},
    preset_settings,
};
use turnbuckle_domain::{Error, Violations};
use turnbuckle_proto::v1;
use turnbuckle_signing::scheme::Preset;

/// What is listed: a server has one list.
const SCOPE: &str = "sourcePresets";

pub(crate) fn get(request: v1::GetSourcePresetRequest) -> Result<SourcePresetName, Error> {
    single("name", SourcePresetName::parse(&request.name))
}

pub(crate) fn list(request: v1::ListSourcePresetsRequest) -> Result<PageRequest, Error> {
    let mut violations = Violations::new();
    let page = page(&mut violations, SCOPE.to_owned(), request.page_size, &request.page_token);
    finish(violations, page)
}

pub(crate) fn message(preset: &Preset) -> v1::SourcePreset {
    let settings = preset_settings::of_preset(preset);
    let weaknesses = preset.scheme.weaknesses().into_iter();
    v1::SourcePreset {
        name: format!("{SCOPE}/{}", preset.name),
        title: preset.title.clone(),
        evidence: preset.evidence.number(),
        notes: preset.notes.clone(),
        weaknesses: weaknesses.map(|weakness| weakness.number()).collect(),
        scheme_settings: preset.scheme.settings.clone(),
        scheme: Some(scheme::wire_scheme(&preset.scheme)),
        event: Some(wire_event(&settings.event)),
        dedup: Some(wire_dedup(&settings.dedup)),
        answers: Some(wire_answers(settings.answers)),
    }
}

pub(crate) fn messages(page: &Page<&'static Preset>) -> v1::ListSourcePresetsResponse {
    let (source_presets, next_page_token) =
        super::page::messages(page, |preset| preset.name.as_str(), |preset| message(preset));
    v1::ListSourcePresetsResponse { source_presets, next_page_token }
}
