//! What the operator sets.

use super::name::AllowedName;
use ipnet::IpNet;
use std::net::IpAddr;
use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject};

/// A setting makes no sense. Said to the operator at start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Not a network.
    #[error("`{0}` is not a network: write it like 10.0.0.0/8, fd00::/8 or 127.0.0.1")]
    Network(String),
    /// Not a host name.
    #[error("`{0}` is not a host name: write it like receiver or .svc.cluster.local")]
    Name(String),
    /// Not a certificate.
    #[error(
        "an extra certificate authority is not a certificate: give PEM with CERTIFICATE blocks"
    )]
    Certificate,
    /// The TLS library refuses its own defaults.
    #[error("TLS cannot be set up")]
    Tls,
}

/// The operator's rules. Tenants never reach these.
#[derive(Debug, Clone)]
pub struct EgressPolicy {
    /// Networks open although they are not public. Metadata addresses stay shut unless named
    /// exactly (/32 or /128).
    pub allow: Vec<IpNet>,
    /// Networks shut whatever else says: own pods, services, nodes, own public addresses.
    pub deny: Vec<IpNet>,
    /// Names open although they are single-label or special. Their addresses are judged still.
    pub allow_names: Vec<AllowedName>,
    /// Whether plain http may leave for targets that the operator did not open.
    pub allow_plain_http: bool,
    /// Whether the network translates `64:ff9b::/96` to IPv4.
    pub nat64: bool,
    /// Certificate authorities trusted besides the public ones.
    pub extra_roots: Vec<CertificateDer<'static>>,
}

impl Default for EgressPolicy {
    /// Public addresses only, plain http included.
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            deny: Vec::new(),
            allow_names: Vec::new(),
            allow_plain_http: true,
            nat64: false,
            extra_roots: Vec::new(),
        }
    }
}

impl EgressPolicy {
    /// Parses networks, or single addresses.
    ///
    /// # Errors
    /// Names the first that is neither.
    pub fn networks<S: AsRef<str>>(texts: &[S]) -> Result<Vec<IpNet>, PolicyError> {
        texts.iter().map(|text| network(text.as_ref())).collect()
    }

    /// Parses certificates from PEM.
    ///
    /// # Errors
    /// When a block is broken or there is none.
    pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PolicyError> {
        let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|_| PolicyError::Certificate)?;
        if found.is_empty() { Err(PolicyError::Certificate) } else { Ok(found) }
    }
}

fn network(text: &str) -> Result<IpNet, PolicyError> {
    let trimmed = text.trim();
    trimmed
        .parse::<IpNet>()
        .or_else(|_| trimmed.parse::<IpAddr>().map(IpNet::from))
        .map(|network| network.trunc())
        .map_err(|_| PolicyError::Network(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_parsed_or_named_in_the_error() {
        let parsed = EgressPolicy::networks(&["127.0.0.0/8", " ::1 ", "10.9.9.9/8"]).unwrap();
        let expected: Vec<IpNet> =
            ["127.0.0.0/8", "::1/128", "10.0.0.0/8"].map(|net| net.parse().unwrap()).into();
        assert_eq!(parsed, expected);
        for wrong in ["", "10.0.0.0/33", "localhost", "10.0.0/8"] {
            let error = EgressPolicy::networks(&[wrong]).unwrap_err();
            assert_eq!(error, PolicyError::Network(wrong.to_owned()));
        }
    }

    #[test]
    fn text_without_a_certificate_is_refused() {
        assert_eq!(EgressPolicy::certificates(b"hello"), Err(PolicyError::Certificate));
    }
}
