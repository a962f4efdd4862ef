//! One endpoint with everything an attempt needs, prepared once per change.

use super::Signer;
use crate::{
    egress::{EgressGuard, Target},
    key_meter::KeyMeter,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use turnbuckle_domain::{Endpoint, KeyRing, RetryRule, SecretSealer, SignatureProfile};
use turnbuckle_signing::{Profile, SignerOptions};

/// An endpoint as the engine uses it.
pub struct EndpointEntry {
    /// Its configuration.
    pub endpoint: Endpoint,
    /// The rules of its retry policy.
    pub rule: Arc<RetryRule>,
    /// Where to dial; none when the egress guard refuses the URL.
    pub target: Option<Arc<Target>>,
    /// Its extra headers, ready to be copied.
    pub headers: HeaderMap,
    /// Its keys.
    pub signer: Signer,
    /// How it signs.
    pub profile: Profile,
    /// With which header names.
    pub signer_options: SignerOptions,
}

impl EndpointEntry {
    pub(crate) fn new(
        endpoint: Endpoint,
        ring: KeyRing,
        rule: Arc<RetryRule>,
        guard: &EgressGuard,
        sealer: Arc<dyn SecretSealer>,
        meter: &KeyMeter,
    ) -> Self {
        let counter = meter.ring(endpoint.tenant, endpoint.id, ring.revision);
        let profile = match endpoint.signature_profile {
            SignatureProfile::StandardWebhooks => Profile::StandardWebhooks,
            SignatureProfile::TimestampedHex => Profile::TimestampedHex,
            SignatureProfile::HubSha256 => Profile::HubSha256,
        };
        Self {
            target: guard.check_url(&endpoint.target.url).ok().map(Arc::new),
            headers: static_headers(&endpoint),
            signer: Signer::new(ring, endpoint.tenant, endpoint.id, sealer, counter),
            signer_options: SignerOptions::with_prefix(&endpoint.target.header_prefix)
                .unwrap_or_default(),
            profile,
            rule,
            endpoint,
        }
    }
}

/// Values were checked when they were written; one that no longer passes is left out, not sent broken.
fn static_headers(endpoint: &Endpoint) -> HeaderMap {
    let pairs = endpoint.target.headers.iter();
    pairs
        .filter_map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value).ok()?))
        })
        .collect()
}
