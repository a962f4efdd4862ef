//! TLS of the listeners: one certificate for all of them, read again when its file changes.
//!
//! ```text
//!   cert file, key file ──► Identity ──► Resolver (swapped whole) ──► acceptor of the API      (h2, http/1.1)
//!        ▲                                                       └──► acceptor of the ingress  (http/1.1)
//!        └── looked at every minute: a renewed pair is taken, a faulty one is told and the old one stays
//! ```

mod incoming;
#[cfg(test)]
mod tests;

pub use incoming::{handshake, incoming};
pub use tokio_rustls::TlsAcceptor;

use arc_swap::ArcSwap;
use metrics::counter;
use std::{
    fmt, fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::time::{MissedTickBehavior, interval};
use tokio_rustls::rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

/// How often the files are looked at: renewals come days before a certificate ends.
const RELOAD: Duration = Duration::from_secs(60);

/// Largest file read: a chain of a dozen certificates with long names is a tenth of it.
const SIZE_MAX: u64 = 256 * 1024;

/// The certificate or its key cannot be used. Says nothing about their content.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {cause}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not. Part of the text, so it is no `source`: a chain would say it twice.
        cause: io::Error,
    },
    /// A file is larger than any certificate chain.
    #[error("{} is larger than 256 KiB: is it the right file?", .0.display())]
    TooLarge(PathBuf),
    /// There is no certificate in the file.
    #[error("{} has no certificate in PEM form", .0.display())]
    NoCertificate(PathBuf),
    /// There is no key in the file.
    #[error("{} has no private key in PEM form (PKCS#8, PKCS#1 or SEC1)", .0.display())]
    NoKey(PathBuf),
    /// The key is none that the certificate was made for, or of a kind that is not known.
    #[error(
        "{key} is not the key of {cert}: give the pair that was made together, the server's own \
         certificate first in the file",
        key = .key.display(),
        cert = .cert.display()
    )]
    Mismatch {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// The library refuses its own defaults.
    #[error("TLS cannot be set up: {0}")]
    Library(String),
}

/// The certificate of this process' listeners.
#[derive(Clone)]
pub struct ServerTls {
    files: Arc<Files>,
    current: Arc<Current>,
}

struct Files {
    cert: PathBuf,
    key: PathBuf,
}

/// What was read, to see whether it changed.
struct Identity {
    cert: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
    certified: Arc<CertifiedKey>,
}

struct Current(ArcSwap<Identity>);

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current(…)")
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.load().certified))
    }
}

impl ServerTls {
    /// Reads the pair.
    ///
    /// # Errors
    /// When a file cannot be read, or the two are no pair.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let files = Files { cert: cert.to_owned(), key: key.to_owned() };
        let current = Arc::new(Current(ArcSwap::from_pointee(files.read()?)));
        Ok(Self { files: Arc::new(files), current })
    }

    /// What answers handshakes, always with the newest certificate. `protocols` is what the listener
    /// speaks, the best first, such as `h2`.
    ///
    /// # Errors
    /// When the library refuses.
    pub fn acceptor(&self, protocols: &[&str]) -> Result<TlsAcceptor, TlsError> {
        // The provider is named, so that no process-wide default decides.
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Library(error.to_string()))?;
        let resolver = Arc::clone(&self.current);
        let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Takes the pair from its files when it has changed; tells whether it had.
    ///
    /// # Errors
    /// When it cannot be used. The old one stays.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let read = self.files.read()?;
        let old = self.current.0.load();
        if old.cert == read.cert && *old.key == *read.key {
            return Ok(false);
        }
        self.current.0.store(Arc::new(read));
        Ok(true)
    }

    /// Looks at the files every minute until it is told to stop.
    pub async fn keep_fresh(self, stop: CancellationToken) {
        let mut ticks = interval(RELOAD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            match self.reload() {
                Ok(false) => {}
                Ok(true) => {
                    counter!("turnbuckle_tls_reloads_total").increment(1);
                    tracing::info!(file = %self.files.cert.display(), "a new certificate is in use");
                }
                Err(error) => {
                    counter!("turnbuckle_tls_reload_failures_total").increment(1);
                    tracing::error!(%error, "the old certificate stays in use");
                }
            }
        }
    }
}

impl Files {
    fn read(&self) -> Result<Identity, TlsError> {
        let cert = read(&self.cert)?;
        let key = Zeroizing::new(read(&self.key)?);
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&cert)
            .collect::<Result<_, _>>()
            .map_err(|_| TlsError::NoCertificate(self.cert.clone()))?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate(self.cert.clone()));
        }
        let secret =
            PrivateKeyDer::from_pem_slice(&key).map_err(|_| TlsError::NoKey(self.key.clone()))?;
        let certified = CertifiedKey::from_der(chain, secret, &ring::default_provider());
        let certified = certified
            .map_err(|_| TlsError::Mismatch { cert: self.cert.clone(), key: self.key.clone() })?;
        Ok(Identity { cert, key, certified: Arc::new(certified) })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |cause| TlsError::Io { path: path.to_owned(), cause };
    let file = fs::File::open(path).map_err(failed)?;
    let mut content = Vec::new();
    file.take(SIZE_MAX + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 > SIZE_MAX {
        return Err(TlsError::TooLarge(path.to_owned()));
    }
    Ok(content)
}
