//! Why a target is refused, and why a connection was not made.

use turnbuckle_domain::{AttemptOutcome, Phase, Unreachable};

/// The guard says no. One sentence each with the remedy; none repeats the URL, and all refused
/// addresses read alike so that answers do not map our network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// Not a URL, or a host no name server could know.
    #[error("the URL is malformed; give an absolute one such as https://example.com/hook")]
    Malformed,
    /// Another scheme.
    #[error("the URL's scheme is not supported; use https")]
    Scheme,
    /// Plain http is off.
    #[error("plain http is switched off here; use https")]
    PlainHttp,
    /// User name or password.
    #[error("the URL carries user information; put credentials into a custom header instead")]
    UserInfo,
    /// A port of another protocol.
    #[error(
        "the URL's port is not allowed; use 443, 80 or one from 1024 up that no other protocol owns"
    )]
    Port,
    /// A local or special name.
    #[error("the host is a local name; use a public one, or ask the operator to allow it")]
    Name,
    /// A refused address.
    #[error(
        "the host is not at a public address; use a public one, or ask the operator to allow its network"
    )]
    Address,
}

/// No connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// Refused; nothing was sent.
    #[error("blocked: {0}")]
    Blocked(Refusal),
    /// A phase took too long.
    #[error("no connection in time")]
    TimedOut(Phase),
    /// A phase failed.
    #[error("no connection")]
    Failed(Unreachable),
}

impl From<ConnectError> for AttemptOutcome {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Blocked(_) => Self::Blocked,
            ConnectError::TimedOut(phase) => Self::TimedOut { phase },
            ConnectError::Failed(cause) => Self::Unreachable { cause },
        }
    }
}
