//! What is kept of deleted resources, and what a purge leaves.

use super::{
    cell::HiddenText,
    entity::{endpoint, retry_policy, source, subscription},
    table::Table,
};
use sea_orm::{
    prelude::Uuid,
    sea_query::{Expr, SimpleExpr},
};
use turnbuckle_domain::{
    EndpointId, RetryPolicyId, RetryRule, SourceId, SourceSettings, SubscriptionId,
};

/// What stands in the place of a purged URL: a name that leads nowhere, by its top-level domain.
const PURGED_URL: &str = "https://purged.invalid/";
/// What stands in the place of purged pairs.
const NO_PAIRS: &str = "{}";
/// What stands in the place of purged patterns.
const NO_PATTERNS: &str = "[]";

/// What stands in the place of a purged path: no source that lives has it.
const PURGED_TOKEN: &str = "00000000000000000000000000";

/// A kind of resource that stays for a while when it is deleted.
pub(super) trait Keeps: Table {
    const PURGED: Self::Column;

    /// The id as resources show it.
    fn uid(id: Uuid) -> String;

    /// What a purge writes over its settings.
    fn blank() -> Vec<(Self::Column, SimpleExpr)>;
}

impl Keeps for endpoint::Entity {
    const PURGED: Self::Column = endpoint::Column::PurgedAtUs;

    fn uid(id: Uuid) -> String {
        EndpointId::from_uuid(id).to_string()
    }

    fn blank() -> Vec<(Self::Column, SimpleExpr)> {
        vec![
            (endpoint::Column::DisplayName, Expr::value("")),
            (endpoint::Column::Url, Expr::value(HiddenText(PURGED_URL.to_owned()))),
            (endpoint::Column::Headers, Expr::value(HiddenText(NO_PAIRS.to_owned()))),
            (endpoint::Column::HeaderPrefix, Expr::value("")),
            // A reason is there as long as the state says so. Neither brings it back to life.
            (endpoint::Column::State, Expr::value("active")),
            (endpoint::Column::DisableReason, Expr::value(None::<String>)),
            (endpoint::Column::Labels, Expr::value(NO_PAIRS)),
        ]
    }
}

impl Keeps for subscription::Entity {
    const PURGED: Self::Column = subscription::Column::PurgedAtUs;

    fn uid(id: Uuid) -> String {
        SubscriptionId::from_uuid(id).to_string()
    }

    fn blank() -> Vec<(Self::Column, SimpleExpr)> {
        vec![
            (subscription::Column::Patterns, Expr::value(NO_PATTERNS)),
            (subscription::Column::Channels, Expr::value(None::<String>)),
            (subscription::Column::Filter, Expr::value(None::<String>)),
            (subscription::Column::Labels, Expr::value(NO_PAIRS)),
        ]
    }
}

impl Keeps for retry_policy::Entity {
    const PURGED: Self::Column = retry_policy::Column::PurgedAtUs;

    fn uid(id: Uuid) -> String {
        RetryPolicyId::from_uuid(id).to_string()
    }

    fn blank() -> Vec<(Self::Column, SimpleExpr)> {
        // The default rule always has this form.
        let rule = serde_json::to_string(&RetryRule::default()).unwrap_or_default();
        vec![
            (retry_policy::Column::Rule, Expr::value(rule)),
            (retry_policy::Column::Labels, Expr::value(NO_PAIRS)),
        ]
    }
}

impl Keeps for source::Entity {
    const PURGED: Self::Column = source::Column::PurgedAtUs;

    fn uid(id: Uuid) -> String {
        SourceId::from_uuid(id).to_string()
    }

    fn blank() -> Vec<(Self::Column, SimpleExpr)> {
        use source::Column;
        // Text and numbers only; what cannot be written is what a source without settings has.
        let settings = serde_json::to_string(&SourceSettings::default()).unwrap_or_default();
        vec![
            (Column::DisplayName, Expr::value("")),
            (Column::SchemeSettings, Expr::value(HiddenText(NO_PAIRS.to_owned()))),
            (Column::IngestToken, Expr::value(HiddenText(PURGED_TOKEN.to_owned()))),
            (Column::PreviousToken, Expr::value(None::<HiddenText>)),
            (Column::PreviousUntilUs, Expr::value(None::<i64>)),
            (Column::PublicUrl, Expr::value(None::<HiddenText>)),
            (Column::Settings, Expr::value(settings)),
            (Column::DisableReason, Expr::value(None::<String>)),
            (Column::Labels, Expr::value(NO_PAIRS)),
        ]
    }
}
