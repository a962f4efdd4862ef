//! One endpoint with everything an attempt needs, prepared once per change.

use super::Signer;
use crate::{
    egress::{EgressGuard, Target},
    key_meter::KeyMeter,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use turnbuckle_domain::{
    AttemptOutcome, Decision, Endpoint, HttpTarget, KeyRing, Labels, Progress, RetryRule,
    SecretSealer, SignatureProfile, Timestamp, limits,
};
use turnbuckle_signing::{Profile, SignerOptions};

/// An endpoint as the engine uses it.
pub struct EndpointEntry {
    /// Its configuration.
    pub endpoint: Endpoint,
    /// The rules of its retry policy. None while the policy that it names is not known here, or was
    /// refused: then its deliveries wait, since another rule would give up earlier or later than what
    /// is configured.
    pub rule: Option<Arc<RetryRule>>,
    /// Where to dial; made when the first attempt needs it, or there is none.
    target: OnceLock<Option<Arc<Target>>>,
    guard: Arc<EgressGuard>,
    /// Its extra headers, ready to be copied.
    pub headers: HeaderMap,
    /// Time for one attempt.
    pub timeout: Duration,
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
        ring: Arc<KeyRing>,
        rule: Option<Arc<RetryRule>>,
        guard: Arc<EgressGuard>,
        sealer: Arc<dyn SecretSealer>,
        meter: &KeyMeter,
    ) -> Self {
        // Ten thousands of endpoints are held: what is for people only is left to the control plane.
        let endpoint =
            Endpoint { display_name: String::new(), labels: Labels::default(), ..endpoint };
        let http = endpoint.target.http();
        let counter = meter.ring(endpoint.tenant, endpoint.id, ring.revision);
        let profile = match endpoint.signature_profile {
            SignatureProfile::StandardWebhooks => Profile::StandardWebhooks,
            SignatureProfile::TimestampedHex => Profile::TimestampedHex,
            SignatureProfile::HubSha256 => Profile::HubSha256,
        };
        Self {
            target: OnceLock::new(),
            guard,
            headers: http.map(static_headers).unwrap_or_default(),
            timeout: http.map_or(limits::TIMEOUT_DEFAULT, |http| http.timeout),
            signer: Signer::new(ring, endpoint.tenant, endpoint.id, sealer, counter),
            signer_options: http
                .and_then(|http| SignerOptions::with_prefix(&http.header_prefix).ok())
                .unwrap_or_default(),
            profile,
            rule,
            endpoint,
        }
    }

    /// What follows an attempt. While the rule is not known nothing is given up for an answer, a number
    /// or a time that it may allow.
    pub(crate) fn decide(
        &self,
        progress: Progress,
        outcome: &AttemptOutcome,
        ended_at: Timestamp,
        random: f64,
    ) -> Decision {
        match &self.rule {
            Some(rule) => rule.decide(progress, outcome, ended_at, random),
            None => RetryRule::patient().decide(progress, outcome, ended_at, random),
        }
    }

    /// Where to dial; none when the egress guard refuses the URL, or consumers pull.
    #[must_use]
    pub fn target(&self) -> Option<&Arc<Target>> {
        let check = || {
            let http = self.endpoint.target.http()?;
            self.guard.check_url(&http.url).ok().map(Arc::new)
        };
        self.target.get_or_init(check).as_ref()
    }
}

/// Values were checked when they were written; one that no longer passes is left out, not sent broken.
fn static_headers(target: &HttpTarget) -> HeaderMap {
    let pairs = target.headers.iter();
    pairs
        .filter_map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value).ok()?))
        })
        .collect()
}
