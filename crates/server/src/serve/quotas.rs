//! How much of everything a tenant may have.

use turnbuckle_domain::Quotas;

const DEFAULTS: Quotas = Quotas::DEFAULT;

fn range() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(Quotas::MAX))
}

/// Bounds of every tenant, 1 to 1,000,000 each. What is there already stays when one is lowered.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct QuotaArgs {
    /// Most endpoints of one tenant.
    #[arg(
        long, value_name = "N", value_parser = range(), default_value_t = DEFAULTS.endpoints,
        env = "TURNBUCKLE_MAX_ENDPOINTS"
    )]
    pub max_endpoints: u32,
    /// Most subscriptions of one tenant.
    #[arg(
        long, value_name = "N", value_parser = range(), default_value_t = DEFAULTS.subscriptions,
        env = "TURNBUCKLE_MAX_SUBSCRIPTIONS"
    )]
    pub max_subscriptions: u32,
    /// Most event types of one tenant.
    #[arg(
        long, value_name = "N", value_parser = range(), default_value_t = DEFAULTS.event_types,
        env = "TURNBUCKLE_MAX_EVENT_TYPES"
    )]
    pub max_event_types: u32,
    /// Most retry policies of one tenant.
    #[arg(
        long, value_name = "N", value_parser = range(), default_value_t = DEFAULTS.retry_policies,
        env = "TURNBUCKLE_MAX_RETRY_POLICIES"
    )]
    pub max_retry_policies: u32,
    /// Most sources of one tenant.
    #[arg(
        long, value_name = "N", value_parser = range(), default_value_t = DEFAULTS.sources,
        env = "TURNBUCKLE_MAX_SOURCES"
    )]
    pub max_sources: u32,
}

impl QuotaArgs {
    pub(super) const fn quotas(self) -> Quotas {
        Quotas {
            endpoints: self.max_endpoints,
            subscriptions: self.max_subscriptions,
            event_types: self.max_event_types,
            retry_policies: self.max_retry_policies,
            sources: self.max_sources,
        }
    }
}

impl Default for QuotaArgs {
    fn default() -> Self {
        Self {
            max_endpoints: DEFAULTS.endpoints,
            max_subscriptions: DEFAULTS.subscriptions,
            max_event_types: DEFAULTS.event_types,
            max_retry_policies: DEFAULTS.retry_policies,
            max_sources: DEFAULTS.sources,
        }
    }
}
