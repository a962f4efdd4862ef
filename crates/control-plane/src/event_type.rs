//! Use cases of event types.

use crate::{
    Dependencies,
    by::By,
    names::EventTypeName,
    page::{Page, PageRequest},
    repeat::gone,
    write::{Change, Upsert, upsert},
};
use std::sync::Arc;
use turnbuckle_domain::{
    Caller, Compatibility, Error, EventType, EventTypeId, Labels, Made, ResourceId, Revision,
    Tenant, TypeName, UnknownVersion,
};

/// An event type with the name of its tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventTypeView {
    pub(crate) tenant: ResourceId,
    pub(crate) event_type: EventType,
}

/// An event type to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreateEventType {
    pub(crate) tenant: ResourceId,
    pub(crate) type_name: TypeName,
    pub(crate) description: String,
    pub(crate) compatibility: Compatibility,
    pub(crate) unknown_version: UnknownVersion,
    pub(crate) labels: Labels,
}

/// Which event types to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListEventTypes {
    pub(crate) tenant: ResourceId,
    pub(crate) page: PageRequest,
}

/// New values of an event type's fields; none keeps the old one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpdateEventType {
    pub(crate) name: EventTypeName,
    pub(crate) etag: Option<Revision>,
    pub(crate) description: Option<String>,
    pub(crate) compatibility: Option<Compatibility>,
    pub(crate) unknown_version: Option<UnknownVersion>,
    pub(crate) labels: Option<Labels>,
}

impl UpdateEventType {
    fn apply(&self, event_type: &mut EventType) {
        if let Some(description) = &self.description {
            event_type.description.clone_from(description);
        }
        event_type.compatibility = self.compatibility.unwrap_or(event_type.compatibility);
        event_type.unknown_version = self.unknown_version.unwrap_or(event_type.unknown_version);
        if let Some(labels) = &self.labels {
            event_type.labels.clone_from(labels);
        }
    }
}

/// An event type to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeleteEventType {
    pub(crate) name: EventTypeName,
    pub(crate) etag: Option<Revision>,
}

/// What can be done with event types.
pub(crate) struct EventTypes(pub(crate) Arc<Dependencies>);

impl EventTypes {
    pub(crate) async fn create(
        &self,
        by: &By,
        command: &CreateEventType,
    ) -> Result<EventTypeView, Error> {
        let tenant = self.0.enter(&by.caller, &command.tenant).await?;
        let again = |made| self.made(&tenant, command, made);
        self.0.once(by, Some(tenant.id), self.make(by, &tenant, command), again).await
    }

    async fn make(
        &self,
        by: &By,
        tenant: &Tenant,
        command: &CreateEventType,
    ) -> Result<EventTypeView, Error> {
        let name = EventTypeName { tenant: tenant.slug.clone(), id: command.type_name.clone() };
        let event_type = EventType {
            id: EventTypeId::from_uuid(self.0.ids.uuid()),
            tenant: tenant.id,
            type_name: command.type_name.clone(),
            description: command.description.clone(),
            compatibility: command.compatibility,
            unknown_version: command.unknown_version,
            labels: command.labels.clone(),
            meta: self.0.fresh_meta(),
        };
        let write = self.0.store.create_event_type(event_type, &by.change);
        let event_type = self.0.create(by, &name.to_string(), write).await?;
        Ok(EventTypeView { tenant: name.tenant, event_type })
    }

    async fn made(
        &self,
        tenant: &Tenant,
        command: &CreateEventType,
        made: Made,
    ) -> Result<EventTypeView, Error> {
        let id = EventTypeId::from_uuid(made.id);
        let name = EventTypeName { tenant: tenant.slug.clone(), id: command.type_name.clone() };
        let kept = self.0.store.kept_event_type(tenant.id, id).await?;
        let live = kept.filter(|kept| kept.deleted_at.is_none());
        let event_type = live.ok_or_else(gone(&name))?.value;
        self.0.propagation.applied(event_type.meta.revision).await;
        Ok(EventTypeView { tenant: name.tenant, event_type })
    }

    pub(crate) async fn get(
        &self,
        caller: &Caller,
        name: &EventTypeName,
    ) -> Result<EventTypeView, Error> {
        let event_type = self.read(caller, name).await?;
        Ok(EventTypeView { tenant: name.tenant.clone(), event_type })
    }

    pub(crate) async fn list(
        &self,
        caller: &Caller,
        command: &ListEventTypes,
    ) -> Result<Page<EventTypeView>, Error> {
        let tenant = self.0.enter(caller, &command.tenant).await?;
        let after = command.page.after.as_deref();
        let rows = self.0.store.event_types(tenant.id, after, command.page.fetch()).await?;
        let view = |event_type| Some(EventTypeView { tenant: tenant.slug.clone(), event_type });
        Ok(command.page.cut(rows, |row| row.type_name.as_str()).filter_map(view))
    }

    pub(crate) async fn update(
        &self,
        by: &By,
        command: &UpdateEventType,
    ) -> Result<EventTypeView, Error> {
        let change = Change { resource: &command.name.to_string(), etag: command.etag };
        let event_type = self
            .0
            .update(
                by,
                &change,
                || self.read(&by.caller, &command.name),
                |event_type| {
                    command.apply(event_type);
                    Ok(())
                },
                |event_type, seen| self.0.store.update_event_type(event_type, seen, &by.change),
            )
            .await?;
        Ok(EventTypeView { tenant: command.name.tenant.clone(), event_type })
    }

    pub(crate) async fn upsert(
        &self,
        by: &By,
        command: &Upsert<UpdateEventType, CreateEventType>,
    ) -> Result<EventTypeView, Error> {
        let Upsert { update, create } = command;
        let change = Change { resource: &update.name.to_string(), etag: update.etag };
        let present = || self.update(by, update);
        upsert(&change, create.as_ref(), present, |create| self.create(by, create)).await
    }

    pub(crate) async fn delete(&self, by: &By, command: &DeleteEventType) -> Result<(), Error> {
        let change = Change { resource: &command.name.to_string(), etag: command.etag };
        self.0
            .delete(
                &change,
                || self.read(&by.caller, &command.name),
                |event_type| async move {
                    self.0
                        .store
                        .delete_event_type(&event_type, self.0.clock.now(), &by.change)
                        .await
                },
            )
            .await
    }

    async fn read(&self, caller: &Caller, name: &EventTypeName) -> Result<EventType, Error> {
        let tenant = self.0.enter(caller, &name.tenant).await?;
        let found = self.0.store.event_type(tenant.id, &name.id).await?;
        found.ok_or_else(|| Error::NotFound { resource: name.to_string() })
    }
}
