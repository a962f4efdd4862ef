//! What requests for changes have in common: whether they are meant, why, and what they make when
//! there is nothing to change.

use crate::write::Upsert;
use turnbuckle_domain::Error;
use turnbuckle_proto::v1;

/// A request for a change.
pub(crate) trait ChangeRequest {
    /// Check everything and change nothing.
    fn validate_only(&self) -> bool {
        false
    }

    /// Why.
    fn reason(&self) -> &str {
        ""
    }
}

macro_rules! can_be_validated_only {
    ($($request:ident),* $(,)?) => {$(
        impl ChangeRequest for v1::$request {
            fn validate_only(&self) -> bool {
                self.validate_only
            }
        }
    )*};
}

can_be_validated_only!(
    CreateTenantRequest,
    UpdateTenantRequest,
    CreateApiTokenRequest,
    UpdateApiTokenRequest,
    CreateEventTypeRequest,
    UpdateEventTypeRequest,
    CreateEventTypeVersionRequest,
    CreateEndpointRequest,
    UpdateEndpointRequest,
    CreateSubscriptionRequest,
    UpdateSubscriptionRequest,
    CreateRetryPolicyRequest,
    UpdateRetryPolicyRequest,
    StageKeyRequest,
    RotateKeyRequest,
    CreateSourceRequest,
    UpdateSourceRequest,
    UndeleteEndpointRequest,
    UndeleteSourceRequest,
    UndeleteSubscriptionRequest,
    UndeleteRetryPolicyRequest,
    ActivateKeyRequest,
    RollbackKeyRequest,
    ResumeRotationRequest,
);

macro_rules! says_why {
    ($($request:ident),* $(,)?) => {$(
        impl ChangeRequest for v1::$request {
            fn reason(&self) -> &str {
                &self.reason
            }
        }
    )*};
}

says_why!(
    DisableEndpointRequest,
    DisableSourceRequest,
    RevokeApiTokenRequest,
    RevealKeyRequest,
    ReplayReceiptRequest
);

macro_rules! says_why_and_can_be_validated_only {
    ($($request:ident),* $(,)?) => {$(
        impl ChangeRequest for v1::$request {
            fn validate_only(&self) -> bool {
                self.validate_only
            }

            fn reason(&self) -> &str {
                &self.reason
            }
        }
    )*};
}

says_why_and_can_be_validated_only!(RevokeKeyRequest, PauseRotationRequest);

macro_rules! says_nothing_more {
    ($($request:ident),* $(,)?) => {$(
        impl ChangeRequest for v1::$request {}
    )*};
}

says_nothing_more!(
    DeleteTenantRequest,
    DeleteEventTypeRequest,
    DeleteEventTypeVersionRequest,
    DeleteEndpointRequest,
    EnableEndpointRequest,
    EnableSourceRequest,
    DeleteSubscriptionRequest,
    DeleteRetryPolicyRequest,
    DeleteSourceRequest,
    RotateIngestPathRequest,
    RewrapSecretsRequest,
    AcceptSnapshotRequest,
);

/// An update with what it makes when there is nothing to change. That part may be incomplete as long
/// as it is not needed, so what is wrong with it is kept and not told yet.
pub(super) fn upsert<U, C>(
    update: U,
    create: Option<Result<C, Error>>,
) -> Result<Upsert<U, C>, Error> {
    let create = match create {
        None => None,
        Some(Ok(command)) => Some(Ok(command)),
        Some(Err(Error::Invalid(violations))) => Some(Err(violations)),
        Some(Err(other)) => return Err(other),
    };
    Ok(Upsert { update, create })
}

/// Parent and id of a resource name that was parsed before.
pub(super) fn split_name(name: &str) -> (String, String) {
    let mut parts = name.rsplitn(3, '/');
    let id = parts.next().unwrap_or_default().to_owned();
    let parent = parts.nth(1).unwrap_or_default().to_owned();
    (parent, id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_its_parent_and_its_id() {
        let split = split_name("tenants/acme/eventTypes/order.paid");
        assert_eq!(split, ("tenants/acme".to_owned(), "order.paid".to_owned()));
        assert_eq!(split_name("x"), (String::new(), "x".to_owned()));
    }

    #[test]
    fn an_incomplete_creation_is_no_fault_until_it_is_needed() {
        let kept = upsert((), Some(Err::<(), _>(Error::invalid("a", "is required")))).unwrap();
        assert!(matches!(kept.create, Some(Err(list)) if list.len() == 1));
        assert!(upsert((), None::<Result<(), _>>).unwrap().create.is_none());
        assert!(upsert((), Some(Err::<(), _>(Error::internal("bug")))).is_err());
    }
}
