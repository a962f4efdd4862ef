//! TLS receivers with throw-away certificates.

use super::{
    DELIVERED,
    receiver::{LONG, SHORT, Seen, Step, ok, perform, post, receiver, sender_with},
    unreachable,
};
use crate::{
    egress::{EgressGuard, EgressPolicy, tests::ScriptedResolver},
    http::HttpSender,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer},
    },
};
use turnbuckle_domain::{AttemptOutcome, Phase, Unreachable};

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A receiver with a certificate for `name`, answering two requests on one connection.
async fn tls_receiver(issuer: &CertifiedIssuer<'static, KeyPair>, name: &str) -> (u16, Arc<Seen>) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Arc::new(Seen::default());
    let shared = Arc::clone(&seen);
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(mut stream) = TlsAcceptor::from(Arc::new(config)).accept(stream).await else {
            return;
        };
        for step in [Step::Read, ok(), Step::Read, ok(), Step::Hold] {
            perform(&mut stream, 0, step, &shared).await;
        }
    });
    (port, seen)
}

/// A sender that finds `hooks.test` on this machine and trusts these authorities.
fn sender_trusting(extra_roots: Vec<CertificateDer<'static>>) -> HttpSender {
    let policy = EgressPolicy {
        allow: EgressPolicy::networks(&["127.0.0.0/8"]).unwrap(),
        extra_roots,
        ..EgressPolicy::default()
    };
    let resolver = ScriptedResolver::default().with("hooks.test.", &[&["127.0.0.1"]]);
    sender_with(EgressGuard::new(policy, Arc::new(resolver)).unwrap())
}

#[tokio::test]
async fn a_trusted_receiver_is_reached_and_its_connection_kept() {
    let issuer = authority();
    let (port, seen) = tls_receiver(&issuer, "hooks.test").await;
    let sender = sender_trusting(vec![issuer.der().clone()]);
    for expected in [false, true] {
        let sent = post(&sender, &format!("https://hooks.test:{port}/"), LONG).await;
        assert_eq!((sent.outcome, sent.reused), (DELIVERED, expected));
    }
    assert_eq!(seen.requests().len(), 2);
}

#[tokio::test]
async fn an_unknown_authority_or_another_name_gets_no_request() {
    let issuer = authority();
    let trusting = || sender_trusting(vec![issuer.der().clone()]);
    for (name, sender) in [
        ("hooks.test", sender_trusting(Vec::new())),
        ("other.test", trusting()),
        ("127.0.0.1", trusting()),
    ] {
        let (port, seen) = tls_receiver(&issuer, name).await;
        let sent = post(&sender, &format!("https://hooks.test:{port}/"), LONG).await;
        assert_eq!(sent.outcome, unreachable(Unreachable::Tls), "{name}");
        assert!(seen.requests().is_empty());
    }
}

#[tokio::test]
async fn a_handshake_is_a_phase_of_its_own() {
    let sender = sender_trusting(Vec::new());
    let (silent, _seen) = receiver(vec![vec![Step::Hold]]).await;
    let sent = post(&sender, &format!("https://hooks.test:{silent}/"), SHORT).await;
    assert_eq!(sent.outcome, AttemptOutcome::TimedOut { phase: Phase::Tls });
    let (plain, _seen) = receiver(vec![vec![ok(), Step::Hold]]).await;
    let sent = post(&sender, &format!("https://hooks.test:{plain}/"), LONG).await;
    assert_eq!(sent.outcome, unreachable(Unreachable::Tls));
}
