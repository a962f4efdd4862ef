//! What can be kept in files: one row per kind, everything else follows from the contract.

/// A kind of resource that files can declare.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kind {
    /// What `kind:` says, and the name of the message.
    pub(super) name: &'static str,
    /// The service that has its methods.
    pub(super) service: &'static str,
    /// Its collection in resource names.
    pub(super) segment: &'static str,
    /// Its field in requests.
    pub(super) field: &'static str,
    /// Fields, by their JSON names, that others own: verbs of their own, or the server.
    pub(super) not_declared: &'static [&'static str],
    /// Fields, by their JSON names, that hold the name of another resource, with its collection: files
    /// may use the short form.
    pub(super) references: &'static [(&'static str, &'static str)],
}

/// Fields of every resource that the server writes.
pub(super) const OUTPUT_ONLY: [&str; 8] =
    ["name", "uid", "createTime", "updateTime", "deleteTime", "purgeTime", "etag", "revision"];

/// In the order in which they are made: what is referred to comes before what refers to it.
pub(super) const KINDS: [Kind; 6] = [
    Kind {
        name: "Tenant",
        service: "Tenants",
        segment: "tenants",
        field: "tenant",
        not_declared: &[],
        references: &[],
    },
    Kind {
        name: "EventType",
        service: "EventTypes",
        segment: "eventTypes",
        field: "event_type",
        not_declared: &[],
        references: &[],
    },
    Kind {
        name: "RetryPolicy",
        service: "RetryPolicies",
        segment: "retryPolicies",
        field: "retry_policy",
        not_declared: &["version"],
        references: &[],
    },
    Kind {
        name: "Source",
        service: "Sources",
        segment: "sources",
        field: "source",
        not_declared: &[
            "ingestPath",
            "previousIngestPath",
            "previousIngestPathExpireTime",
            "weaknesses",
            "verificationSecret",
            "state",
            "disableReason",
        ],
        references: &[],
    },
    Kind {
        name: "Endpoint",
        service: "Endpoints",
        segment: "endpoints",
        field: "endpoint",
        not_declared: &["state", "disableReason", "disableTime", "signingSecret"],
        references: &[("retryPolicy", "retryPolicies")],
    },
    Kind {
        name: "Subscription",
        service: "Subscriptions",
        segment: "subscriptions",
        field: "subscription",
        not_declared: &[],
        references: &[("endpoint", "endpoints")],
    },
];

impl Kind {
    /// The kind of that name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Tenants stand at the top; everything else belongs to one.
    pub(super) fn is_tenant(&self) -> bool {
        self.segment == "tenants"
    }

    /// Place in the order of making.
    pub(super) fn rank(&self) -> usize {
        KINDS.iter().position(|kind| kind.name == self.name).unwrap_or(KINDS.len())
    }

    /// Whether files declare this field of it.
    pub(super) fn declares(&self, json_name: &str) -> bool {
        !OUTPUT_ONLY.contains(&json_name) && !self.not_declared.contains(&json_name)
    }
}
