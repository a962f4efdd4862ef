//! The egress guard: where we may send, and the only way to open a connection there (I8).
//!
//! A URL is judged twice. [`EgressGuard::check_url`] judges what can be known without the network,
//! at every write and whenever an endpoint is loaded; [`EgressGuard::connect`] resolves the name
//! itself, judges every answer, and dials a judged address, so no second look-up can differ.

mod address;
mod dial;
mod name;
mod policy;
mod refusal;
mod resolver;
mod stream;
mod target;
mod tls;

#[cfg(test)]
pub(crate) mod tests;

pub use self::{
    dial::{CONNECT_TIMEOUT, DNS_TIMEOUT, TLS_TIMEOUT},
    name::AllowedName,
    policy::{EgressPolicy, PolicyError},
    refusal::{ConnectError, Refusal},
    resolver::{Resolver, SystemResolver},
    stream::Stream,
    target::{Scheme, Target},
};

use self::address::AddressRules;
use std::{net::IpAddr, sync::Arc};
use tokio_rustls::{TlsConnector, rustls::pki_types::TrustAnchor};
use turnbuckle_domain::TargetPolicy;

/// Judges targets and opens connections to them.
pub struct EgressGuard {
    addresses: AddressRules,
    names: Vec<AllowedName>,
    allow_plain_http: bool,
    resolver: Arc<dyn Resolver>,
    tls: TlsConnector,
    anchors: Vec<TrustAnchor<'static>>,
}

impl EgressGuard {
    /// A guard that follows the policy and resolves names with `resolver`.
    ///
    /// # Errors
    /// When an extra certificate authority is not a certificate.
    pub fn new(policy: EgressPolicy, resolver: Arc<dyn Resolver>) -> Result<Self, PolicyError> {
        let (tls, anchors) = tls::connector(&policy.extra_roots)?;
        Ok(Self {
            addresses: AddressRules::new(policy.allow, policy.deny, policy.nat64),
            names: policy.allow_names,
            allow_plain_http: policy.allow_plain_http,
            resolver,
            tls,
            anchors,
        })
    }

    /// Who may issue certificates: the public roots and the operator's own.
    #[must_use]
    pub fn trust_anchors(&self) -> &[TrustAnchor<'static>] {
        &self.anchors
    }

    /// Judges a URL by everything that needs no network, and keeps what a sender needs of it.
    ///
    /// # Errors
    /// When the URL is refused.
    pub fn check_url(&self, url: &str) -> Result<Target, Refusal> {
        target::parse(self, url)
    }

    /// Judges all addresses of a name. One refused address refuses the name: mixed answers are an
    /// attack or a mistake, and picking the good ones would hide both.
    ///
    /// # Errors
    /// When an address is refused.
    pub fn judge_answers(&self, answers: &[IpAddr]) -> Result<Vec<IpAddr>, Refusal> {
        answers
            .iter()
            .map(|address| self.addresses.judge(*address).ok_or(Refusal::Address))
            .collect()
    }
}

impl TargetPolicy for EgressGuard {
    fn check_url(&self, url: &str) -> Result<(), String> {
        Self::check_url(self, url).map(drop).map_err(|refusal| refusal.to_string())
    }
}
