//! As much of an HTTP client as the admin page and the ingress need.

use anyhow::Context as _;
use std::{net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Longest answer waited for.
const DEADLINE: Duration = Duration::from_secs(10);

/// An answer as text.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status code.
    pub status: u16,
    /// Status line and headers.
    pub head: String,
    /// The body.
    pub body: String,
}

/// GETs a path.
///
/// # Errors
/// When nobody answers.
pub async fn get(address: SocketAddr, path: &str) -> anyhow::Result<Answer> {
    send(address, "GET", path, "").await
}

/// POSTs a JSON body.
///
/// # Errors
/// When nobody answers.
pub async fn post(address: SocketAddr, path: &str, body: &str) -> anyhow::Result<Answer> {
    send(address, "POST", path, body).await
}

async fn send(address: SocketAddr, method: &str, path: &str, body: &str) -> anyhow::Result<Answer> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        anyhow::Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let answer = tokio::time::timeout(DEADLINE, exchange).await.context("no answer")??;
    let (head, body) = answer.split_once("\r\n\r\n").context("no complete answer")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok(Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() })
}

/// The value of a sample without labels, or with exactly these, in Prometheus' text form.
#[must_use]
pub fn sample(page: &str, name: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}
