//! How much of everything one tenant may have.

/// Most live resources of one tenant. Every process holds all of them in memory and reads all of
/// them at its start, so one tenant must not be able to fill it (I6, I12).
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
}

impl Quotas {
    /// Highest number that can be set: beyond it, one start reads for minutes.
    pub const MAX: u32 = 1_000_000;

    /// What a process loads within a second and holds in some ten megabytes.
    pub const DEFAULT: Self = Self {
        endpoints: 10_000,
        subscriptions: 20_000,
        event_types: 5_000,
        retry_policies: 1_000,
        sources: 1_000,
    };
}

impl Default for Quotas {
    fn default() -> Self {
        Self::DEFAULT
    }
}
