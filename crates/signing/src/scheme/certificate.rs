//! Keys that come as certificates.

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{
    CertificateDer, ServerName, SubjectPublicKeyInfoDer, TrustAnchor, UnixTime,
};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage};

mod validity;

use super::key::{Purpose, SchemeKey, SchemeKeyError};
use super::refusal::Refusal;

/// The most certificates of a chain looked at: leaf, two or three intermediates, and a root that
/// senders like to add.
pub const MAX_CHAIN: usize = 8;

/// The most bytes of a chain in PEM.
pub const MAX_CHAIN_BYTES: usize = 64 * 1024;

/// What a certificate must be.
pub(crate) struct Wanted<'a> {
    /// The name it is for.
    pub(crate) subject: &'a str,
    /// Whether it may come without its issuers.
    pub(crate) leaf_alone: bool,
    /// What its key is for.
    pub(crate) purpose: Purpose,
}

/// The public key of a certificate in PEM (leaf first) that leads to one of the anchors, is for
/// the subject and valid at the time.
pub(crate) fn key_of_chain(
    pem: &[u8],
    wanted: &Wanted<'_>,
    anchors: &[TrustAnchor<'_>],
    now_unix_ms: i64,
) -> Result<SchemeKey, Refusal> {
    if pem.len() > MAX_CHAIN_BYTES {
        return Err(Refusal::Certificate);
    }
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem)
        .take(MAX_CHAIN)
        .collect::<Result<_, _>>()
        .map_err(|_| Refusal::Certificate)?;
    let (leaf, intermediates) = certificates.split_first().ok_or(Refusal::Certificate)?;
    let der = leaf;
    let leaf = EndEntityCert::try_from(leaf).map_err(|_| Refusal::Certificate)?;
    let seconds = u64::try_from(now_unix_ms / 1000).map_err(|_| Refusal::Certificate)?;
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    let judged = leaf.verify_for_usage(
        ALL_VERIFICATION_ALGS,
        anchors,
        intermediates,
        time,
        KeyUsage::server_auth(),
        None,
        None,
    );
    match judged {
        Ok(_) => {}
        Err(webpki::Error::UnknownIssuer) if wanted.leaf_alone && intermediates.is_empty() => {
            validity::check(der, seconds).ok_or(Refusal::Certificate)?;
        }
        Err(_) => return Err(Refusal::Certificate),
    }
    let name = ServerName::try_from(wanted.subject).map_err(|_| Refusal::Certificate)?;
    leaf.verify_is_valid_for_subject_name(&name).map_err(|_| Refusal::Certificate)?;
    let spki = leaf.subject_public_key_info();
    SchemeKey::from_spki(0, wanted.purpose, spki.as_ref()).map_err(|_| Refusal::Certificate)
}

/// The `SubjectPublicKeyInfo` inside a public key or certificate in PEM, which an operator gave:
/// its validity is his to judge.
pub(crate) fn public_key_of_pem(text: &str) -> Result<Vec<u8>, SchemeKeyError> {
    const ERROR: SchemeKeyError = SchemeKeyError::Encoding(super::KeyEncoding::Pem);
    if text.contains("PRIVATE KEY-----") {
        return Err(SchemeKeyError::PrivateKeyGiven);
    }
    if let Ok(key) = SubjectPublicKeyInfoDer::from_pem_slice(text.as_bytes()) {
        return Ok(key.to_vec());
    }
    let certificate = CertificateDer::from_pem_slice(text.as_bytes()).map_err(|_| ERROR)?;
    let certificate = EndEntityCert::try_from(&certificate).map_err(|_| ERROR)?;
    Ok(certificate.subject_public_key_info().to_vec())
}
