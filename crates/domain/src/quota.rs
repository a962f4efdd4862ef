//! How much of everything one tenant may have.

/// Most live configuration of one tenant. Every process holds all of it in memory and reads all of
/// it at its start, so one tenant must not be able to fill it (I6, I12). Rows are counted, and their
/// bytes: a row may be long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// Endpoints.
    pub endpoints: u32,
    /// Subscriptions.
    pub subscriptions: u32,
    /// Event types.
    pub event_types: u32,
    /// Retry policies.
    pub retry_policies: u32,
    /// Sources.
    pub sources: u32,
    /// Versions of all event types together.
    pub event_type_versions: u32,
    /// MiB of all of it together, as it is stored.
    pub config_mib: u32,
}

impl Quotas {
    /// Highest number that can be set: beyond it, one start reads for minutes.
    pub const MAX: u32 = 1_000_000;

    /// Most MiB that can be set: half of what a node takes in one snapshot of all tenants.
    pub const MAX_MIB: u32 = 1_024;

    /// Rows up to this long are bounded by their number and not weighed when they are written: all of
    /// them together are less than [`Quotas::DEFAULT`] lets a tenant have.
    pub const LONG_ROW: usize = 1_024;

    /// What a process loads within a second and holds in some ten megabytes.
    pub const DEFAULT: Self = Self {
        endpoints: 10_000,
        subscriptions: 20_000,
        event_types: 5_000,
        retry_policies: 1_000,
        sources: 1_000,
        event_type_versions: 10_000,
        config_mib: 64,
    };
}

impl Default for Quotas {
    fn default() -> Self {
        Self::DEFAULT
    }
}
