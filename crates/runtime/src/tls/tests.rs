use super::*;
use rcgen::{CertifiedKey as Made, generate_simple_self_signed};
use tokio::{io::AsyncWriteExt as _, net::TcpListener, net::TcpStream};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, pki_types::ServerName},
};

struct Pair {
    directory: tempfile::TempDir,
}

impl Pair {
    fn new() -> Self {
        let pair = Self { directory: tempfile::tempdir().unwrap() };
        pair.renew();
        pair
    }

    fn cert(&self) -> PathBuf {
        self.directory.path().join("tls.crt")
    }

    fn key(&self) -> PathBuf {
        self.directory.path().join("tls.key")
    }

    fn renew(&self) {
        let Made { cert, signing_key } =
            generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        fs::write(self.cert(), cert.pem()).unwrap();
        fs::write(self.key(), signing_key.serialize_pem()).unwrap();
    }

    fn load(&self) -> Result<ServerTls, TlsError> {
        ServerTls::load(&self.cert(), &self.key())
    }

    /// Whoever trusts what is in the file now.
    fn client(&self) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        let pem = fs::read(self.cert()).unwrap();
        roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = builder.with_safe_default_protocol_versions().unwrap();
        TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
    }
}

async fn shakes(client: &TlsConnector, tls: &ServerTls) -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = tls.acceptor(&["h2"]).unwrap();
    let accepted = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        handshake(&acceptor, stream).await.is_some()
    });
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let shaken = client.connect(name, stream).await;
    if let Ok(mut stream) = shaken {
        stream.shutdown().await.unwrap();
        return accepted.await.unwrap();
    }
    false
}

#[tokio::test]
async fn a_renewed_certificate_is_taken_and_a_faulty_one_is_not() {
    let pair = Pair::new();
    let tls = pair.load().unwrap();
    let before = pair.client();
    assert!(shakes(&before, &tls).await);
    assert!(!tls.reload().unwrap(), "nothing has changed");
    pair.renew();
    assert!(!shakes(&pair.client(), &tls).await, "it is not read yet");
    assert!(tls.reload().unwrap());
    let renewed = pair.client();
    assert!(shakes(&renewed, &tls).await && !shakes(&before, &tls).await);
    fs::write(pair.cert(), "half a cert").unwrap();
    assert!(matches!(tls.reload(), Err(TlsError::NoCertificate(_))));
    fs::remove_file(pair.key()).unwrap();
    assert!(tls.reload().is_err());
    assert!(shakes(&renewed, &tls).await, "the last good one stays");
}

#[test]
fn files_that_are_no_pair_are_told_apart_and_show_nothing() {
    let (pair, other) = (Pair::new(), Pair::new());
    let key = fs::read_to_string(pair.key()).unwrap();
    fs::copy(other.key(), pair.key()).unwrap();
    let Err(error) = pair.load() else { panic!("it is taken") };
    assert!(matches!(error, TlsError::Mismatch { .. }) && error.to_string().contains("tls.key"));
    fs::write(pair.key(), fs::read(pair.cert()).unwrap()).unwrap();
    assert!(matches!(pair.load(), Err(TlsError::NoKey(_))));
    fs::write(pair.cert(), "").unwrap();
    assert!(matches!(pair.load(), Err(TlsError::NoCertificate(_))));
    fs::write(pair.cert(), vec![b'a'; 300 * 1024]).unwrap();
    assert!(matches!(pair.load(), Err(TlsError::TooLarge(_))));
    fs::remove_file(pair.cert()).unwrap();
    assert!(matches!(pair.load(), Err(TlsError::Io { .. })));
    assert!(!error.to_string().contains(key.lines().nth(1).unwrap()));
}
