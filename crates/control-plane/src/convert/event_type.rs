//! Event types on the wire.

use super::{
    change::{self, split_name},
    etag, finish,
    mask::{Fields, Mask},
    page, single,
    value::{self, WireMeta},
};
use crate::{
    event_type::{
        CreateEventType, DeleteEventType, EventTypeView, ListEventTypes, UpdateEventType,
    },
    names::{EventTypeName, TenantName},
    page::Page,
    write::Upsert,
};
use turnbuckle_domain::{Compatibility, Error, TypeName, UnknownVersion, Violations};
use turnbuckle_proto::v1;

const COMPATIBILITY_FIELD: &str = "event_type.compatibility";
const UNKNOWN_VERSION_FIELD: &str = "event_type.unknown_version";

fn compatibility(number: i32) -> Result<Compatibility, String> {
    use v1::Compatibility as Wire;
    match Wire::try_from(number) {
        Ok(Wire::Unspecified) => Ok(Compatibility::default()),
        Ok(Wire::None) => Ok(Compatibility::None),
        Ok(Wire::Backward) => Ok(Compatibility::Backward),
        Ok(Wire::Full) => Ok(Compatibility::Full),
        Err(_) => Err(format!("is {number}, which names no compatibility")),
    }
}

const fn wire_compatibility(rule: Compatibility) -> v1::Compatibility {
    match rule {
        Compatibility::None => v1::Compatibility::None,
        Compatibility::Backward => v1::Compatibility::Backward,
        Compatibility::Full => v1::Compatibility::Full,
    }
}

fn unknown_version(number: i32) -> Result<UnknownVersion, String> {
    use v1::UnknownVersion as Wire;
    match Wire::try_from(number) {
        Ok(Wire::Unspecified) => Ok(UnknownVersion::default()),
        Ok(Wire::Allow) => Ok(UnknownVersion::Allow),
        Ok(Wire::Refuse) => Ok(UnknownVersion::Refuse),
        Err(_) => Err(format!("is {number}, which names no choice")),
    }
}

const fn wire_unknown_version(choice: UnknownVersion) -> v1::UnknownVersion {
    match choice {
        UnknownVersion::Allow => v1::UnknownVersion::Allow,
        UnknownVersion::Refuse => v1::UnknownVersion::Refuse,
    }
}

pub(crate) fn create(request: v1::CreateEventTypeRequest) -> Result<CreateEventType, Error> {
    let mut violations = Violations::new();
    let event_type = request.event_type.unwrap_or_default();
    let parent = violations.take("parent", TenantName::parse(&request.parent));
    let type_name = violations.take("event_type_id", TypeName::new(request.event_type_id));
    let description =
        violations.take("event_type.description", value::description(event_type.description));
    let compatibility =
        violations.take(COMPATIBILITY_FIELD, compatibility(event_type.compatibility));
    let unknown_version =
        violations.take(UNKNOWN_VERSION_FIELD, unknown_version(event_type.unknown_version));
    let labels = value::labels(&mut violations, "event_type.labels", event_type.labels);
    let command = || {
        Some(CreateEventType {
            tenant: parent?.0,
            type_name: type_name?,
            description: description?,
            compatibility: compatibility?,
            unknown_version: unknown_version?,
            labels: labels?,
        })
    };
    finish(violations, command())
}

pub(crate) fn get(request: v1::GetEventTypeRequest) -> Result<EventTypeName, Error> {
    single("name", EventTypeName::parse(&request.name))
}

pub(crate) fn list(request: v1::ListEventTypesRequest) -> Result<ListEventTypes, Error> {
    let mut violations = Violations::new();
    let parent = violations.take("parent", TenantName::parse(&request.parent));
    let scope = format!("{}/eventTypes", request.parent);
    let page = page(&mut violations, scope, request.page_size, &request.page_token);
    let command = || Some(ListEventTypes { tenant: parent?.0, page: page? });
    finish(violations, command())
}

pub(crate) fn update(request: v1::UpdateEventTypeRequest) -> Result<UpdateEventType, Error> {
    let mut violations = Violations::new();
    let Some(event_type) = request.event_type else {
        return Err(Error::invalid("event_type", "is required"));
    };
    let fields = Fields {
        changeable: &[
            ("description", !event_type.description.is_empty()),
            ("labels", !event_type.labels.is_empty()),
            ("compatibility", event_type.compatibility != 0),
            ("unknown_version", event_type.unknown_version != 0),
        ],
        output_only: &[],
        fixed: &[],
    };
    let mask = Mask::read(request.update_mask, &fields, &mut violations);
    let name = violations.take("event_type.name", EventTypeName::parse(&event_type.name));
    let etag = etag(&mut violations, "event_type.etag", &event_type.etag);
    let description = mask
        .has("description")
        .then(|| {
            let text = value::description(event_type.description);
            violations.take("event_type.description", text)
        })
        .flatten();
    let compatibility = mask
        .has("compatibility")
        .then(|| violations.take(COMPATIBILITY_FIELD, compatibility(event_type.compatibility)))
        .flatten();
    let unknown_version = mask
        .has("unknown_version")
        .then(|| {
            violations.take(UNKNOWN_VERSION_FIELD, unknown_version(event_type.unknown_version))
        })
        .flatten();
    let labels = mask
        .has("labels")
        .then(|| value::labels(&mut violations, "event_type.labels", event_type.labels))
        .flatten();
    let command = name.map(|name| UpdateEventType {
        name,
        etag,
        description,
        compatibility,
        unknown_version,
        labels,
    });
    finish(violations, command)
}

pub(crate) fn upsert(
    request: v1::UpdateEventTypeRequest,
) -> Result<Upsert<UpdateEventType, CreateEventType>, Error> {
    let wanted = request.allow_missing.then(|| request.event_type.clone().unwrap_or_default());
    let update = update(request)?;
    let create = wanted.map(|event_type| {
        let (parent, event_type_id) = split_name(&event_type.name);
        let event_type = Some(event_type);
        create(v1::CreateEventTypeRequest {
            parent,
            event_type_id,
            event_type,
            ..Default::default()
        })
    });
    change::upsert(update, create)
}

pub(crate) fn delete(request: v1::DeleteEventTypeRequest) -> Result<DeleteEventType, Error> {
    let mut violations = Violations::new();
    let name = violations.take("name", EventTypeName::parse(&request.name));
    let etag = etag(&mut violations, "etag", &request.etag);
    finish(violations, name.map(|name| DeleteEventType { name, etag }))
}

pub(crate) fn message(view: &EventTypeView) -> v1::EventType {
    let event_type = &view.event_type;
    let meta = WireMeta::from(&event_type.meta);
    let name = EventTypeName { tenant: view.tenant.clone(), id: event_type.type_name.clone() };
    v1::EventType {
        name: name.to_string(),
        uid: value::uid(&event_type.meta, event_type.id),
        description: event_type.description.clone(),
        labels: value::label_map(&event_type.labels),
        create_time: meta.create_time,
        update_time: meta.update_time,
        etag: meta.etag,
        revision: meta.revision,
        compatibility: wire_compatibility(event_type.compatibility).into(),
        unknown_version: wire_unknown_version(event_type.unknown_version).into(),
    }
}

pub(crate) fn messages(page: &Page<EventTypeView>) -> v1::ListEventTypesResponse {
    let (event_types, next_page_token) =
        super::page::messages(page, |view| view.event_type.type_name.as_str(), message);
    v1::ListEventTypesResponse { event_types, next_page_token }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_itself_is_the_id() {
        let request = |id: &str| v1::CreateEventTypeRequest {
            parent: "tenants/acme".to_owned(),
            event_type_id: id.to_owned(),
            event_type: None,
            ..Default::default()
        };
        assert_eq!(create(request("order.paid")).unwrap().type_name.as_str(), "order.paid");
        for bad in ["", "order.", "order.*", "a b"] {
            let error = create(request(bad)).unwrap_err().to_string();
            assert!(error.contains("event_type_id: is"), "{bad}: {error}");
        }
    }

    fn update_with(event_type: v1::EventType, paths: &[&str]) -> Result<UpdateEventType, Error> {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        update(v1::UpdateEventTypeRequest {
            event_type: Some(v1::EventType {
                name: "tenants/acme/eventTypes/order.paid".to_owned(),
                ..event_type
            }),
            update_mask: Some(prost_types::FieldMask { paths }),
            ..Default::default()
        })
    }

    #[test]
    fn both_policies_have_defaults_and_are_changed_when_they_are_meant() {
        let created = create(v1::CreateEventTypeRequest {
            parent: "tenants/acme".to_owned(),
            event_type_id: "order.paid".to_owned(),
            ..Default::default()
        });
        let created = created.unwrap();
        let policies = (created.compatibility, created.unknown_version);
        assert_eq!(policies, (Compatibility::Backward, UnknownVersion::Allow));

        let full = v1::EventType {
            compatibility: v1::Compatibility::Full.into(),
            unknown_version: v1::UnknownVersion::Refuse.into(),
            ..Default::default()
        };
        let policies = |paths: &[&str], event_type: &v1::EventType| {
            let update = update_with(event_type.clone(), paths).unwrap();
            (update.compatibility, update.unknown_version)
        };
        let both = (Some(Compatibility::Full), Some(UnknownVersion::Refuse));
        assert_eq!(policies(&[], &full), both);
        assert_eq!(policies(&["*"], &full), both);
        assert_eq!(policies(&["compatibility"], &full), (both.0, None));
        assert_eq!(policies(&["labels"], &full), (None, None));
        let back = (Some(Compatibility::Backward), Some(UnknownVersion::Allow));
        assert_eq!(policies(&["*"], &v1::EventType::default()), back);
    }

    #[test]
    fn policies_that_do_not_exist_are_refused() {
        let odd = v1::EventType { compatibility: 9, unknown_version: 9, ..Default::default() };
        let error = update_with(odd, &[]).unwrap_err().to_string();
        assert!(error.contains("event_type.compatibility: is 9"), "{error}");
        assert!(error.contains("event_type.unknown_version: is 9"), "{error}");
    }

    #[test]
    fn the_resource_of_an_update_is_required() {
        let error = update(v1::UpdateEventTypeRequest::default()).unwrap_err().to_string();
        assert!(error.contains("event_type: is required"), "{error}");
    }
}
