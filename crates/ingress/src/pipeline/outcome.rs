//! The receipt of a request.

use super::{Pipeline, Received};
use crate::{answer::Answer, receipts::Entry, verify::Signer};
use metrics::counter;
use sha2::{Digest as _, Sha256};
use turnbuckle_domain::{EventUid, Receipt, ReceiptDecision, ReceiptId, receipt_limits};

/// How a request ended.
pub(super) struct Ending {
    pub(super) decision: ReceiptDecision,
    pub(super) reason: String,
    pub(super) status: u16,
    pub(super) signer: Option<Signer>,
    pub(super) event_id: String,
    pub(super) event_id_signed: Option<bool>,
    pub(super) event: Option<EventUid>,
    pub(super) events: usize,
    /// Whether its body is all that is left of it.
    pub(super) keeps_body: bool,
}

impl Ending {
    pub(super) fn of(
        decision: ReceiptDecision,
        reason: impl Into<String>,
        answer: &Answer,
    ) -> Self {
        Self {
            decision,
            reason: reason.into(),
            status: answer.status().as_u16(),
            signer: None,
            event_id: String::new(),
            event_id_signed: None,
            event: None,
            events: 0,
            keeps_body: false,
        }
    }
}

impl Pipeline {
    /// Leaves a receipt of a request that nobody has proven to be its sender's: some of them, and the
    /// number of the others, so that a stranger cannot fill the store.
    pub(super) fn leave_unproven(&self, received: Received, mut ending: Ending) {
        let Some(uncounted) = received.entry.load.unproven_receipt(received.door.began) else {
            counter!("turnbuckle_ingress_receipts_skipped_total").increment(1);
            return;
        };
        if uncounted > 0 {
            ending.reason += &format!("; {uncounted} others before it were only counted");
        }
        self.receipts.leave(self.receipt(received, ending));
    }

    pub(super) fn receipt(&self, received: Received, ending: Ending) -> Entry {
        let source = received.entry.source();
        let kept = &source.settings.receipts;
        // Payloads of requests that nobody has proven to be theirs are never kept.
        let is_theirs = ending.signer.is_some() && ending.decision != ReceiptDecision::Refused;
        let retention = match (ending.keeps_body, is_theirs) {
            (true, _) => kept.payload_retention.max(self.receipt_retention),
            (false, true) => kept.payload_retention,
            (false, false) => std::time::Duration::ZERO,
        };
        let keeps = !retention.is_zero();
        let context = keeps.then(|| {
            let message_id = received.message_id.get().cloned();
            let (mapping, parts) = (&received.entry.compiled.mapping, &received.parts);
            mapping.context(&parts.headers, &parts.uri, message_id)
        });
        // As it came: that is what its sender knows. What is kept of it is what can be read again.
        let came = &received.body.bytes;
        let (body_bytes, body_hash) = (came.len(), Sha256::digest(came).into());
        let decoded = received.decoded.into_inner();
        let (kept_body, share) = match decoded {
            Some(decoded) => (decoded.bytes, Some(decoded.share)),
            None => (received.body.bytes, received.body.share),
        };
        let receipt = Receipt {
            id: ReceiptId::from_uuid(self.ids.uuid()),
            tenant: source.tenant,
            source: source.id,
            source_slug: source.slug.as_str().to_owned(),
            received_at: received.at,
            decision: ending.decision,
            reason: ending.reason.chars().take(receipt_limits::REASON_CHARS).collect(),
            status: ending.status,
            event_id: ending.event_id,
            event_id_signed: ending.event_id_signed,
            event: ending.event,
            events: u32::try_from(ending.events).unwrap_or(u32::MAX),
            key: ending.signer.and_then(|signer| signer.key),
            // A key that was fetched is on no ring.
            key_state: ending
                .signer
                .filter(|signer| signer.key.is_some())
                .map(|signer| signer.state),
            skew_ms: ending.signer.and_then(|signer| signer.skew_ms),
            body_bytes: u32::try_from(body_bytes).unwrap_or(u32::MAX),
            body_hash,
            headers: kept_headers(&received.parts.headers, &kept.headers),
            context,
            payload: keeps.then_some(kept_body),
            payload_until: keeps.then(|| received.at + retention),
        };
        Entry { receipt, share: share.filter(|_| keeps) }
    }
}

/// The headers that the source keeps; the settings refuse those with credentials and signatures.
fn kept_headers(headers: &http::HeaderMap, names: &[String]) -> Vec<(String, String)> {
    let shown = |name: &String| {
        let value = headers.get(name)?;
        let text = String::from_utf8_lossy(value.as_bytes());
        let text = text.chars().take(receipt_limits::HEADER_CHARS).collect();
        Some((name.clone(), text))
    };
    names.iter().filter_map(shown).collect()
}
