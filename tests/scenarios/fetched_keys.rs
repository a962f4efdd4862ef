//! Senders whose keys are fetched: from a key set, and from certificates that requests name. The hosts
//! are those of schemes of one's own, on loopback, which the guard is told to let through.

use crate::unix_now;
use anyhow::Context as _;
use data_encoding::{BASE64, BASE64URL_NOPAD};
use p256::{
    ecdsa::{DerSignature, Signature, SigningKey, signature::Signer},
    pkcs8::DecodePrivateKey as _,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
};
use turnbuckle_proto::v1::{
    AlgorithmRule, CertificateKeySource, CreateSourceRequest, ExpectedValue, JwtAlgorithm,
    JwtProof, KeyEncoding, KeyRule, KeySetKeySource, Locator, SignatureEncoding, SignatureProof,
    Source, TemplatePart, TemplateToken, VerificationAlgorithm, VerificationScheme,
    expected_value::Value,
    locator::At,
    source::Verification,
    template_part::Part,
    verification_scheme::{KeySource, Proof},
};
use turnbuckle_tests::{Home, Scene, Server, StoreKind, http::Answer, sender};

/// The name that certificates of the sender are for.
const SUBJECT: &str = "webhooks.sender.example";

fn authority(name: &str) -> anyhow::Result<CertifiedIssuer<'static, KeyPair>> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

/// A web server with what a sender publishes.
struct Site {
    address: SocketAddr,
    pages: Arc<Mutex<HashMap<String, String>>>,
    asked: Arc<AtomicUsize>,
}

impl Site {
    async fn open(root: &CertifiedIssuer<'static, KeyPair>) -> anyhow::Result<Self> {
        let key = KeyPair::generate()?;
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
        let certificate = params.signed_by(&key, root)?;
        let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let site =
            Self { address: listener.local_addr()?, pages: Arc::default(), asked: Arc::default() };
        let (pages, asked) = (Arc::clone(&site.pages), Arc::clone(&site.asked));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut head = vec![0; 8192];
                let Ok(length) = stream.read(&mut head).await else { continue };
                let head = String::from_utf8_lossy(&head[..length]).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                asked.fetch_add(1, Ordering::SeqCst);
                let page = pages.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
                let (status, body) = match page {
                    Some(body) => ("200 OK", body),
                    None => ("404 Not Found", String::new()),
                };
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                drop(stream.write_all(answer.as_bytes()).await);
                drop(stream.shutdown().await);
            }
        });
        Ok(site)
    }

    fn put(&self, path: &str, body: String) {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), body);
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

struct Place {
    server: Server,
    scene: Scene,
    site: Site,
    root: CertifiedIssuer<'static, KeyPair>,
}

impl Place {
    async fn set() -> anyhow::Result<Option<Self>> {
        let root = authority("ours")?;
        let site = Site::open(&root).await?;
        let Some(home) = Home::new(StoreKind::Embedded).await? else { return Ok(None) };
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), pem(root.der()))?;
        let path = file.path().to_str().context("a path of text")?;
        let server = Server::start_in(&home, &["--extra-ca-file", path]).await?;
        let scene = Scene::set(&server).await?;
        Ok(Some(Self { server, scene, site, root }))
    }

    async fn source(&self, id: &str, scheme: VerificationScheme) -> anyhow::Result<Source> {
        let request = CreateSourceRequest {
            parent: self.scene.tenant.clone(),
            source_id: id.to_owned(),
            source: Some(Source {
                verification: Some(Verification::Scheme(scheme)),
                ..Source::default()
            }),
            ..CreateSourceRequest::default()
        };
        Ok(self.scene.client.sources().create_source(request).await?.into_inner())
    }

    async fn post(
        &self,
        source: &Source,
        headers: &[sender::Header],
        body: &str,
    ) -> anyhow::Result<Answer> {
        sender::post(self.server.ingress, &source.ingest_path, headers, body.as_bytes()).await
    }
}

/// A certificate as text.
fn pem(der: &[u8]) -> String {
    let text = BASE64.encode(der);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

fn at(at: At) -> Option<Locator> {
    Some(Locator { at: Some(at) })
}

fn text(text: &str) -> Option<ExpectedValue> {
    Some(ExpectedValue { value: Some(Value::Text(text.to_owned())) })
}

fn pem_rule() -> Option<KeyRule> {
    Some(KeyRule { encoding: KeyEncoding::Pem.into(), ..KeyRule::default() })
}

/// A token that says who sends, checked with a key set.
fn tokens(url: String) -> VerificationScheme {
    VerificationScheme {
        proof: Some(Proof::Jwt(JwtProof {
            source: at(At::Authorization("Bearer".to_owned())),
            algorithm: JwtAlgorithm::Es256.into(),
            key: pem_rule(),
            issuer: text("https://issuer.example"),
            audience: text("our-hook"),
            max_age_seconds: 300,
            max_future_seconds: 60,
            ..JwtProof::default()
        })),
        key_source: Some(KeySource::KeySet(KeySetKeySource { url })),
        message_id: at(At::Json("id".to_owned())).into_iter().collect(),
        ..VerificationScheme::default()
    }
}

fn token(key: &SigningKey, kid: &str, audience: &str) -> Vec<sender::Header> {
    let part = |text: String| BASE64URL_NOPAD.encode(text.as_bytes());
    let header = part(format!(r#"{{"alg":"ES256","kid":"{kid}"}}"#));
    let claims = part(format!(
        r#"{{"iss":"https://issuer.example","aud":"{audience}","iat":{}}}"#,
        unix_now()
    ));
    let signed = format!("{header}.{claims}");
    let signature: Signature = key.sign(signed.as_bytes());
    let signature = BASE64URL_NOPAD.encode(&signature.to_bytes());
    vec![("authorization", format!("Bearer {signed}.{signature}"))]
}

fn web_key(key: &SigningKey, kid: &str) -> String {
    let point = key.verifying_key().to_sec1_point(false);
    let bytes = point.as_bytes();
    let (x, y) = (BASE64URL_NOPAD.encode(&bytes[1..33]), BASE64URL_NOPAD.encode(&bytes[33..]));
    format!(r#"{{"kty":"EC","crv":"P-256","kid":"{kid}","x":"{x}","y":"{y}"}}"#)
}

fn signing_key(pair: &KeyPair) -> anyhow::Result<SigningKey> {
    Ok(SigningKey::from_pkcs8_der(&pair.serialize_der())?)
}

fn event(id: &str) -> String {
    format!(r#"{{"id":"{id}","type":"thing.happened"}}"#)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_checked_with_a_key_set_that_is_fetched_once() -> anyhow::Result<()> {
    let place = or_skip!(Place::set().await?);
    let (first, second) = (KeyPair::generate()?, KeyPair::generate()?);
    let (first, second) = (signing_key(&first)?, signing_key(&second)?);
    place.site.put("/keys", format!(r#"{{"keys":[{}]}}"#, web_key(&first, "k1")));
    let source = place.source("pushed", tokens(place.site.url("/keys"))).await?;
    let post = async |key: &SigningKey, kid: &str, audience: &str, id: &str| {
        let answer = place.post(&source, &token(key, kid, audience), &event(id)).await?;
        anyhow::Ok(answer.status)
    };
    for number in 0..20 {
        assert_eq!(post(&first, "k1", "our-hook", &format!("a{number}")).await?, 202);
    }
    assert_eq!(place.site.asked(), 1);
    // Another audience, another key under a known name, and a name that the set does not have.
    assert_eq!(post(&first, "k1", "their-hook", "b1").await?, 401);
    assert_eq!(post(&second, "k1", "our-hook", "b2").await?, 401);
    for number in 0..20 {
        assert_eq!(post(&second, "k2", "our-hook", &format!("c{number}")).await?, 401);
    }
    assert!(place.site.asked() <= 2, "{}", place.site.asked());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_set_that_cannot_be_reached_is_no_refusal() -> anyhow::Result<()> {
    let place = or_skip!(Place::set().await?);
    let key = signing_key(&KeyPair::generate()?)?;
    // Nobody listens there.
    let source = place.source("away", tokens("https://127.0.0.1:9/keys".to_owned())).await?;
    let answer = place.post(&source, &token(&key, "k1", "our-hook"), &event("a")).await?;
    assert_eq!(answer.status, 503);
    assert!(answer.head.contains("retry-after"), "{}", answer.head);
    // An address that the guard refuses is none that a retry helps with.
    let inside = place.source("inside", tokens("https://169.254.169.254/keys".to_owned())).await?;
    let answer = place.post(&inside, &token(&key, "k1", "our-hook"), &event("a")).await?;
    assert_eq!(answer.status, 401);
    Ok(())
}

/// A signature over the body, checked with a certificate that the request names.
fn certificates(host: &str, leaf_alone: bool) -> VerificationScheme {
    VerificationScheme {
        proof: Some(Proof::Signature(SignatureProof {
            sources: at(At::Header("x-signature".to_owned())).into_iter().collect(),
            encoding: SignatureEncoding::Base64.into(),
            algorithms: vec![AlgorithmRule {
                algorithm: VerificationAlgorithm::EcdsaP256Sha256.into(),
                key: pem_rule(),
                ..AlgorithmRule::default()
            }],
            template: vec![TemplatePart { part: Some(Part::Token(TemplateToken::Body.into())) }],
            ..SignatureProof::default()
        })),
        key_source: Some(KeySource::Certificate(CertificateKeySource {
            url: at(At::Header("x-cert-url".to_owned())),
            hosts: vec![host.to_owned()],
            path_suffix: ".pem".to_owned(),
            subject: SUBJECT.to_owned(),
            leaf_alone,
        })),
        message_id: at(At::Json("id".to_owned())).into_iter().collect(),
        ..VerificationScheme::default()
    }
}

fn signed(key: &SigningKey, url: String, body: &str) -> Vec<sender::Header> {
    let signature: DerSignature = key.sign(body.as_bytes());
    let signature = BASE64.encode(signature.as_bytes());
    vec![("x-cert-url", url), ("x-signature", signature)]
}

fn certificate(
    issuer: &CertifiedIssuer<'static, KeyPair>,
    subject: &str,
) -> anyhow::Result<(SigningKey, String)> {
    let pair = KeyPair::generate()?;
    let leaf = CertificateParams::new(vec![subject.to_owned()])?.signed_by(&pair, issuer)?;
    Ok((signing_key(&pair)?, pem(leaf.der())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_fetched_once_from_the_listed_host_and_must_be_genuine()
-> anyhow::Result<()> {
    let place = or_skip!(Place::set().await?);
    let (key, pem) = certificate(&place.root, SUBJECT)?;
    let (foreign, foreign_pem) = certificate(&authority("theirs")?, SUBJECT)?;
    let (misnamed, misnamed_pem) = certificate(&place.root, "other.example")?;
    place.site.put("/good.pem", pem);
    place.site.put("/foreign.pem", foreign_pem);
    place.site.put("/misnamed.pem", misnamed_pem);
    let host = place.site.address.to_string();
    let source = place.source("strict", certificates(&host, false)).await?;
    let post = async |source: &Source, key: &SigningKey, url: String, id: &str| {
        let body = event(id);
        anyhow::Ok(place.post(source, &signed(key, url, &body), &body).await?.status)
    };
    for number in 0..10 {
        let url = place.site.url("/good.pem");
        assert_eq!(post(&source, &key, url, &format!("a{number}")).await?, 202);
    }
    assert_eq!(place.site.asked(), 1);
    assert_eq!(post(&source, &foreign, place.site.url("/foreign.pem"), "b").await?, 401);
    assert_eq!(post(&source, &misnamed, place.site.url("/misnamed.pem"), "c").await?, 401);
    assert_eq!(post(&source, &key, place.site.url("/missing.pem"), "d").await?, 401);
    let asked = place.site.asked();
    for elsewhere in ["https://127.0.0.1/good.pem", "https://127.0.0.2:8443/good.pem"] {
        assert_eq!(post(&source, &key, elsewhere.to_owned(), "e").await?, 401);
    }
    assert_eq!(place.site.asked(), asked);
    // Without its issuers, where the scheme takes it on the word of the host; its name counts still.
    let alone = place.source("alone", certificates(&host, true)).await?;
    assert_eq!(post(&alone, &foreign, place.site.url("/foreign.pem"), "f").await?, 202);
    assert_eq!(post(&alone, &misnamed, place.site.url("/misnamed.pem"), "g").await?, 401);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_is_confirmed_at_the_listed_host_only_and_only_when_it_is_signed()
-> anyhow::Result<()> {
    let place = or_skip!(Place::set().await?);
    let (key, pem) = certificate(&place.root, SUBJECT)?;
    place.site.put("/good.pem", pem);
    place.site.put("/?Action=ConfirmSubscription&Token=t", "<Confirmed/>".to_owned());
    let host = place.site.address.to_string();
    let source = place.source("topic", certificates(&host, false)).await?;
    let question = |url: &str| {
        format!(r#"{{"id":"m1","Type":"SubscriptionConfirmation","SubscribeURL":"{url}"}}"#)
    };
    let confirm = place.site.url("/?Action=ConfirmSubscription&Token=t");
    let cert = || place.site.url("/good.pem");
    let good = question(&confirm);
    // Unsigned: nothing but the certificate is fetched.
    let forged = signed(&key, cert(), "something else");
    assert_eq!(place.post(&source, &forged, &good).await?.status, 401);
    assert_eq!(place.site.asked(), 1);
    let answer = place.post(&source, &signed(&key, cert(), &good), &good).await?;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(place.site.asked(), 2);
    for elsewhere in ["https://169.254.169.254/?x", "http://127.0.0.1/?x", "https://127.0.0.1:1/?x"]
    {
        let body = question(elsewhere);
        assert_eq!(place.post(&source, &signed(&key, cert(), &body), &body).await?.status, 401);
    }
    // One that fails is asked for again by the sender.
    let failing = question(&place.site.url("/?Action=Nothing"));
    assert_eq!(place.post(&source, &signed(&key, cert(), &failing), &failing).await?.status, 503);
    Ok(())
}
