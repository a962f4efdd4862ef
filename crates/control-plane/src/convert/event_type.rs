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
use turnbuckle_domain::{Error, TypeName, Violations};
use turnbuckle_proto::v1;

pub(crate) fn create(request: v1::CreateEventTypeRequest) -> Result<CreateEventType, Error> {
    let mut violations = Violations::new();
    let event_type = request.event_type.unwrap_or_default();
    let parent = violations.take("parent", TenantName::parse(&request.parent));
    let type_name = violations.take("event_type_id", TypeName::new(request.event_type_id));
    let description =
        violations.take("event_type.description", value::description(event_type.description));
    let labels = value::labels(&mut violations, "event_type.labels", event_type.labels);
    let command = || {
        Some(CreateEventType {
            tenant: parent?.0,
            type_name: type_name?,
            description: description?,
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
    let labels = mask
        .has("labels")
        .then(|| value::labels(&mut violations, "event_type.labels", event_type.labels))
        .flatten();
    finish(violations, name.map(|name| UpdateEventType { name, etag, description, labels }))
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

    #[test]
    fn the_resource_of_an_update_is_required() {
        let error = update(v1::UpdateEventTypeRequest::default()).unwrap_err().to_string();
        assert!(error.contains("event_type: is required"), "{error}");
    }
}
