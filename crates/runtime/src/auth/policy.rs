//! What each method demands, read from the proto's own options.

use prost_reflect::{DescriptorPool, ExtensionDescriptor, Kind, MethodDescriptor, Value};
use std::collections::HashMap;
use turnbuckle_domain::Permission;

/// The package whose methods must all have a permission.
const PACKAGE: &str = "turnbuckle.v1";

/// The method option that holds it.
const OPTION: &str = "turnbuckle.v1.permission";

/// The proto's permissions cannot be enforced, so the server must not start.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The descriptors cannot be read.
    #[error("the API's descriptors cannot be read: {0}")]
    Descriptors(String),
    /// The option is not defined.
    #[error("the API's descriptors do not define the option {OPTION}")]
    NoOption,
    /// There is nothing to enforce: these are the wrong descriptors.
    #[error("the API's descriptors have no methods in {PACKAGE}")]
    NoMethods,
    /// A method says nothing about who may call it.
    #[error("method {0} has no permission option")]
    Missing(String),
    /// A method demands something that this server does not know.
    #[error("method {method} demands {permission}, which this server does not know")]
    Unknown {
        /// The method.
        method: String,
        /// The permission's name or number.
        permission: String,
    },
}

/// Permissions by request path.
pub(super) struct Policy(HashMap<String, Permission>);

impl Policy {
    pub(super) fn read(descriptors: &[u8]) -> Result<Self, PolicyError> {
        let pool = DescriptorPool::decode(descriptors)
            .map_err(|error| PolicyError::Descriptors(error.to_string()))?;
        let option = pool.get_extension_by_name(OPTION).ok_or(PolicyError::NoOption)?;
        let mut permissions = HashMap::new();
        for service in pool.services().filter(|service| service.package_name() == PACKAGE) {
            for method in service.methods() {
                let path = format!("/{}/{}", service.full_name(), method.name());
                permissions.insert(path, permission(&method, &option)?);
            }
        }
        if permissions.is_empty() { Err(PolicyError::NoMethods) } else { Ok(Self(permissions)) }
    }

    /// What the method at this path demands; none when there is no such method.
    pub(super) fn demand(&self, path: &str) -> Option<Permission> {
        self.0.get(path).copied()
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Permission)> {
        self.0.iter().map(|(path, permission)| (path.as_str(), *permission))
    }
}

fn permission(
    method: &MethodDescriptor,
    option: &ExtensionDescriptor,
) -> Result<Permission, PolicyError> {
    let options = method.options();
    let missing = || PolicyError::Missing(method.full_name().to_owned());
    let number = match options.get_extension(option).as_ref() {
        Value::EnumNumber(number) if options.has_extension(option) => *number,
        _ => return Err(missing()),
    };
    if number == 0 {
        return Err(missing());
    }
    let name = match option.kind() {
        Kind::Enum(kind) => kind.get_value(number).map(|value| value.name().to_owned()),
        _ => None,
    };
    let name = name.unwrap_or_else(|| format!("permission {number}"));
    by_name(&name).ok_or_else(|| PolicyError::Unknown {
        method: method.full_name().to_owned(),
        permission: name,
    })
}

/// The proto's names are the contract; their numbers are only how they travel.
fn by_name(name: &str) -> Option<Permission> {
    Some(match name {
        "PERMISSION_TENANT_ADMIN" => Permission::TenantAdmin,
        "PERMISSION_CONFIG_READ" => Permission::ConfigRead,
        "PERMISSION_CONFIG_WRITE" => Permission::ConfigWrite,
        "PERMISSION_KEY_MANAGE" => Permission::KeyManage,
        "PERMISSION_EVENT_PUBLISH" => Permission::EventPublish,
        "PERMISSION_DELIVERY_READ" => Permission::DeliveryRead,
        "PERMISSION_DELIVERY_OPERATE" => Permission::DeliveryOperate,
        "PERMISSION_DELIVERY_CONSUME" => Permission::DeliveryConsume,
        "PERMISSION_AUDIT_READ" => Permission::AuditRead,
        "PERMISSION_TOKEN_MANAGE" => Permission::TokenManage,
        "PERMISSION_CONFIG_WATCH" => Permission::ConfigWatch,
        "PERMISSION_NODE_READ" => Permission::NodeRead,
        "PERMISSION_NODE_OPERATE" => Permission::NodeOperate,
        "PERMISSION_SECRET_REVEAL" => Permission::SecretReveal,
        "PERMISSION_KEYRING_MANAGE" => Permission::KeyringManage,
        _ => return None,
    })
}
