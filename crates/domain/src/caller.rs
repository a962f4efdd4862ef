//! Who calls, and what roles may do.

use crate::{Error, ResourceId};

/// One thing a caller may be allowed to do; the proto names one for each method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Create, change and delete tenants.
    TenantAdmin,
    /// Read configuration, never secrets.
    ConfigRead,
    /// Change endpoints, subscriptions, event types, retry policies.
    ConfigWrite,
    /// Stage, activate, rotate, roll back and revoke keys.
    KeyManage,
    /// Publish events.
    EventPublish,
    /// Read events, deliveries, attempts.
    DeliveryRead,
    /// Retry and cancel deliveries.
    DeliveryOperate,
    /// Take deliveries from pull endpoints.
    DeliveryConsume,
    /// Read the record of configuration changes.
    AuditRead,
    /// Make, list, change and revoke API tokens.
    TokenManage,
    /// Follow the configuration, sealed secrets included, and report what is in use.
    ConfigWatch,
    /// See which nodes there are, and by which configuration they work.
    NodeRead,
    /// Let a node apply what it holds back.
    NodeOperate,
    /// See secrets that are kept.
    SecretReveal,
    /// See and change which key-encryption key seals the secrets of all tenants.
    KeyringManage,
}

impl Permission {
    /// All permissions.
    pub const ALL: [Self; 15] = [
        Self::TenantAdmin,
        Self::ConfigRead,
        Self::ConfigWrite,
        Self::KeyManage,
        Self::EventPublish,
        Self::DeliveryRead,
        Self::DeliveryOperate,
        Self::DeliveryConsume,
        Self::AuditRead,
        Self::TokenManage,
        Self::ConfigWatch,
        Self::NodeRead,
        Self::NodeOperate,
        Self::SecretReveal,
        Self::KeyringManage,
    ];
}

/// A named set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Everything.
    Admin,
    /// Runs a tenant: configuration, keys, deliveries. No tenants.
    Operator,
    /// An internal service: publishes, and registers its own endpoints.
    Publisher,
    /// An internal service that receives: reads what is meant for it.
    Consumer,
    /// Reads.
    Viewer,
    /// Reads configuration and the record of its changes.
    Auditor,
    /// A data plane process.
    Node,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 7] = [
        Self::Admin,
        Self::Operator,
        Self::Publisher,
        Self::Consumer,
        Self::Viewer,
        Self::Auditor,
        Self::Node,
    ];

    /// The name used in tokens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::Publisher => "publisher",
            Self::Consumer => "consumer",
            Self::Viewer => "viewer",
            Self::Auditor => "auditor",
            Self::Node => "node",
        }
    }

    /// Reads the name used in tokens.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// Whether the role includes the permission.
    #[must_use]
    pub const fn allows(self, permission: Permission) -> bool {
        use Permission as P;
        match self {
            // People do not follow the configuration: sealed secrets are for nodes.
            Self::Admin => !matches!(permission, P::ConfigWatch),
            Self::Operator => !matches!(
                permission,
                P::TenantAdmin | P::ConfigWatch | P::SecretReveal | P::KeyringManage
            ),
            Self::Publisher => {
                matches!(
                    permission,
                    P::ConfigRead | P::ConfigWrite | P::EventPublish | P::DeliveryRead
                )
            }
            Self::Consumer => {
                matches!(permission, P::ConfigRead | P::DeliveryRead | P::DeliveryConsume)
            }
            Self::Viewer => matches!(permission, P::ConfigRead | P::DeliveryRead | P::NodeRead),
            Self::Auditor => matches!(permission, P::ConfigRead | P::AuditRead | P::NodeRead),
            Self::Node => matches!(permission, P::ConfigWatch),
        }
    }

    /// Whether this role may do everything that the other one may.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        Permission::ALL
            .into_iter()
            .all(|permission| self.allows(permission) || !other.allows(permission))
    }
}

/// Who calls: made by authentication, passed to every use case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who vouches for the subject: the issuer of its token, whose subjects are its own. Empty for API
    /// tokens, and where no token is needed.
    pub issuer: String,
    /// Subject of the token.
    pub subject: String,
    /// What it may do.
    pub role: Role,
    /// The one tenant it is bound to; none means every tenant.
    pub tenant: Option<ResourceId>,
}

impl Caller {
    /// Checks that the caller may do this at all.
    ///
    /// # Errors
    /// [`Error::PermissionDenied`].
    pub fn require(&self, permission: Permission) -> Result<(), Error> {
        if self.role.allows(permission) { Ok(()) } else { Err(Error::PermissionDenied) }
    }

    /// Checks that the caller may touch what belongs to all tenants.
    ///
    /// # Errors
    /// [`Error::PermissionDenied`] for a caller bound to one tenant.
    pub fn enter_all(&self) -> Result<(), Error> {
        if self.tenant.is_none() { Ok(()) } else { Err(Error::PermissionDenied) }
    }

    /// Checks that the caller may touch this tenant. Checked before existence, so that tenants
    /// cannot be probed.
    ///
    /// # Errors
    /// [`Error::PermissionDenied`].
    pub fn enter(&self, tenant: &ResourceId) -> Result<(), Error> {
        match &self.tenant {
            Some(own) if own != tenant => Err(Error::PermissionDenied),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks that the caller may touch what belongs to no tenant.
    ///
    /// # Errors
    /// [`Error::PermissionDenied`] for callers that are bound to one.
    pub const fn enter_platform(&self) -> Result<(), Error> {
        match self.tenant {
            Some(_) => Err(Error::PermissionDenied),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_covers_what_has_no_more_rights() {
        for role in Role::ALL {
            assert!(role.covers(role), "{role:?}");
            // Nodes follow sealed secrets, which people do not.
            assert_eq!(Role::Admin.covers(role), role != Role::Node, "{role:?}");
            assert_eq!(role.covers(Role::Admin), role == Role::Admin, "{role:?}");
        }
        assert!(Role::Operator.covers(Role::Publisher));
        assert!(Role::Operator.covers(Role::Viewer));
        // Viewers see nodes.
        assert!(!Role::Publisher.covers(Role::Viewer));
        assert!(!Role::Publisher.covers(Role::Auditor));
        assert!(!Role::Viewer.covers(Role::Publisher));
    }
}
