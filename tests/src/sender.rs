//! A third party that sends to the ingress.

use crate::{Scene, Server, http::Answer};
use anyhow::Context as _;
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use turnbuckle_proto::v1::{CreateSourceRequest, Source, source::Verification};
use turnbuckle_signing::{Message, Profile, SignerOptions, SigningKey, sign};

/// Longest answer waited for.
const DEADLINE: Duration = Duration::from_secs(10);

/// A sender's secret, as its settings page shows it.
pub const SECRET: &str = "a secret of thirty-two characters";
/// One that it never had.
pub const WRONG_SECRET: &str = "another one, which nobody has set";

/// A sender with its source.
#[derive(Debug, Clone)]
pub struct Sender {
    ingress: SocketAddr,
    /// The source as it was made.
    pub source: Source,
}

/// A header.
pub type Header = (&'static str, String);

impl Sender {
    /// Makes a source of this preset.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn of(
        scene: &Scene,
        server: &Server,
        preset: &str,
        secret: &str,
    ) -> anyhow::Result<Self> {
        Self::with(scene, server, preset, secret, Source::default()).await
    }

    /// Makes a source of this preset with further settings.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn with(
        scene: &Scene,
        server: &Server,
        preset: &str,
        secret: &str,
        settings: Source,
    ) -> anyhow::Result<Self> {
        let verification = Some(Verification::Preset(preset.to_owned()));
        let request = CreateSourceRequest {
            parent: scene.tenant.clone(),
            source_id: preset.to_owned(),
            source: Some(Source { verification, ..settings }),
            secret: secret.to_owned(),
            ..CreateSourceRequest::default()
        };
        let source = scene.client.sources().create_source(request).await?.into_inner();
        Ok(Self { ingress: server.ingress, source })
    }

    /// The same source at another server.
    #[must_use]
    pub fn at(&self, server: &Server) -> Self {
        Self { ingress: server.ingress, source: self.source.clone() }
    }

    /// Where it sends to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.ingress
    }

    /// Posts a body with these headers.
    ///
    /// # Errors
    /// When nobody answers.
    pub async fn post(&self, headers: &[Header], body: &str) -> anyhow::Result<Answer> {
        post(self.ingress, &self.source.ingest_path, headers, body.as_bytes()).await
    }
}

/// Posts to a path of the ingress.
///
/// # Errors
/// When nobody answers.
pub async fn post(
    address: SocketAddr,
    path: &str,
    headers: &[Header],
    body: &[u8],
) -> anyhow::Result<Answer> {
    let mut head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let has_type = headers.iter().any(|(name, _)| *name == "content-type");
    if !has_type {
        head.push_str("content-type: application/json\r\n");
    }
    head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(head.as_bytes()).await?;
        // A server that refuses the head may close before the body is out.
        drop(stream.write_all(body).await);
        answer(&mut stream).await
    };
    tokio::time::timeout(DEADLINE, exchange).await.context("no answer")?
}

/// Reads an answer to its end.
///
/// # Errors
/// When there is none.
pub async fn answer(stream: &mut TcpStream) -> anyhow::Result<Answer> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    // A reset behind the answer does not undo it.
    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
        bytes.extend_from_slice(&chunk[..count]);
    }
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").context("no complete answer")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok(Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() })
}

/// The headers of GitHub.
///
/// # Errors
/// When the secret is too short to sign with.
pub fn github(secret: &str, id: &str, event: &str, body: &str) -> anyhow::Result<Vec<Header>> {
    let signature = hub(secret, body.as_bytes())?;
    Ok(vec![
        ("x-github-delivery", id.to_owned()),
        ("x-github-event", event.to_owned()),
        ("x-hub-signature-256", signature),
    ])
}

/// The header of Stripe.
///
/// # Errors
/// When the secret is too short to sign with.
pub fn stripe(secret: &str, at: i64, body: &str) -> anyhow::Result<Vec<Header>> {
    let signature = timestamped(secret.as_bytes(), at, body)?;
    Ok(vec![("stripe-signature", format!("t={at},{signature}"))])
}

/// The headers of our own contract. The secret is what `whsec_` and base64 stand for.
///
/// # Errors
/// When the secret is too short to sign with.
pub fn own(secret: &[u8], at: i64, body: &str) -> anyhow::Result<Vec<Header>> {
    Ok(vec![
        ("x-webhook-timestamp", at.to_string()),
        ("x-webhook-signature", timestamped(secret, at, body)?),
    ])
}

/// What GitHub and many others sign with, over these bytes: `sha256=` and hexadecimal digits.
///
/// # Errors
/// When the secret is too short to sign with.
pub fn hub(secret: &str, body: &[u8]) -> anyhow::Result<String> {
    let key = SigningKey::hmac(secret.as_bytes())?;
    let message = Message { id: "unused", timestamp: 0, body };
    let headers = sign(Profile::HubSha256, &[key], &message, &SignerOptions::default())?;
    headers.into_iter().map(|(_, value)| value).next().context("a signature")
}

fn timestamped(secret: &[u8], at: i64, body: &str) -> anyhow::Result<String> {
    let key = SigningKey::hmac(secret)?;
    let message = Message { id: "unused", timestamp: at, body: body.as_bytes() };
    let headers = sign(Profile::TimestampedHex, &[key], &message, &SignerOptions::default())?;
    let signed = headers.into_iter().find(|(name, _)| name.ends_with("signature"));
    Ok(signed.context("a signature")?.1)
}
