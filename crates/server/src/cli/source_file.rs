//! Sources as files: the contract's own JSON form, in JSON or YAML.

use super::error::Usage;
use anyhow::Context as _;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor};
use serde_json::Value;
use turnbuckle_control_plane::scheme_message;
use turnbuckle_proto::v1;
use turnbuckle_signing::scheme::Scheme;

/// What a file says of a source.
#[derive(Debug, Default)]
pub(super) struct SourceFile {
    pub(super) source: v1::Source,
    /// The fields it sets, as masks name them.
    pub(super) fields: Vec<String>,
}

impl SourceFile {
    /// Reads a file. `shown` names it in messages.
    pub(super) fn parse(shown: &str, bytes: &[u8]) -> anyhow::Result<Self> {
        // YAML holds JSON.
        let value: Value = serde_norway::from_slice(bytes)
            .map_err(|error| Usage(format!("{shown} is neither YAML nor JSON: {error}")))?;
        let Value::Object(members) = &value else {
            return Err(Usage(format!("{shown} holds no source; see `source get -o yaml`")).into());
        };
        let descriptor = descriptor()?;
        let fields = members.iter().filter(|(_, value)| !value.is_null());
        let fields = fields.filter_map(|(name, _)| field_name(&descriptor, name)).collect();
        let options = DeserializeOptions::new().deny_unknown_fields(true);
        let message = DynamicMessage::deserialize_with_options(descriptor, value, &options)
            .map_err(|error| Usage(format!("{shown} holds no source: {error}")))?;
        let source = v1::Source::decode(message.encode_to_vec().as_slice())?;
        Ok(Self { source, fields })
    }
}

/// A scheme in the form of presets, checked before it is sent. `shown` names the file in messages.
pub(super) fn scheme(shown: &str, bytes: &[u8]) -> anyhow::Result<v1::VerificationScheme> {
    let refused = |error: String| Usage(format!("{shown} holds no scheme: {error}"));
    let read = if shown.ends_with(".toml") {
        let text = std::str::from_utf8(bytes).map_err(|error| refused(error.to_string()))?;
        Scheme::from_toml(text)
    } else {
        // YAML holds JSON.
        let value: Value =
            serde_norway::from_slice(bytes).map_err(|error| refused(error.to_string()))?;
        Scheme::from_document(value)
    };
    let scheme = read.map_err(|error| refused(error.to_string()))?;
    Ok(scheme_message(&scheme))
}

fn descriptor() -> anyhow::Result<MessageDescriptor> {
    let pool = DescriptorPool::decode(turnbuckle_proto::DESCRIPTORS)?;
    pool.get_message_by_name("turnbuckle.v1.Source").context("Source is not in the contract")
}

/// The proto name of a field given in either spelling.
fn field_name(descriptor: &MessageDescriptor, given: &str) -> Option<String> {
    let field =
        descriptor.get_field_by_json_name(given).or_else(|| descriptor.get_field_by_name(given))?;
    Some(field.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_and_json_say_the_same() {
        let yaml = "displayName: Shop\ndedup:\n  window: 3600s\n  missing_id_mode: MISSING_ID_MODE_REFUSE\n";
        let json = r#"{"display_name":"Shop","dedup":{"window":"3600s","missingIdMode":3}}"#;
        let (yaml, json) = (
            SourceFile::parse("f", yaml.as_bytes()).unwrap(),
            SourceFile::parse("f", json.as_bytes()).unwrap(),
        );
        assert_eq!(yaml.source, json.source);
        assert_eq!(yaml.source.dedup.unwrap().window.unwrap().seconds, 3600);
        let mut fields = yaml.fields;
        fields.sort_unstable();
        assert_eq!(fields, ["dedup", "display_name"]);
    }

    #[test]
    fn misspelt_fields_and_other_files_are_refused() {
        for bad in ["dedupe: {}", "[]", "x", "dedup: {window: soon}", "a: [", ""] {
            let error = SourceFile::parse("f.yaml", bad.as_bytes()).unwrap_err();
            assert!(error.is::<Usage>() && error.to_string().contains("f.yaml"), "{bad}: {error}");
        }
    }
}
