//! Resource names: parsed once into types, so that nothing behind the door splits strings.

use crate::api_token::TokenOwner;
use std::fmt;
use turnbuckle_domain::{
    ApiToken, AuditId, EndpointId, KeyId, KeyOwner, ReceiptId, ResourceId, SourceId, TypeName,
    VersionName,
};
use uuid::Uuid;

/// Enough of a bad name to recognise it, and no more.
const SHOWN_CHARS: usize = 100;

/// The text is no resource name of the expected kind.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum InvalidName {
    /// It has other parts.
    #[error("is {text:?}; use the form {form}")]
    Form {
        /// The text, cut.
        text: String,
        /// What was expected.
        form: &'static str,
    },
    /// One of its ids has other characters.
    #[error("does not fit {form}: {part} {problem}")]
    Part {
        /// What was expected.
        form: &'static str,
        /// Which id.
        part: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

impl InvalidName {
    fn form(text: &str, form: &'static str) -> Self {
        Self::Form { text: text.chars().take(SHOWN_CHARS).collect(), form }
    }
}

/// Takes a name apart: the ids between the fixed collection words of its form.
fn ids<'a, const N: usize>(
    text: &'a str,
    form: &'static str,
) -> Result<[(&'static str, &'a str); N], InvalidName> {
    let mut found = [("", ""); N];
    let mut slots = found.iter_mut();
    let mut parts = text.split('/');
    for expected in form.split('/') {
        let part = parts.next().ok_or_else(|| InvalidName::form(text, form))?;
        let placeholder = expected.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let fits = match (placeholder, part) {
            (Some(_), "") => false,
            (Some(name), id) => slots.next().is_some_and(|slot| {
                *slot = (name, id);
                true
            }),
            (None, word) => word == expected,
        };
        if !fits {
            return Err(InvalidName::form(text, form));
        }
    }
    if parts.next().is_some() { Err(InvalidName::form(text, form)) } else { Ok(found) }
}

fn checked<T, E: fmt::Display>(
    form: &'static str,
    part: &'static str,
    result: Result<T, E>,
) -> Result<T, InvalidName> {
    result.map_err(|problem| InvalidName::Part { form, part, problem: problem.to_string() })
}

/// `tenants/{tenant}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TenantName(pub(crate) ResourceId);

impl TenantName {
    pub(crate) const FORM: &'static str = "tenants/{tenant}";

    pub(crate) fn parse(text: &str) -> Result<Self, InvalidName> {
        let [(part, id)] = ids(text, Self::FORM)?;
        checked(Self::FORM, part, ResourceId::new(id)).map(Self)
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tenants/{}", self.0)
    }
}

macro_rules! name_in_tenant {
    ($(#[$doc:meta])* $name:ident, $collection:literal, $form:literal, $id:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct $name {
            /// Whose it is.
            pub(crate) tenant: ResourceId,
            /// The last part.
            pub(crate) id: $id,
        }

        impl $name {
            pub(crate) const FORM: &'static str = $form;

            pub(crate) fn parse(text: &str) -> Result<Self, InvalidName> {
                let [(first, tenant), (second, id)] = ids(text, Self::FORM)?;
                Ok(Self {
                    tenant: checked(Self::FORM, first, ResourceId::new(tenant))?,
                    id: checked(Self::FORM, second, <$id>::new(id))?,
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "tenants/{}/{}/{}", self.tenant, $collection, self.id)
            }
        }
    };
}

name_in_tenant!(
    /// `tenants/{tenant}/eventTypes/{event_type}`.
    EventTypeName, "eventTypes", "tenants/{tenant}/eventTypes/{event_type}", TypeName
);
name_in_tenant!(
    /// `tenants/{tenant}/endpoints/{endpoint}`.
    EndpointName, "endpoints", "tenants/{tenant}/endpoints/{endpoint}", ResourceId
);
name_in_tenant!(
    /// `tenants/{tenant}/subscriptions/{subscription}`.
    SubscriptionName, "subscriptions", "tenants/{tenant}/subscriptions/{subscription}", ResourceId
);
name_in_tenant!(
    /// `tenants/{tenant}/retryPolicies/{retry_policy}`.
    RetryPolicyName, "retryPolicies", "tenants/{tenant}/retryPolicies/{retry_policy}", ResourceId
);
name_in_tenant!(
    /// `tenants/{tenant}/sources/{source}`.
    SourceName, "sources", "tenants/{tenant}/sources/{source}", ResourceId
);

/// `tenants/{tenant}/receipts/{receipt}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReceiptName {
    /// Whose it is.
    pub(crate) tenant: ResourceId,
    /// The last part.
    pub(crate) id: ReceiptId,
}

impl ReceiptName {
    pub(crate) const FORM: &'static str = "tenants/{tenant}/receipts/{receipt}";

    pub(crate) fn parse(text: &str) -> Result<Self, InvalidName> {
        let [(first, tenant), (second, id)] = ids(text, Self::FORM)?;
        Ok(Self {
            tenant: checked(Self::FORM, first, ResourceId::new(tenant))?,
            id: checked(Self::FORM, second, id.parse())?,
        })
    }
}

impl fmt::Display for ReceiptName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tenants/{}/receipts/{}", self.tenant, self.id)
    }
}

/// `sourcePresets/{preset}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourcePresetName(pub(crate) ResourceId);

impl SourcePresetName {
    pub(crate) const FORM: &'static str = "sourcePresets/{preset}";

    pub(crate) fn parse(text: &str) -> Result<Self, InvalidName> {
        let [(part, id)] = ids(text, Self::FORM)?;
        checked(Self::FORM, part, ResourceId::new(id)).map(Self)
    }
}

impl fmt::Display for SourcePresetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sourcePresets/{}", self.0)
    }
}

/// Who owns a key ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnerName {
    /// An endpoint, whose keys sign.
    Endpoint(EndpointName),
    /// A source, whose keys verify.
    Source(SourceName),
}

impl OwnerName {
    pub(crate) const FORM: &'static str =
        "tenants/{tenant}/endpoints/{endpoint} or tenants/{tenant}/sources/{source}";

    pub(crate) fn parse(text: &str) -> Result<Self, InvalidName> {
        match text.split('/').nth(2) {
            Some("endpoints") => EndpointName::parse(text).map(Self::Endpoint),
            Some("sources") => SourceName::parse(text).map(Self::Source),
            _ => Err(InvalidName::form(text, Self::FORM)),
        }
    }

    pub(crate) const fn tenant(&self) -> &ResourceId {
        match self {
            Self::Endpoint(name) => &name.tenant,
            Self::Source(name) => &name.tenant,
        }
    }

    /// The owner of this kind with that id.
    pub(crate) const fn with_id(&self, id: Uuid) -> KeyOwner {
        match self {
            Self::Endpoint(_) => KeyOwner::Endpoint(EndpointId::from_uuid(id)),
            Self::Source(_) => KeyOwner::Source(SourceId::from_uuid(id)),
        }
    }
}

impl fmt::Display for OwnerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint(name) => name.fmt(f),
            Self::Source(name) => name.fmt(f),
        }
    }
}

/// `tenants/{tenant}/eventTypes/{event_type}/versions/{version}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventTypeVersionName {
    /// Whose version it is.
    pub(crate) event_type: EventTypeName,
    /// The last part.
    pub(crate) version: VersionName,
}

impl EventTypeVersionName {
    pub(crate) const FORM: &'static str =
        "tenants/{tenant}/eventTypes/{event_type}/versions/{version}";

    pub(crate) fn parse(text: &str) -> Result<Self, InvalidName> {
        let [(first, tenant), (second, event_type), (third, version)] = ids(text, Self::FORM)?;
        Ok(Self {
            event_type: EventTypeName {
                tenant: checked(Self::FORM, first, ResourceId::new(tenant))?,
                id: checked(Self::FORM, second, TypeName::new(event_type))?,
            },
            version: checked(Self::FORM, third, VersionName::new(version))?,
        })
    }
}

impl fmt::Display for EventTypeVersionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/versions/{}", self.event_type, self.version)
    }
}

/// `tenants/{tenant}/apiTokens/{api_token}`, or `apiTokens/{api_token}` of no tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiTokenName {
    /// Whose it is; none for every tenant's.
    pub(crate) tenant: Option<ResourceId>,
    /// The last part.
    pub(crate) id: ResourceId,
}

impl ApiTokenName {
    pub(crate) const FORM: &'static str = "tenants/{tenant}/apiTokens/{api_token}";
    const PLATFORM_FORM: &'static str = "apiTokens/{api_token}";

    pub(crate) fn of(owner: &TokenOwner, id: ResourceId) -> Self {
        match owner {
            TokenOwner::Tenant(tenant) => Self { tenant: Some(tenant.clone()), id },
            TokenOwner::Platform => Self { tenant: None, id },
        }
    }

    pub(crate) fn owner(&self) -> TokenOwner {
        TokenOwner::of(self.tenant.clone().map(TenantName))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, InvalidName> {
        if text.starts_with("apiTokens/") {
            let form = Self::PLATFORM_FORM;
            let [(part, id)] = ids(text, form)?;
            return Ok(Self { tenant: None, id: checked(form, part, ResourceId::new(id))? });
        }
        let [(first, tenant), (second, id)] = ids(text, Self::FORM)?;
        Ok(Self {
            tenant: Some(checked(Self::FORM, first, ResourceId::new(tenant))?),
            id: checked(Self::FORM, second, ResourceId::new(id))?,
        })
    }
}

impl fmt::Display for ApiTokenName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ApiToken::name(self.tenant.as_ref(), &self.id))
    }
}

/// `tenants/{tenant}/auditHead`, or `auditHead` of the platform's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditHeadName(pub(crate) Option<ResourceId>);

impl AuditHeadName {
    pub(crate) const FORM: &'static str = "tenants/{tenant}/auditHead";

    pub(crate) fn parse(text: &str) -> Result<Self, InvalidName> {
        if text == "auditHead" {
            return Ok(Self(None));
        }
        let [(part, tenant)] = ids(text, Self::FORM)?;
        checked(Self::FORM, part, ResourceId::new(tenant)).map(|tenant| Self(Some(tenant)))
    }
}

impl fmt::Display for AuditHeadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(tenant) => write!(f, "tenants/{tenant}/auditHead"),
            None => f.write_str("auditHead"),
        }
    }
}

/// `tenants/{tenant}/auditEvents/{audit_event}`, or `auditEvents/{audit_event}` of the platform's
/// record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditEventName {
    /// Whose record it is in; none for the platform's.
    pub(crate) tenant: Option<ResourceId>,
    /// The last part.
    pub(crate) id: AuditId,
}

impl fmt::Display for AuditEventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tenant {
            Some(tenant) => write!(f, "tenants/{tenant}/auditEvents/{}", self.id),
            None => write!(f, "auditEvents/{}", self.id),
        }
    }
}

/// `tenants/{tenant}/endpoints/{endpoint}/keyRing`, or that of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRingName(pub(crate) OwnerName);

impl KeyRingName {
    pub(crate) const FORM: &'static str = "tenants/{tenant}/endpoints/{endpoint}/keyRing or \
                                           tenants/{tenant}/sources/{source}/keyRing";

    pub(crate) fn parse(text: &str) -> Result<Self, InvalidName> {
        let owner =
            text.strip_suffix("/keyRing").ok_or_else(|| InvalidName::form(text, Self::FORM))?;
        OwnerName::parse(owner).map(Self).map_err(|error| of_whole(error, text, Self::FORM))
    }
}

/// An owner's name of another shape is told as a whole name of another shape.
fn of_whole(error: InvalidName, text: &str, form: &'static str) -> InvalidName {
    match error {
        InvalidName::Form { .. } => InvalidName::form(text, form),
        InvalidName::Part { part, problem, .. } => InvalidName::Part { form, part, problem },
    }
}

impl fmt::Display for KeyRingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/keyRing", self.0)
    }
}

/// `tenants/{tenant}/endpoints/{endpoint}/keys/{key}`, or that of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyName {
    /// Whose ring it is on.
    pub(crate) owner: OwnerName,
    /// The last part.
    pub(crate) key: KeyId,
}

impl KeyName {
    pub(crate) const FORM: &'static str = "tenants/{tenant}/endpoints/{endpoint}/keys/{key} or \
                                           tenants/{tenant}/sources/{source}/keys/{key}";

    pub(crate) fn parse(text: &str) -> Result<Self, InvalidName> {
        let (owner, key) =
            text.rsplit_once("/keys/").ok_or_else(|| InvalidName::form(text, Self::FORM))?;
        let owner = OwnerName::parse(owner).map_err(|error| of_whole(error, text, Self::FORM))?;
        Ok(Self { owner, key: checked(Self::FORM, "key", key.parse())? })
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/keys/{}", self.owner, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        let tenant = "tenants/acme";
        assert_eq!(TenantName::parse(tenant).unwrap().to_string(), tenant);
        let event_type = "tenants/acme/eventTypes/order.paid";
        assert_eq!(EventTypeName::parse(event_type).unwrap().to_string(), event_type);
        let endpoint = "tenants/acme/endpoints/billing";
        assert_eq!(EndpointName::parse(endpoint).unwrap().to_string(), endpoint);
        let subscription = "tenants/acme/subscriptions/s_1";
        assert_eq!(SubscriptionName::parse(subscription).unwrap().to_string(), subscription);
        let policy = "tenants/acme/retryPolicies/patient";
        assert_eq!(RetryPolicyName::parse(policy).unwrap().to_string(), policy);
        let version = "tenants/acme/eventTypes/order.paid/versions/2.1";
        assert_eq!(EventTypeVersionName::parse(version).unwrap().to_string(), version);
        for token in ["tenants/acme/apiTokens/ci", "apiTokens/deploy"] {
            assert_eq!(ApiTokenName::parse(token).unwrap().to_string(), token);
        }
        for head in ["tenants/acme/auditHead", "auditHead"] {
            assert_eq!(AuditHeadName::parse(head).unwrap().to_string(), head);
        }
        let ring = "tenants/acme/endpoints/billing/keyRing";
        assert_eq!(KeyRingName::parse(ring).unwrap().to_string(), ring);
        let source = "tenants/acme/sources/github";
        assert_eq!(SourceName::parse(source).unwrap().to_string(), source);
        let preset = "sourcePresets/github";
        assert_eq!(SourcePresetName::parse(preset).unwrap().to_string(), preset);
        for ring in
            ["tenants/acme/endpoints/billing/keyRing", "tenants/acme/sources/github/keyRing"]
        {
            assert_eq!(KeyRingName::parse(ring).unwrap().to_string(), ring);
        }
    }

    #[test]
    fn a_server_made_key_id_is_read_back() {
        for owner in ["tenants/a/endpoints/b", "tenants/a/sources/b"] {
            let name = KeyName {
                owner: OwnerName::parse(owner).unwrap(),
                key: "key_0123456789abcdefghjkmnpqr0".parse::<KeyId>().unwrap(),
            };
            assert_eq!(KeyName::parse(&name.to_string()), Ok(name));
        }
    }

    #[test]
    fn rings_and_keys_have_an_owner_of_a_known_kind() {
        for bad in [
            "tenants/a/subscriptions/b/keyRing",
            "tenants/a/endpoints/keyRing",
            "endpoints/b/keyRing",
            "tenants/a/endpoints/b/c/keyRing",
            "tenants/a/sources/b",
        ] {
            let error = KeyRingName::parse(bad).unwrap_err();
            assert!(matches!(&error, InvalidName::Form { text, .. } if text == bad), "{error}");
        }
        let key = "tenants/a/subscriptions/b/keys/key_0123456789abcdefghjkmnpqr0";
        assert!(KeyName::parse(key).is_err());
    }

    #[test]
    fn other_shapes_are_refused_with_the_expected_form() {
        for bad in [
            "",
            "acme",
            "tenants",
            "tenants/",
            "tenants//endpoints/b",
            "tenants/acme/endpoints",
            "tenants/acme/endpoints/",
            "tenants/acme/endpoints/b/",
            "tenants/acme/endpoints/b/keyRing",
            "tenants/acme/subscriptions/b",
            "/tenants/acme/endpoints/b",
        ] {
            let error = EndpointName::parse(bad).unwrap_err();
            assert!(matches!(error, InvalidName::Form { .. }), "{bad}");
            assert!(error.to_string().contains("tenants/{tenant}/endpoints/{endpoint}"), "{bad}");
        }
    }

    #[test]
    fn a_bad_part_is_named() {
        let error = EndpointName::parse("tenants/Acme/endpoints/b").unwrap_err().to_string();
        assert!(error.contains("tenant is \"Acme\""), "{error}");
        let error = EndpointName::parse("tenants/acme/endpoints/b.c").unwrap_err().to_string();
        assert!(error.contains("endpoint is \"b.c\""), "{error}");
        let error = KeyName::parse("tenants/a/endpoints/b/keys/k").unwrap_err().to_string();
        assert!(error.contains("key not an id of the form key_"), "{error}");
    }

    #[test]
    fn long_names_are_cut_in_errors() {
        let error = TenantName::parse(&"x".repeat(10_000)).unwrap_err().to_string();
        assert!(error.len() < 200);
    }
}
