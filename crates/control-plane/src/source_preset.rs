//! Use cases of presets: reads of what this build knows. They belong to no tenant.

use crate::{
    names::SourcePresetName,
    page::{Page, PageRequest},
};
use turnbuckle_domain::Error;
use turnbuckle_signing::scheme::{Preset, preset, presets};

pub(crate) fn get(name: &SourcePresetName) -> Result<&'static Preset, Error> {
    let found = preset(name.0.as_str());
    found.ok_or_else(|| Error::NotFound { resource: name.to_string() })
}

pub(crate) fn list(request: &PageRequest) -> Page<&'static Preset> {
    let after = |preset: &&Preset| {
        request.after.as_ref().is_none_or(|after| preset.name.as_str() > after.as_str())
    };
    let mut rows: Vec<&'static Preset> = presets().iter().filter(after).collect();
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    rows.truncate(usize::from(request.fetch()));
    request.cut(rows, |preset| preset.name.as_str())
}
