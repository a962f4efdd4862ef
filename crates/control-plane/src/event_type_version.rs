//! Use cases of versions of event types.

use crate::{
    Dependencies,
    by::By,
    names::{EventTypeName, EventTypeVersionName},
    page::{Page, PageRequest},
    repeat::gone,
    write::{Change, TRIES, named},
};
use std::sync::Arc;
use turnbuckle_domain::{
    Caller, Compatibility, Error, EventType, EventTypeVersion, EventTypeVersionId, Made,
    ResourceId, Revision, TenantId, TypeName, VersionName, VersionsSeen, Violations,
};
use turnbuckle_schema::{Schema, check_compatibility};

/// Where the schema stands in requests. A JSON pointer into it may follow.
pub(crate) const SCHEMA_FIELD: &str = "event_type_version.schema";

/// A version with the names of its tenant and event type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventTypeVersionView {
    pub(crate) tenant: ResourceId,
    pub(crate) event_type: TypeName,
    pub(crate) version: EventTypeVersion,
}

/// A version to be made.
#[derive(Debug)]
pub(crate) struct CreateEventTypeVersion {
    pub(crate) name: EventTypeVersionName,
    /// As it was sent.
    pub(crate) schema: String,
    /// The same, compiled.
    pub(crate) compiled: Schema,
    pub(crate) description: String,
    /// One that exists with the same schema is as good.
    pub(crate) allow_existing: bool,
}

/// Which versions to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListEventTypeVersions {
    pub(crate) event_type: EventTypeName,
    pub(crate) page: PageRequest,
}

/// A version to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeleteEventTypeVersion {
    pub(crate) name: EventTypeVersionName,
    pub(crate) etag: Option<Revision>,
}

/// What can be done with versions of event types.
pub(crate) struct EventTypeVersions(pub(crate) Arc<Dependencies>);

impl EventTypeVersions {
    pub(crate) async fn create(
        &self,
        by: &By,
        command: &CreateEventTypeVersion,
    ) -> Result<EventTypeVersionView, Error> {
        let tenant = self.0.enter(&by.caller, &command.name.event_type.tenant).await?.id;
        let again = |made| self.made(tenant, &command.name, made);
        self.0.once(by, Some(tenant), self.make(by, command), again).await
    }

    /// The version that an earlier call made, unless it is deleted since then.
    async fn made(
        &self,
        tenant: TenantId,
        name: &EventTypeVersionName,
        made: Made,
    ) -> Result<EventTypeVersionView, Error> {
        let store = &self.0.store;
        let owner = store.event_type(tenant, &name.event_type.id).await?;
        let owner = owner.ok_or_else(gone(name))?;
        let found = store.event_type_version(tenant, owner.id, &name.version).await?;
        let version = found.filter(|found| found.id.uuid() == made.id).ok_or_else(gone(name))?;
        self.0.propagation.applied(version.meta.revision).await;
        Ok(view(name.event_type.clone(), version))
    }

    async fn make(
        &self,
        by: &By,
        command: &CreateEventTypeVersion,
    ) -> Result<EventTypeVersionView, Error> {
        let mut tries = 1;
        let version = loop {
            match self.try_create(by, command).await {
                // Somebody else made a version, or changed the type: what was judged is no longer so.
                Err(Error::Stale { .. }) if tries < TRIES => tries += 1,
                done => break done.map_err(|error| of_type(error, &command.name))?,
            }
        };
        Ok(view(command.name.event_type.clone(), version))
    }

    async fn try_create(
        &self,
        by: &By,
        command: &CreateEventTypeVersion,
    ) -> Result<EventTypeVersion, Error> {
        let name = &command.name;
        let owner = self.owner(&by.caller, &name.event_type).await?;
        let store = &self.0.store;
        if let Some(known) = store.event_type_version(owner.tenant, owner.id, &name.version).await?
        {
            return match command.allow_existing && known.schema == command.schema {
                true => Ok(known),
                false => Err(Error::AlreadyExists { resource: name.to_string() }),
            };
        }
        let latest = store.latest_event_type_version(owner.tenant, owner.id).await?;
        if let Some(latest) = &latest {
            check_follows(owner.compatibility, latest, command)?;
        }
        let seen = VersionsSeen {
            event_type: owner.meta.revision,
            latest: latest.map(|latest| latest.id),
        };
        let version = EventTypeVersion {
            id: EventTypeVersionId::from_uuid(self.0.ids.uuid()),
            tenant: owner.tenant,
            event_type: owner.id,
            version: name.version.clone(),
            schema: command.schema.clone(),
            description: command.description.clone(),
            meta: self.0.fresh_meta(),
        };
        let write = store.create_event_type_version(version, seen, &by.change);
        self.0.create(by, &name.to_string(), write).await
    }

    pub(crate) async fn get(
        &self,
        caller: &Caller,
        name: &EventTypeVersionName,
    ) -> Result<EventTypeVersionView, Error> {
        Ok(view(name.event_type.clone(), self.read(caller, name).await?))
    }

    pub(crate) async fn list(
        &self,
        caller: &Caller,
        command: &ListEventTypeVersions,
    ) -> Result<Page<EventTypeVersionView>, Error> {
        let owner = self.owner(caller, &command.event_type).await?;
        let (after, limit) = (command.page.after.as_deref(), command.page.fetch());
        let store = &self.0.store;
        let rows = store.event_type_versions(owner.tenant, owner.id, after, limit).await?;
        let page = command.page.cut(rows, |row| row.version.as_str());
        Ok(page.filter_map(|version| Some(view(command.event_type.clone(), version))))
    }

    pub(crate) async fn delete(
        &self,
        by: &By,
        command: &DeleteEventTypeVersion,
    ) -> Result<(), Error> {
        let change = Change { resource: &command.name.to_string(), etag: command.etag };
        self.0
            .delete(
                &change,
                || self.read(&by.caller, &command.name),
                |version| async move {
                    let now = self.0.clock.now();
                    self.0.store.delete_event_type_version(&version, now, &by.change).await
                },
            )
            .await
    }

    async fn read(
        &self,
        caller: &Caller,
        name: &EventTypeVersionName,
    ) -> Result<EventTypeVersion, Error> {
        let owner = self.owner(caller, &name.event_type).await?;
        let store = &self.0.store;
        let found = store.event_type_version(owner.tenant, owner.id, &name.version).await?;
        found.ok_or_else(|| Error::NotFound { resource: name.to_string() })
    }

    async fn owner(&self, caller: &Caller, name: &EventTypeName) -> Result<EventType, Error> {
        let tenant = self.0.enter(caller, &name.tenant).await?;
        let found = self.0.store.event_type(tenant.id, &name.id).await?;
        found.ok_or_else(|| Error::NotFound { resource: name.to_string() })
    }
}

fn view(event_type: EventTypeName, version: EventTypeVersion) -> EventTypeVersionView {
    EventTypeVersionView { tenant: event_type.tenant, event_type: event_type.id, version }
}

/// What stands in the way is the type's, not the version's that is not there yet.
fn of_type(error: Error, name: &EventTypeVersionName) -> Error {
    match error {
        Error::Precondition { .. } | Error::Stale { .. } => {
            named(error, &name.event_type.to_string())
        }
        other => other,
    }
}

/// The latest version's schema is one that this release cannot read.
#[derive(Debug, thiserror::Error)]
#[error("the schema of version {version} cannot be read any more")]
struct Unreadable {
    version: VersionName,
    #[source]
    cause: turnbuckle_schema::SchemaError,
}

/// Refuses a version that breaks what the event type asks for; every break is named.
fn check_follows(
    rule: Compatibility,
    latest: &EventTypeVersion,
    command: &CreateEventTypeVersion,
) -> Result<(), Error> {
    let rule = match rule {
        Compatibility::None => return Ok(()),
        Compatibility::Backward => turnbuckle_schema::Compatibility::Backward,
        Compatibility::Full => turnbuckle_schema::Compatibility::Full,
    };
    let version = || latest.version.clone();
    let old = Schema::parse(latest.schema.as_bytes())
        .map_err(|cause| Error::internal(Unreadable { version: version(), cause }))?;
    let mut violations = Violations::new();
    for broken in check_compatibility(rule, &old, &command.compiled).err().unwrap_or_default() {
        let field = format!("{SCHEMA_FIELD}{}", broken.path);
        violations.add(field, message(&broken, &latest.version));
    }
    violations.finish()
}

fn message(broken: &turnbuckle_schema::Incompatibility, latest: &VersionName) -> String {
    use turnbuckle_schema::Direction;
    let reason = &broken.reason;
    match broken.direction {
        Direction::OldDataNewSchema => {
            format!("{reason}: data of version {latest} may be refused by this schema")
        }
        Direction::NewDataOldSchema => {
            format!("{reason}: data of this schema may be refused by version {latest}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::{EventTypeId, Meta, TenantId};

    const OLD: &str = r#"{ "type": "object", "additionalProperties": false,
        "properties": { "total": { "type": "number" }, "note": { "type": "string" } } }"#;

    fn latest(schema: &str) -> EventTypeVersion {
        let id = uuid_of("etv_00000000000000000000000000");
        EventTypeVersion {
            id,
            tenant: TenantId::from_uuid(id.uuid()),
            event_type: EventTypeId::from_uuid(id.uuid()),
            version: VersionName::new("1").unwrap(),
            schema: schema.to_owned(),
            description: String::new(),
            meta: Meta::default(),
        }
    }

    fn uuid_of(text: &str) -> EventTypeVersionId {
        text.parse().unwrap()
    }

    fn command(schema: &str) -> CreateEventTypeVersion {
        CreateEventTypeVersion {
            name: EventTypeVersionName::parse("tenants/acme/eventTypes/order.paid/versions/2")
                .unwrap(),
            schema: schema.to_owned(),
            compiled: Schema::parse(schema.as_bytes()).unwrap(),
            description: String::new(),
            allow_existing: false,
        }
    }

    fn fields(rule: Compatibility, new: &str) -> Vec<String> {
        match check_follows(rule, &latest(OLD), &command(new)) {
            Ok(()) => Vec::new(),
            Err(Error::Invalid(list)) => list.into_iter().map(|one| one.field).collect(),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_break_is_named_by_its_place_in_the_schema() {
        let narrower = r#"{ "type": "object", "additionalProperties": false, "required": ["total"],
            "properties": { "total": { "type": "integer" }, "note": { "type": "string" } } }"#;
        let broken = fields(Compatibility::Backward, narrower);
        assert!(broken.contains(&format!("{SCHEMA_FIELD}/properties/total/type")), "{broken:?}");
        assert!(broken.iter().any(|field| field.ends_with("schema/required")), "{broken:?}");
        assert_eq!(broken.len(), 2);
        assert_eq!(fields(Compatibility::None, narrower), [""; 0]);
    }

    #[test]
    fn backward_takes_a_new_optional_property_and_full_does_not() {
        let wider = r#"{ "type": "object", "additionalProperties": false, "properties":
            { "total": { "type": "number" }, "note": { "type": "string" }, "tip": {} } }"#;
        assert_eq!(fields(Compatibility::Backward, wider), [""; 0]);
        assert!(!fields(Compatibility::Full, wider).is_empty());
    }

    #[test]
    fn a_latest_schema_that_cannot_be_read_is_a_fault_of_ours() {
        let error = check_follows(Compatibility::Full, &latest("{"), &command("{}")).unwrap_err();
        assert_eq!(error.reason(), "INTERNAL");
    }
}
