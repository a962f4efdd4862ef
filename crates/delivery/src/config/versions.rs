//! Versions of an event type, and the schemas that payloads of them follow.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};
use turnbuckle_domain::{EventTypeVersion, EventTypeVersionId, UnknownVersion};
use turnbuckle_schema::Schema;

/// The schema of one version. It is compiled when the first payload of that version comes, and
/// shared from then on: most versions of a catalogue are history.
struct VersionSchema {
    id: EventTypeVersionId,
    text: String,
    compiled: OnceLock<Option<Arc<Schema>>>,
    /// What the same version had before, should the text be one that cannot be compiled (I13).
    before: Option<Arc<Schema>>,
}

impl VersionSchema {
    fn new(version: EventTypeVersion, present: Option<&Self>) -> Self {
        // A version never changes, so there is nothing before: unless somebody touched the row.
        let before = present.and_then(|present| present.schema().cloned());
        let EventTypeVersion { id, schema: text, .. } = version;
        Self { id, text, compiled: OnceLock::new(), before }
    }

    /// The compiled schema; none when it cannot be compiled and never could.
    fn schema(&self) -> Option<&Arc<Schema>> {
        let compile = || match Schema::parse(self.text.as_bytes()) {
            Ok(schema) => Some(Arc::new(schema)),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                let kept = self.before.is_some();
                tracing::error!(error, version.id = %self.id, kept, "a schema cannot be used");
                self.before.clone()
            }
        };
        self.compiled.get_or_init(compile).as_ref()
    }
}

/// What an event's version means for its type.
pub enum VersionCheck {
    /// The payload must follow this schema.
    Schema(Arc<Schema>),
    /// There is no schema for it, and it is let through.
    Unchecked,
    /// There is no schema for it, and it is refused.
    Refused,
}

/// The versions of one event type and what becomes of others.
pub struct Versions {
    known: Arc<KnownVersions>,
    unknown: UnknownVersion,
}

impl Versions {
    /// None when every event of the type passes unchecked: then there is nothing to look up either.
    pub(super) fn of(known: Option<&Arc<KnownVersions>>, unknown: UnknownVersion) -> Option<Self> {
        let known = known.filter(|known| !known.0.is_empty());
        match (known, unknown) {
            (None, UnknownVersion::Allow) => None,
            (known, unknown) => Some(Self { known: known.cloned().unwrap_or_default(), unknown }),
        }
    }

    /// What the version of an event means. A version whose schema cannot be used here counts as
    /// unknown.
    #[must_use]
    pub fn check(&self, version: &str) -> VersionCheck {
        let schema = self.known.0.get(version).and_then(|known| known.schema());
        match (schema, self.unknown) {
            (Some(schema), _) => VersionCheck::Schema(Arc::clone(schema)),
            (None, UnknownVersion::Allow) => VersionCheck::Unchecked,
            (None, UnknownVersion::Refuse) => VersionCheck::Refused,
        }
    }
}

/// Live versions of one event type, by version.
#[derive(Clone, Default)]
pub(super) struct KnownVersions(HashMap<String, Arc<VersionSchema>>);

impl KnownVersions {
    /// Takes a version in. The same one, unchanged, keeps what was compiled of it.
    pub(super) fn put(&mut self, version: EventTypeVersion) {
        let present = self.0.get(version.version.as_str()).filter(|one| one.id == version.id);
        if present.is_some_and(|present| present.text == version.schema) {
            return;
        }
        let name = version.version.as_str().to_owned();
        let fresh = VersionSchema::new(version, present.map(Arc::as_ref));
        self.0.insert(name, Arc::new(fresh));
    }

    /// Takes a version out. Its name may have been taken anew: only this one goes.
    pub(super) fn remove(&mut self, version: EventTypeVersionId) {
        self.0.retain(|_, known| known.id != version);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::{EventTypeId, Meta, TenantId, VersionName};
    use uuid::Uuid;

    const OBJECT: &str = r#"{"type": "object"}"#;

    fn version(id: u128, name: &str, schema: &str) -> EventTypeVersion {
        EventTypeVersion {
            id: EventTypeVersionId::from_uuid(Uuid::from_u128(id)),
            tenant: TenantId::from_uuid(Uuid::nil()),
            event_type: EventTypeId::from_uuid(Uuid::nil()),
            version: VersionName::new(name).unwrap(),
            schema: schema.to_owned(),
            description: String::new(),
            meta: Meta::default(),
        }
    }

    fn verdict(known: &KnownVersions, unknown: UnknownVersion, name: &str) -> &'static str {
        let Some(versions) = Versions::of(Some(&Arc::new(known.clone())), unknown) else {
            return "nothing to look up";
        };
        match versions.check(name) {
            VersionCheck::Schema(schema) if schema.validate(b"{}").is_ok() => "takes objects",
            VersionCheck::Schema(_) => "takes no objects",
            VersionCheck::Unchecked => "unchecked",
            VersionCheck::Refused => "refused",
        }
    }

    #[test]
    fn a_type_without_versions_costs_nothing_unless_it_refuses() {
        let none = KnownVersions::default();
        assert_eq!(verdict(&none, UnknownVersion::Allow, "1"), "nothing to look up");
        assert_eq!(verdict(&none, UnknownVersion::Refuse, "1"), "refused");
        assert!(Versions::of(None, UnknownVersion::Allow).is_none());
    }

    #[test]
    fn the_types_choice_decides_for_unknown_versions_only() {
        let mut known = KnownVersions::default();
        known.put(version(1, "1", OBJECT));
        for (unknown, other) in
            [(UnknownVersion::Allow, "unchecked"), (UnknownVersion::Refuse, "refused")]
        {
            assert_eq!(verdict(&known, unknown, "1"), "takes objects");
            assert_eq!(verdict(&known, unknown, "2"), other);
        }
    }

    #[test]
    fn a_schema_that_cannot_be_used_keeps_the_last_good_one() {
        let mut known = KnownVersions::default();
        known.put(version(1, "1", OBJECT));
        for broken in ["{", r#"{"type": 7}"#, ""] {
            known.put(version(1, "1", broken));
            assert_eq!(verdict(&known, UnknownVersion::Refuse, "1"), "takes objects", "{broken}");
        }
        known.put(version(1, "1", r#"{"type": "array"}"#));
        assert_eq!(verdict(&known, UnknownVersion::Refuse, "1"), "takes no objects");
    }

    #[test]
    fn a_schema_that_never_could_be_used_counts_as_unknown_and_stops_no_other() {
        let mut known = KnownVersions::default();
        known.put(version(1, "1", "{"));
        known.put(version(2, "2", OBJECT));
        assert_eq!(verdict(&known, UnknownVersion::Allow, "1"), "unchecked");
        assert_eq!(verdict(&known, UnknownVersion::Refuse, "1"), "refused");
        assert_eq!(verdict(&known, UnknownVersion::Refuse, "2"), "takes objects");
        // Nothing is inherited from another version of that name.
        known.put(version(3, "2", "{"));
        assert_eq!(verdict(&known, UnknownVersion::Refuse, "2"), "refused");
    }

    #[test]
    fn what_was_compiled_is_shared_until_the_text_changes() {
        let mut known = KnownVersions::default();
        known.put(version(1, "1", OBJECT));
        let compiled = |known: &KnownVersions| Arc::clone(known.0["1"].schema().unwrap());
        let first = compiled(&known);
        known.put(version(1, "1", OBJECT));
        assert!(Arc::ptr_eq(&first, &compiled(&known.clone())));
        known.put(version(1, "1", "{}"));
        assert!(!Arc::ptr_eq(&first, &compiled(&known)));
    }

    #[test]
    fn a_late_removal_spares_the_next_one_of_that_name() {
        let mut known = KnownVersions::default();
        known.put(version(2, "1", OBJECT));
        known.remove(version(1, "1", OBJECT).id);
        assert!(!known.is_empty());
        known.remove(version(2, "1", OBJECT).id);
        assert!(known.is_empty());
    }
}
