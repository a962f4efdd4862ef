//! How much of everything a tenant may have.

use turnbuckle_domain::Quotas;

const DEFAULTS: Quotas = Quotas::DEFAULT;

fn range() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(Quotas::MAX))
}

fn mib() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(Quotas::MAX_MIB))
}

/// Bounds of every tenant, 1 to 1,000,000 each; 1 to 1024 MiB. What is there already stays when one is lowered.
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
    /// Most versions of all event types of one tenant.
    #[arg(
        long, value_name = "N", value_parser = range(),
        default_value_t = DEFAULTS.event_type_versions, env = "TURNBUCKLE_MAX_EVENT_TYPE_VERSIONS"
    )]
    pub max_event_type_versions: u32,
    /// Most MiB of configuration of one tenant: schemas, headers, labels and all other texts.
    #[arg(
        long, value_name = "MIB", value_parser = mib(), default_value_t = DEFAULTS.config_mib,
        env = "TURNBUCKLE_MAX_CONFIG_MIB"
    )]
    pub max_config_mib: u32,
}

impl QuotaArgs {
    pub(super) const fn quotas(self) -> Quotas {
        Quotas {
            endpoints: self.max_endpoints,
            subscriptions: self.max_subscriptions,
            event_types: self.max_event_types,
            retry_policies: self.max_retry_policies,
            sources: self.max_sources,
            event_type_versions: self.max_event_type_versions,
            config_mib: self.max_config_mib,
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
            max_event_type_versions: DEFAULTS.event_type_versions,
            max_config_mib: DEFAULTS.config_mib,
        }
    }
}
