//! TLS on the listeners, for installations without a proxy in front.

use anyhow::Context as _;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::{fs, path::PathBuf, sync::Arc};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName},
};
use turnbuckle_tests::{Home, Server, StoreKind, home::program, http};

/// A certificate for this machine, and the files that hold it.
struct Certificate {
    directory: TempDir,
    der: tokio_rustls::rustls::pki_types::CertificateDer<'static>,
}

impl Certificate {
    fn new() -> anyhow::Result<Self> {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names)?;
        let directory = tempfile::tempdir()?;
        fs::write(directory.path().join("tls.crt"), cert.pem())?;
        fs::write(directory.path().join("tls.key"), signing_key.serialize_pem())?;
        Ok(Self { directory, der: cert.der().clone() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn options(&self) -> Vec<String> {
        let text = |name| self.path(name).display().to_string();
        ["--tls-cert-file", &text("tls.crt"), "--tls-key-file", &text("tls.key"), "--dev"]
            .map(str::to_owned)
            .into()
    }

    async fn post(&self, server: &Server, path: &str) -> anyhow::Result<String> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone())?;
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = builder.with_safe_default_protocol_versions()?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(server.ingress).await?;
        let name = ServerName::try_from("localhost")?;
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        // The end of the connection is not always told in TLS.
        drop(stream.read_to_end(&mut answer).await);
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_listeners_speak_tls_and_nothing_else() -> anyhow::Result<()> {
    let certificate = Certificate::new()?;
    let options = certificate.options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let home = or_skip!(Home::new(StoreKind::Embedded).await?);
    let server = Server::start_in(&home, &options).await?;
    let url = format!("https://{}", server.api);
    let list = |ca: Option<PathBuf>, url: &str| -> anyhow::Result<std::process::Output> {
        let mut command = program()?;
        command.args(["tenant", "list", "--server", url]);
        if let Some(ca) = ca {
            command.arg("--ca-file").arg(ca);
        }
        Ok(command.output()?)
    };
    let trusted = list(Some(certificate.path("tls.crt")), &url)?;
    let said = String::from_utf8_lossy(&trusted.stderr).into_owned();
    assert!(trusted.status.success(), "{said}");
    assert!(String::from_utf8_lossy(&trusted.stdout).contains("default"));
    assert!(!list(None, &url)?.status.success(), "a certificate of nobody's was trusted");
    let plain = list(None, &format!("http://{}", server.api))?;
    assert!(!plain.status.success(), "the API spoke plain text");

    let answer = certificate.post(&server, "/in/none").await?;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let plain = http::post(server.ingress, "/in/none", "").await;
    assert!(!plain.is_ok_and(|answer| answer.head.starts_with("HTTP/")), "it spoke plain text");
    let ready = http::get(server.admin, "/readyz").await.context("probes need no certificate")?;
    assert_eq!(ready.status, 200);
    server.stop().await
}

#[test]
fn one_file_without_the_other_is_refused() -> anyhow::Result<()> {
    let output = program()?.args(["serve", "--tls-cert-file", "a.pem"]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("--tls-key-file go together"), "{said}");
    Ok(())
}
