//! Versions of event types on the wire.

use super::{
    etag, finish, page, single,
    value::{self, WireMeta},
};
use crate::{
    event_type_version::{
        CreateEventTypeVersion, DeleteEventTypeVersion, EventTypeVersionView,
        ListEventTypeVersions, SCHEMA_FIELD,
    },
    names::{EventTypeName, EventTypeVersionName},
    page::Page,
};
use turnbuckle_domain::{Error, VersionName, Violations};
use turnbuckle_proto::v1;
use turnbuckle_schema::Schema;

const DESCRIPTION_FIELD: &str = "event_type_version.description";

/// What is wrong with a schema is told by its place.
fn compiled(violations: &mut Violations, text: &str) -> Option<Schema> {
    if text.is_empty() {
        violations.add(SCHEMA_FIELD, "is required: send a JSON Schema; {} takes every payload");
        return None;
    }
    Schema::parse(text.as_bytes())
        .map_err(|error| violations.add(format!("{SCHEMA_FIELD}{}", error.path), error.message))
        .ok()
}

pub(crate) fn create(
    request: v1::CreateEventTypeVersionRequest,
) -> Result<CreateEventTypeVersion, Error> {
    let mut violations = Violations::new();
    let version = request.event_type_version.unwrap_or_default();
    let event_type = violations.take("parent", EventTypeName::parse(&request.parent));
    let id =
        violations.take("event_type_version_id", VersionName::new(request.event_type_version_id));
    let compiled = compiled(&mut violations, &version.schema);
    let description = violations.take(DESCRIPTION_FIELD, value::description(version.description));
    let command = || {
        Some(CreateEventTypeVersion {
            name: EventTypeVersionName { event_type: event_type?, version: id? },
            schema: version.schema,
            compiled: compiled?,
            description: description?,
            allow_existing: request.allow_existing,
        })
    };
    finish(violations, command())
}

pub(crate) fn get(request: v1::GetEventTypeVersionRequest) -> Result<EventTypeVersionName, Error> {
    single("name", EventTypeVersionName::parse(&request.name))
}

pub(crate) fn list(
    request: v1::ListEventTypeVersionsRequest,
) -> Result<ListEventTypeVersions, Error> {
    let mut violations = Violations::new();
    let parent = violations.take("parent", EventTypeName::parse(&request.parent));
    let scope = format!("{}/versions", request.parent);
    let page = page(&mut violations, scope, request.page_size, &request.page_token);
    let command = || Some(ListEventTypeVersions { event_type: parent?, page: page? });
    finish(violations, command())
}

pub(crate) fn delete(
    request: v1::DeleteEventTypeVersionRequest,
) -> Result<DeleteEventTypeVersion, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", EventTypeVersionName::parse(&request.name));
    let etag = etag(&mut violations, "etag", &request.etag);
    finish(violations, name.map(|name| DeleteEventTypeVersion { name, etag }))
}

pub(crate) fn message(view: &EventTypeVersionView) -> v1::EventTypeVersion {
    let version = &view.version;
    let meta = WireMeta::from(&version.meta);
    let event_type = EventTypeName { tenant: view.tenant.clone(), id: view.event_type.clone() };
    let name = EventTypeVersionName { event_type, version: version.version.clone() };
    v1::EventTypeVersion {
        name: name.to_string(),
        uid: value::uid(&version.meta, version.id),
        schema: version.schema.clone(),
        description: version.description.clone(),
        create_time: meta.create_time,
        etag: meta.etag,
        revision: meta.revision,
    }
}

pub(crate) fn messages(page: &Page<EventTypeVersionView>) -> v1::ListEventTypeVersionsResponse {
    let (event_type_versions, next_page_token) =
        super::page::messages(page, |view| view.version.version.as_str(), message);
    v1::ListEventTypeVersionsResponse { event_type_versions, next_page_token }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: &str, schema: &str) -> v1::CreateEventTypeVersionRequest {
        v1::CreateEventTypeVersionRequest {
            parent: "tenants/acme/eventTypes/order.paid".to_owned(),
            event_type_version_id: id.to_owned(),
            event_type_version: Some(v1::EventTypeVersion {
                schema: schema.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn a_version_has_a_name_and_a_schema() {
        let command = create(request("2", r#"{"type": "object"}"#)).unwrap();
        assert_eq!(command.name.to_string(), "tenants/acme/eventTypes/order.paid/versions/2");
        assert_eq!(command.schema, r#"{"type": "object"}"#);
    }

    #[test]
    fn everything_wrong_is_told_at_once_and_by_its_place() {
        let mut bad = request("a b", r#"{"properties": {"total": {"type": "nummer"}}}"#);
        bad.parent = "tenants/acme".to_owned();
        bad.event_type_version.as_mut().unwrap().description = "a\0b".to_owned();
        let error = create(bad).unwrap_err().to_string();
        for part in [
            "parent: is \"tenants/acme\"",
            "event_type_version_id: is \"a b\"",
            "event_type_version.schema/properties/total/type: ",
            "event_type_version.description: has control characters",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        let error = create(request("2", "")).unwrap_err().to_string();
        assert!(error.contains("event_type_version.schema: is required"), "{error}");
    }

    #[test]
    fn a_schema_that_fetches_or_is_too_long_is_refused() {
        for schema in [
            r#"{"$ref": "https://schemas.test/order"}"#.to_owned(),
            format!("{{\"title\": \"{}\"}}", "x".repeat(64 * 1024)),
            "no json".to_owned(),
        ] {
            let error = create(request("2", &schema)).unwrap_err().to_string();
            assert!(error.contains("event_type_version.schema"), "{error}");
        }
    }
}
