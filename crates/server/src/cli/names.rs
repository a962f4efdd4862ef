//! Resource names: short ones become full ones.

use super::error::Usage;

/// What a name is of, by its segment in full names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collection {
    EventTypes,
    Endpoints,
    Subscriptions,
    RetryPolicies,
    Events,
    Deliveries,
    Sources,
    Receipts,
    Replays,
}

impl Collection {
    const fn segment(self) -> &'static str {
        match self {
            Self::EventTypes => "eventTypes",
            Self::Endpoints => "endpoints",
            Self::Subscriptions => "subscriptions",
            Self::RetryPolicies => "retryPolicies",
            Self::Events => "events",
            Self::Deliveries => "deliveries",
            Self::Sources => "sources",
            Self::Receipts => "receipts",
            Self::Replays => "replays",
        }
    }

    /// The full name of what was given short (`orders-hook`) or full
    /// (`tenants/acme/endpoints/orders-hook`).
    pub(crate) fn name(self, parent: &str, given: &str) -> Result<String, Usage> {
        full(self.segment(), parent, given)
    }
}

/// The full name of what was given short or full, in the collection of that segment.
pub(crate) fn full(segment: &str, parent: &str, given: &str) -> Result<String, Usage> {
    let parts: Vec<&str> = given.split('/').collect();
    match parts.as_slice() {
        [id] if !id.is_empty() => Ok(format!("{parent}/{segment}/{id}")),
        [found, id] if *found == segment && !id.is_empty() => {
            Ok(format!("{parent}/{segment}/{id}"))
        }
        ["tenants", tenant, found, id]
            if *found == segment && !tenant.is_empty() && !id.is_empty() =>
        {
            Ok(given.to_owned())
        }
        _ => Err(Usage(format!(
            "{given:?} is no name; use the last part alone or tenants/TENANT/{segment}/ID"
        ))),
    }
}

/// The full name of a tenant given short (`acme`) or full (`tenants/acme`).
pub(crate) fn tenant(given: &str) -> Result<String, Usage> {
    let id = given.strip_prefix("tenants/").unwrap_or(given);
    if id.is_empty() || id.contains('/') {
        return Err(Usage(format!("{given:?} is no tenant; use its id, such as acme")));
    }
    Ok(format!("tenants/{id}"))
}

/// The full name of a key, given short or full, of an endpoint or source whose full name is known.
pub(crate) fn key(owner: &str, given: &str) -> Result<String, Usage> {
    let prefix = format!("{owner}/keys/");
    let id = given.strip_prefix(&prefix).unwrap_or(given);
    if id.is_empty() || id.contains('/') {
        return Err(Usage(format!(
            "{given:?} is no key of {owner}; use an id that `turnbuckle key status` shows"
        )));
    }
    Ok(format!("{prefix}{id}"))
}

/// The full name of a version, given short or full, of an event type whose full name is known.
pub(crate) fn version(event_type: &str, given: &str) -> Result<String, Usage> {
    let prefix = format!("{event_type}/versions/");
    let id = given.strip_prefix(&prefix).unwrap_or(given);
    if id.is_empty() || id.contains('/') {
        return Err(Usage(format!(
            "{given:?} is no version of {event_type}; use one that `turnbuckle event-type version list` shows"
        )));
    }
    Ok(format!("{prefix}{id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_full_names_mean_the_same() {
        let full = "tenants/acme/endpoints/orders-hook";
        for given in ["orders-hook", "endpoints/orders-hook", full] {
            let name = Collection::Endpoints.name("tenants/acme", given).unwrap();
            assert_eq!(name, full, "{given}");
        }
    }

    #[test]
    fn a_full_name_keeps_its_own_tenant() {
        let name = Collection::Endpoints.name("tenants/acme", "tenants/other/endpoints/x");
        assert_eq!(name.unwrap(), "tenants/other/endpoints/x");
    }

    #[test]
    fn names_of_other_collections_and_broken_ones_are_refused() {
        for given in [
            "",
            "/",
            "endpoints/",
            "tenants/acme",
            "tenants//endpoints/x",
            "a/b",
            "tenants/acme/subscriptions/x",
            "tenants/acme/endpoints/x/keys/y",
        ] {
            assert!(Collection::Endpoints.name("tenants/acme", given).is_err(), "{given}");
        }
    }

    #[test]
    fn event_types_keep_their_dots() {
        let name = Collection::EventTypes.name("tenants/acme", "order.paid").unwrap();
        assert_eq!(name, "tenants/acme/eventTypes/order.paid");
    }

    #[test]
    fn versions_stand_below_their_event_type() {
        let event_type = "tenants/acme/eventTypes/order.paid";
        let full = "tenants/acme/eventTypes/order.paid/versions/2.1";
        assert_eq!(version(event_type, "2.1").unwrap(), full);
        assert_eq!(version(event_type, full).unwrap(), full);
        for bad in ["", "a/b", "tenants/acme/eventTypes/order.lost/versions/1"] {
            assert!(version(event_type, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tenants_and_keys_expand_too() {
        assert_eq!(tenant("acme").unwrap(), "tenants/acme");
        assert_eq!(tenant("tenants/acme").unwrap(), "tenants/acme");
        assert!(tenant("tenants/a/endpoints/b").is_err());
        let endpoint = "tenants/acme/endpoints/x";
        assert_eq!(key(endpoint, "k1").unwrap(), "tenants/acme/endpoints/x/keys/k1");
        assert_eq!(
            key(endpoint, "tenants/acme/endpoints/x/keys/k1").unwrap(),
            "tenants/acme/endpoints/x/keys/k1"
        );
        assert!(key(endpoint, "tenants/acme/endpoints/y/keys/k1").is_err());
    }
}
