//! What a source looks like in the record.

use super::diff::{Audited, Fields, fingerprint, put, put_labels, shown_time};
use crate::{SchemeChoice, Source};
use serde_json::Value;

impl Audited for Source {
    fn fields(&self) -> Fields {
        let owner = self.id.uuid();
        let hidden =
            |field: &str, value: &str| format!("(value {})", fingerprint(owner, field, value));
        let mut fields = Fields::new();
        put(&mut fields, "uid", self.id.to_string());
        put(&mut fields, "display_name", &self.display_name);
        match &self.scheme {
            SchemeChoice::Preset(name) => put(&mut fields, "preset", name),
            SchemeChoice::Custom(document) => put_document(&mut fields, document.as_str()),
        }
        for (name, value) in &self.scheme_settings {
            let field = format!("scheme_settings.{name}");
            let value = hidden(&field, value);
            put(&mut fields, &field, value);
        }
        // Whoever knows a path can send requests to it, and a sender's URL may carry credentials.
        put(&mut fields, "ingest_path", hidden("ingest_path", self.path.token.as_str()));
        if let Some((_, until)) = &self.path.previous {
            put(&mut fields, "previous_ingest_path_expire_time", shown_time(*until));
        }
        if let Some(url) = &self.public_url {
            put(&mut fields, "public_url", hidden("public_url", url));
        }
        if let Ok(settings) = serde_json::to_value(&self.settings) {
            put_value(&mut fields, "settings", &settings);
        }
        if let Some(reason) = &self.disabled {
            put(&mut fields, "disabled", reason);
        }
        put_labels(&mut fields, &self.labels);
        fields
    }
}

/// A scheme that is no JSON is not taken apart; it is shown as it is.
fn put_document(fields: &mut Fields, text: &str) {
    match serde_json::from_str(text) {
        Ok(value) => put_value(fields, "scheme", &value),
        Err(_) => put(fields, "scheme", text),
    }
}

/// Every scalar of a document, by its path. Documents of sources nest a few levels and are bounded.
fn put_value(fields: &mut Fields, path: &str, value: &Value) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (name, member) in members {
                put_value(fields, &format!("{path}.{name}"), member);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                put_value(fields, &format!("{path}[{index}]"), item);
            }
        }
        Value::String(text) => put(fields, path, text),
        Value::Bool(_) | Value::Number(_) => put(fields, path, value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        IngestPath, IngestToken, Labels, Meta, ResourceId, SchemeDocument, SourceId,
        SourceSettings, TenantId, Timestamp, ValueSource, diff,
    };
    use std::{collections::BTreeMap, time::Duration};
    use uuid::Uuid;

    fn source() -> Source {
        Source {
            id: SourceId::from_uuid(Uuid::from_u128(1)),
            tenant: TenantId::from_uuid(Uuid::from_u128(2)),
            slug: ResourceId::new("shop").unwrap(),
            display_name: "Shop".to_owned(),
            scheme: SchemeChoice::Preset("github".to_owned()),
            scheme_settings: BTreeMap::from([("webhook_id".to_owned(), "hunter2".to_owned())]),
            path: IngestPath::new(IngestToken::from_random([1; IngestToken::LENGTH])),
            public_url: Some("https://in.example/?key=hunter2".to_owned()),
            settings: SourceSettings::default(),
            disabled: None,
            labels: Labels::default(),
            meta: Meta::default(),
        }
    }

    #[test]
    fn a_source_is_recorded_without_what_lets_somebody_in() {
        let source = source();
        let text = format!("{:?} {source:?}", source.fields());
        assert!(!text.contains("hunter2") && !text.contains(source.path.token.as_str()), "{text}");
        assert_eq!(source.fields()["settings.answers.accepted"], "202");
        assert_eq!(source.fields()["settings.dedup.window"], "604800s");
    }

    #[test]
    fn a_change_shows_the_fields_that_differ() {
        let before = source();
        let mut after = before.clone();
        let fresh = IngestToken::from_random([2; IngestToken::LENGTH]);
        after.path.rotate(fresh, Duration::from_secs(60), Timestamp::from_micros(0));
        after.settings.dedup.event_id = vec![ValueSource::header("x-id")];
        let document = r#"{"proof":{"items":[1,true,null,"x"]}}"#;
        after.scheme = SchemeChoice::Custom(SchemeDocument::new(document).unwrap());
        let changes = diff(&before.fields(), &after.fields());
        let changed: Vec<&str> = changes.iter().map(|change| change.field.as_str()).collect();
        assert_eq!(
            changed,
            [
                "ingest_path",
                "preset",
                "previous_ingest_path_expire_time",
                "scheme.proof.items[0]",
                "scheme.proof.items[1]",
                "scheme.proof.items[3]",
                "settings.dedup.event_id[0].parts[0].header",
            ]
        );
    }
}
