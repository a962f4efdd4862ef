//! TLS settings of all outgoing connections. Nothing here can be switched off by a tenant.

use super::policy::PolicyError;
use std::sync::Arc;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, TrustAnchor},
    },
};

/// Settings that trust public roots plus the operator's own; and these roots.
pub(super) fn connector(
    extra_roots: &[CertificateDer<'static>],
) -> Result<(TlsConnector, Vec<TrustAnchor<'static>>), PolicyError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for root in extra_roots {
        roots.add(root.clone()).map_err(|_| PolicyError::Certificate)?;
    }
    let anchors = roots.roots.clone();
    // The provider is named, so that no process-wide default decides.
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| PolicyError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((TlsConnector::from(Arc::new(config)), anchors))
}
