//! Compressed bodies: taken where the scheme says which bytes are signed, and never larger than a plain one.
//!
//! Every path reads such a body and refuses it alike, so that nobody learns which of them takes it.

use super::{Received, door::before_proof};
use crate::{
    body::BodyFault,
    memory::{BodyMemory, Owner, Share},
};
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::{HeaderMap, header};
use std::{io::Read as _, sync::Arc};
use turnbuckle_signing::scheme::{BodyForm, Scheme};

/// Decoded bytes for each byte that came, as long as nothing is proven: JSON of webhooks comes to 5 to 30,
/// and 1,000 is what nothing but zeros comes to.
const UNPROVEN_RATIO: usize = 100;
/// Decoded bytes that a body may have whatever its ratio: a small one of one field is not worth a refusal.
const UNPROVEN_FLOOR: usize = 64 * 1024;

/// How a body came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    Gzip,
    /// One that nobody takes, or several upon each other.
    Other,
}

impl Encoding {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
        let is = |value: &http::HeaderValue, name: &str| {
            value.as_bytes().trim_ascii().eq_ignore_ascii_case(name.as_bytes())
        };
        match (values.next(), values.next()) {
            (None, _) => Self::Plain,
            (Some(one), None) if is(one, "gzip") => Self::Gzip,
            (Some(one), more) if is(one, "identity") => {
                let plain = more.into_iter().chain(values).all(|value| is(value, "identity"));
                if plain { Self::Plain } else { Self::Other }
            }
            _ => Self::Other,
        }
    }
}

/// A body after its content encoding, with its share of the memory.
pub(super) struct Decoded {
    pub(super) bytes: Bytes,
    pub(super) share: Arc<Share>,
}

/// Why a body is not what its encoding says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecodeFault {
    Broken,
    TooLarge,
    NoMemory,
}

impl DecodeFault {
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::Broken => "its body is not what its content encoding says",
            Self::TooLarge => "its body is too large after content decoding",
            Self::NoMemory => "bodies of other requests took all memory set aside",
        }
    }
}

impl Received {
    /// Which bytes of a compressed body are signed; none for a plain body, and for one that is not taken.
    pub(super) fn body_form(&self) -> Option<BodyForm> {
        let scheme = self.entry.compiled.verifier.scheme();
        scheme.body_form.filter(|_| Encoding::of(&self.parts.headers) == Encoding::Gzip)
    }

    /// As many bytes as its decoding may come to.
    pub(super) fn work(&self) -> usize {
        self.body_form().map_or(self.body.bytes.len(), |form| self.most(form == BodyForm::Decoded))
    }

    fn most(&self, is_unproven: bool) -> usize {
        let limits = before_proof(&self.entry.source().settings.limits);
        let most = usize::try_from(limits.body_bytes).unwrap_or(usize::MAX);
        let by_ratio = self.body.bytes.len().saturating_mul(UNPROVEN_RATIO).max(UNPROVEN_FLOOR);
        if is_unproven { most.min(by_ratio) } else { most }
    }

    /// The body after content decoding, kept until the request is.
    pub(super) fn decode(
        &self,
        memory: &BodyMemory,
        is_unproven: bool,
    ) -> Result<Bytes, DecodeFault> {
        if let Some(decoded) = self.decoded.get() {
            return Ok(decoded.bytes.clone());
        }
        let source = self.entry.source();
        let owner = Owner::Source(source.tenant, source.id);
        let most = self.most(is_unproven);
        let mut share = memory.share(owner, most).ok_or(DecodeFault::NoMemory)?;
        let bytes = Bytes::from(gunzip(&self.body.bytes, most)?);
        share.shrink(bytes.len());
        Ok(self.decoded.get_or_init(|| Decoded { bytes, share: Arc::new(share) }).bytes.clone())
    }

    /// What its events are read from: the decoded body where there is one.
    pub(super) fn content(&self) -> &Bytes {
        self.decoded.get().map_or(&self.body.bytes, |decoded| &decoded.bytes)
    }
}

/// Whether requests that come compressed can be verified.
pub(super) const fn takes_gzip(scheme: &Scheme) -> bool {
    scheme.body_form.is_some()
}

/// Decodes to so many bytes at most. Members behind each other are one body, as RFC 1952 says; anything
/// else behind them is a fault.
fn gunzip(body: &[u8], most: usize) -> Result<Vec<u8>, DecodeFault> {
    let mut bytes = Vec::new();
    let bound = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let mut decoder = MultiGzDecoder::new(body).take(bound);
    decoder.read_to_end(&mut bytes).map_err(|_| DecodeFault::Broken)?;
    if bytes.len() > most {
        return Err(DecodeFault::TooLarge);
    }
    bytes.shrink_to_fit();
    Ok(bytes)
}

impl From<DecodeFault> for BodyFault {
    fn from(fault: DecodeFault) -> Self {
        match fault {
            DecodeFault::Broken => Self::Broken,
            DecodeFault::TooLarge => Self::TooLarge,
            DecodeFault::NoMemory => Self::NoMemory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use http::HeaderValue;
    use std::io::Write as _;

    const MIB: usize = 1024 * 1024;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_body_comes_out_as_it_went_in_and_never_larger_than_it_may() {
        let body = br#"{"id":"1","type":"a"}"#.repeat(100);
        let sent = gzip(&body);
        assert_eq!(gunzip(&sent, body.len()).unwrap(), body);
        assert_eq!(gunzip(&sent, body.len() - 1), Err(DecodeFault::TooLarge));
        let twice = [sent.as_slice(), &sent].concat();
        assert_eq!(gunzip(&twice, MIB).unwrap().len(), 2 * body.len());
    }

    #[test]
    fn a_bomb_is_left_at_the_bound() {
        // A gigabyte of zeros as 1 MiB: members of 64 MiB each.
        let bomb = gzip(&vec![0; 64 * MIB]).repeat(16);
        assert!(bomb.len() < 2 * MIB);
        assert_eq!(gunzip(&bomb, MIB), Err(DecodeFault::TooLarge));
    }

    #[test]
    fn a_broken_body_is_told_and_harms_nothing() {
        let sent = gzip(b"{}");
        let mut changed = sent.clone();
        let at = changed.len() - 6;
        changed[at] ^= 1;
        let behind = [sent.as_slice(), b"x"].concat();
        for broken in [&b"{}"[..], b"", &sent[..sent.len() - 1], &changed, &behind] {
            assert_eq!(gunzip(broken, MIB), Err(DecodeFault::Broken), "{broken:?}");
        }
    }

    #[test]
    fn one_encoding_is_known_and_never_two_of_them() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::CONTENT_ENCODING, HeaderValue::from_static(value));
            }
            Encoding::of(&headers)
        };
        assert_eq!(of(&[]), Encoding::Plain);
        assert_eq!(of(&["identity", "Identity"]), Encoding::Plain);
        assert_eq!(of(&["GZip"]), Encoding::Gzip);
        for values in [&["gzip", "gzip"][..], &["gzip, gzip"], &["br"], &["identity", "gzip"]] {
            assert_eq!(of(values), Encoding::Other, "{values:?}");
        }
    }
}
