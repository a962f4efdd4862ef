//! Digests over parts, so that nothing is copied together.

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// A part of what is signed.
pub(crate) enum Chunk<'a> {
    Bytes(std::borrow::Cow<'a, [u8]>),
    /// Where a plain digest takes in the key.
    Secret,
}

/// A digest or MAC; the longest there is has 64 bytes.
pub(crate) struct Sum {
    bytes: [u8; 64],
    length: usize,
}

impl Sum {
    fn new(bytes: &[u8]) -> Self {
        let mut sum = Self { bytes: [0; 64], length: bytes.len().min(64) };
        sum.bytes[..sum.length].copy_from_slice(&bytes[..sum.length]);
        sum
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A keyed hash state that is cloned for each message.
#[derive(Clone)]
pub(crate) enum MacState {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha384(Hmac<Sha384>),
    Sha512(Hmac<Sha512>),
}

/// Which MAC.
#[derive(Clone, Copy)]
pub(crate) enum MacKind {
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl MacState {
    /// `None` only if the library refused a key length, which it does for none.
    pub(crate) fn new(kind: MacKind, secret: &[u8]) -> Option<Self> {
        match kind {
            MacKind::Sha1 => Hmac::new_from_slice(secret).ok().map(Self::Sha1),
            MacKind::Sha256 => Hmac::new_from_slice(secret).ok().map(Self::Sha256),
            MacKind::Sha384 => Hmac::new_from_slice(secret).ok().map(Self::Sha384),
            MacKind::Sha512 => Hmac::new_from_slice(secret).ok().map(Self::Sha512),
        }
    }

    pub(crate) fn sum(&self, chunks: &[Chunk<'_>]) -> Sum {
        match self {
            Self::Sha1(state) => mac(state, chunks),
            Self::Sha256(state) => mac(state, chunks),
            Self::Sha384(state) => mac(state, chunks),
            Self::Sha512(state) => mac(state, chunks),
        }
    }
}

fn mac<M: Mac + Clone>(state: &M, chunks: &[Chunk<'_>]) -> Sum {
    let mut state = state.clone();
    for chunk in chunks {
        if let Chunk::Bytes(bytes) = chunk {
            state.update(bytes);
        }
    }
    Sum::new(&state.finalize().into_bytes())
}

/// The digest of the parts, with the secret where it belongs.
pub(crate) fn digest<D: Digest>(chunks: &[Chunk<'_>], secret: &[u8]) -> Sum {
    let mut state = D::new();
    for chunk in chunks {
        match chunk {
            Chunk::Bytes(bytes) => state.update(bytes),
            Chunk::Secret => state.update(secret),
        }
    }
    Sum::new(&state.finalize())
}

/// CRC-32 as Ethernet and zip have it.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = crc32_table();
    let step = |crc: u32, byte: &u8| {
        let index = (crc ^ u32::from(*byte)) & 0xff;
        TABLE[index as usize] ^ (crc >> 8)
    };
    !bytes.iter().fold(!0, step)
}

const fn crc32_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[index as usize] = value;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
