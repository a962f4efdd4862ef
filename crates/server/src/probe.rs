//! `turnbuckle probe`: asks an HTTP address once, for images that have no other program.

use crate::cli::Span;
use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, Uri, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::{
    io::{self, Write as _},
    time::Duration,
};
use tokio::{net::TcpStream, time::timeout};

/// Largest answer that is read.
const ANSWER_BYTES: usize = 64 * 1024;

/// Options of `turnbuckle probe`.
#[derive(Clone, clap::Args)]
pub struct ProbeArgs {
    /// What to ask, such as `http://127.0.0.1:7422/readyz`.
    pub url: String,
    /// Longest wait for the answer.
    #[arg(long, default_value = "5s")]
    pub within: Span,
}

/// Prints the answer. Succeeds when its status is 2xx.
///
/// # Errors
/// When there is no answer, or another one.
pub async fn probe(args: ProbeArgs) -> anyhow::Result<()> {
    let uri: Uri = args.url.parse().with_context(|| format!("{} is no URL", args.url))?;
    let within = Duration::from(args.within);
    let (status, body) = timeout(within, ask(&uri))
        .await
        .with_context(|| format!("no answer within {} s", within.as_secs_f64()))??;
    writeln!(io::stdout(), "{}", String::from_utf8_lossy(&body).trim_end())?;
    anyhow::ensure!(status.is_success(), "answered {status}");
    Ok(())
}

async fn ask(uri: &Uri) -> anyhow::Result<(http::StatusCode, Bytes)> {
    anyhow::ensure!(uri.scheme_str() == Some("http"), "only http:// is asked");
    let authority = uri.authority().context("the URL has no host")?;
    let port = authority.port_u16().unwrap_or(80);
    let host = authority.host().trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, port)).await.context("cannot connect")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request =
        Request::get(path).header(header::HOST, authority.as_str()).body(Empty::<Bytes>::new())?;
    let exchange = async move {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("the answer cannot be read: {error}"))?;
        // The sender goes here, and the connection with it.
        anyhow::Ok((status, body.to_bytes()))
    };
    let (answered, _) = tokio::join!(exchange, connection);
    answered
}
