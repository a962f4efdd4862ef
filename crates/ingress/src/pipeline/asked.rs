//! What a request asks for besides being taken: a key to be fetched, a secret to be kept, an address
//! to be confirmed.

use super::{Ending, Headers, Pipeline, Received};
use crate::{
    answer::{Answer, Problem, asked, handshake},
    fetched::NoKey,
    metrics::Outcome,
    verify::Signer,
};
use metrics::counter;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use turnbuckle_domain::{Learned, OfferedSecret, Propagation as _, ReceiptDecision};
use turnbuckle_signing::scheme::{HandshakeReply, Request, SchemeKey};

/// Longest wait until an offered secret is kept. Senders of such secrets wait ten seconds.
const LEARN_WAIT: Duration = Duration::from_secs(5);

impl Pipeline {
    /// The key that the request must be verified with, where the scheme fetches keys.
    pub(super) async fn fetched_key(
        &self,
        received: &Received,
    ) -> Result<Option<Arc<SchemeKey>>, NoKey> {
        let verifier = &received.entry.compiled.verifier;
        if !verifier.scheme().fetches_keys() {
            return Ok(None);
        }
        let wanted = {
            let (url, headers) = (received.url(), Headers(&received.parts.headers));
            let request = Request {
                method: received.parts.method.as_str(),
                url: &url,
                headers: &headers,
                body: &received.body.bytes,
            };
            verifier.wanted_key(&request).map_err(NoKey::Refused)?
        };
        match wanted {
            Some(wanted) => {
                let source = received.entry.source().id;
                self.fetched.key(source, verifier, &wanted).await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// A request that cannot be judged for want of its sender's key.
    pub(super) fn without_key(&self, received: Received, no_key: NoKey) -> (Answer, Outcome) {
        let (problem, decision, outcome, reason) = match no_key {
            NoKey::Refused(refusal) => {
                let kind = refusal.kind();
                counter!("turnbuckle_ingress_refusals_total", "reason" => kind).increment(1);
                let reason = refusal.to_string();
                (Problem::Unauthorized, ReceiptDecision::Refused, Outcome::Unauthorized, reason)
            }
            NoKey::Unavailable(reason) => {
                (Problem::Unavailable, ReceiptDecision::Unavailable, Outcome::Unavailable, reason)
            }
        };
        let answer = match problem {
            Problem::Unauthorized => received.door.answer(received.body.bytes.len()),
            _ => problem.answer(),
        };
        let ending = Ending::of(decision, reason, &answer);
        self.leave_unproven(received, ending);
        (answer, outcome)
    }

    /// Keeps the secret that the sender offers, and answers when it is durable (I1).
    pub(super) async fn learn(
        &self,
        received: Received,
        name: String,
        mut reply: HandshakeReply,
    ) -> (Answer, Outcome) {
        let source = received.entry.source();
        let text = reply.learned_secret.take();
        let text = text.as_ref().map_or("", |secret| secret.expose());
        let offer =
            OfferedSecret { tenant: source.tenant, source: &source.slug, handshake: &name, text };
        let learned = timeout(LEARN_WAIT, self.learning.learn(offer)).await;
        let (answer, decision, outcome, reason) = match learned {
            Ok(Ok(Learned::Taken { revision })) => {
                // So that what the sender signs from now on is taken here.
                self.sources.applied(revision).await;
                (handshake(reply), ReceiptDecision::Handshake, Outcome::Handshake, name)
            }
            Ok(Ok(Learned::RingInUse)) => refused_offer(
                "it offers a secret, and the source has, or had, a key: no key is replaced so",
            ),
            Ok(Ok(Learned::Unusable)) => {
                refused_offer("it offers a secret that the source's scheme cannot use")
            }
            Ok(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "a secret was not kept");
                unavailable("the secret that it offers could not be kept")
            }
            Err(_) => unavailable("the secret that it offers was not kept in time"),
        };
        let answer = match outcome {
            // As on a path that nobody has.
            Outcome::Unauthorized => received.door.answer(received.body.bytes.len()),
            _ => answer,
        };
        let ending = Ending::of(decision, reason, &answer);
        self.leave_unproven(received, ending);
        (answer, outcome)
    }

    /// Fetches the address that confirms a subscription, and answers when that is done.
    pub(super) async fn confirm(
        &self,
        received: Received,
        url: &str,
        signer: Signer,
    ) -> (Answer, Outcome) {
        let source = received.entry.source().id;
        let (answer, decision, outcome, reason) = match self.fetched.confirm(source, url).await {
            Ok(()) => {
                let name = "subscription-confirmation".to_owned();
                (asked(), ReceiptDecision::Handshake, Outcome::Handshake, name)
            }
            Err(reason) => unavailable(&format!("its subscription is not confirmed: {reason}")),
        };
        let mut ending = Ending::of(decision, reason, &answer);
        ending.signer = Some(signer);
        self.receipts.leave(self.receipt(received, ending));
        (answer, outcome)
    }
}

type Ended = (Answer, ReceiptDecision, Outcome, String);

fn refused_offer(reason: &str) -> Ended {
    counter!("turnbuckle_ingress_refusals_total", "reason" => "handshake").increment(1);
    let answer = Problem::Unauthorized.answer();
    (answer, ReceiptDecision::Refused, Outcome::Unauthorized, reason.to_owned())
}

fn unavailable(reason: &str) -> Ended {
    let answer = Problem::Unavailable.answer();
    (answer, ReceiptDecision::Unavailable, Outcome::Unavailable, reason.to_owned())
}
