//! Page sizes and page tokens of list methods.
//!
//! A token says where the next page starts. It grants nothing: every page is checked against the
//! caller's tenant and role like the first. So it carries a checksum and no signature; the checksum
//! covers the scope, and a token of another list is refused instead of giving wrong pages.

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest as _, Sha256};
use turnbuckle_domain::Error;

/// Items of a page when the caller asks for none in particular.
const SIZE_DEFAULT: u16 = 50;

/// Most items of a page: larger requests are cut to it.
const SIZE_MAX: u16 = 1000;

/// Bytes of the checksum: enough that no accident passes.
const CHECKSUM_LENGTH: usize = 16;

/// Longest token looked at: a checksum and the longest sort key, with room.
const TOKEN_MAX: usize = 2048;

/// Separates these checksums from other uses of the hash, and one form of token from the next.
const DOMAIN: &[u8] = b"turnbuckle page token 1";

/// Items of a page for what the caller asked.
///
/// # Errors
/// When it is negative.
pub fn page_size(requested: i32) -> Result<u16, Error> {
    match requested {
        0 => Ok(SIZE_DEFAULT),
        1.. => Ok(u16::try_from(requested).map_or(SIZE_MAX, |size| size.min(SIZE_MAX))),
        _ => Err(Error::invalid("page_size", "must not be negative; leave it out for the default")),
    }
}

/// Most bytes of one page. gRPC clients refuse answers above 4 MiB unless told otherwise; a page
/// may always have fewer rows than asked for.
pub const PAGE_BYTES_MAX: usize = 3 * 1024 * 1024;

/// How many messages of these encoded sizes fit one page, from the first on. The first one always
/// goes out, or the list would never move on.
pub fn fitting(sizes: impl IntoIterator<Item = usize>) -> usize {
    let mut bytes: usize = 0;
    let fits = |size: &usize| {
        let first = bytes == 0;
        bytes = bytes.saturating_add(*size).max(1);
        first || bytes <= PAGE_BYTES_MAX
    };
    sizes.into_iter().take_while(fits).count()
}

/// Makes and reads page tokens.
pub struct PageToken;

impl PageToken {
    /// The token of the page after the item `last`. The scope is everything that the list depends
    /// on: tenant, method, filter.
    #[must_use]
    pub fn encode(scope: &str, last: &str) -> String {
        let mut bytes = checksum(scope, last).to_vec();
        bytes.extend_from_slice(last.as_bytes());
        BASE64URL_NOPAD.encode(&bytes)
    }

    /// The item after which the page starts; none for the first page.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a token of another scope, or none of ours.
    pub fn decode(scope: &str, token: &str) -> Result<Option<String>, Error> {
        if token.is_empty() {
            return Ok(None);
        }
        let last = last_item(scope, token).ok_or_else(|| {
            Error::invalid(
                "page_token",
                "is not a token of this list; send next_page_token with an unchanged request, \
                 or start again without a token",
            )
        })?;
        Ok(Some(last))
    }
}

fn last_item(scope: &str, token: &str) -> Option<String> {
    if token.len() > TOKEN_MAX {
        return None;
    }
    let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
    let (sum, last) = bytes.split_first_chunk::<CHECKSUM_LENGTH>()?;
    let last = std::str::from_utf8(last).ok()?;
    (*sum == checksum(scope, last)).then(|| last.to_owned())
}

fn checksum(scope: &str, last: &str) -> [u8; CHECKSUM_LENGTH] {
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    // The length keeps ("ab", "c") and ("a", "bc") apart.
    hash.update((scope.len() as u64).to_be_bytes());
    hash.update(scope);
    hash.update(last);
    let mut sum = [0; CHECKSUM_LENGTH];
    sum.copy_from_slice(&hash.finalize()[..CHECKSUM_LENGTH]);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_round_trips_in_its_scope() {
        for last in ["", "a", "orders/ä/7"] {
            let token = PageToken::encode("shop ListEndpoints ", last);
            let read = PageToken::decode("shop ListEndpoints ", &token).unwrap();
            assert_eq!(read.as_deref(), Some(last));
        }
    }

    #[test]
    fn the_first_page_has_no_token() {
        assert_eq!(PageToken::decode("scope", "").unwrap(), None);
    }

    #[test]
    fn tokens_are_the_same_in_every_process() {
        let token = PageToken::encode("shop ListEndpoints", "billing");
        assert_eq!(token, PageToken::encode("shop ListEndpoints", "billing"));
        assert_eq!(token, "kASG_VWt-IW5FgDGsljUJGJpbGxpbmc");
    }

    #[test]
    fn a_token_of_another_scope_is_refused() {
        let token = PageToken::encode("shop ListEndpoints a", "bc");
        for scope in ["bank ListEndpoints a", "shop ListEndpoints ab", "shop ListEndpoints ", ""] {
            assert!(PageToken::decode(scope, &token).is_err(), "{scope}");
        }
    }

    #[test]
    fn a_changed_token_is_refused() {
        let token = PageToken::encode("scope", "last");
        for position in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[position] = if changed[position] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(PageToken::decode("scope", &changed).is_err(), "{position}");
        }
        for garbage in ["x", "####", "AAAA", &"A".repeat(4000)] {
            let error = PageToken::decode("scope", garbage).unwrap_err();
            assert!(error.to_string().contains("page_token"), "{error}");
        }
    }

    #[test]
    fn a_page_ends_before_its_bytes_pass_the_bound() {
        assert_eq!(fitting([]), 0);
        assert_eq!(fitting([0, 0, 1]), 3);
        assert_eq!(fitting([PAGE_BYTES_MAX - 1, 1, 1]), 2);
        assert_eq!(fitting([PAGE_BYTES_MAX * 2, 1]), 1);
        assert_eq!(fitting([usize::MAX, usize::MAX]), 1);
    }

    #[test]
    fn page_sizes_have_a_default_and_a_bound() {
        assert_eq!(page_size(0).unwrap(), 50);
        assert_eq!(page_size(1).unwrap(), 1);
        assert_eq!(page_size(1000).unwrap(), 1000);
        assert_eq!(page_size(1001).unwrap(), 1000);
        assert_eq!(page_size(i32::MAX).unwrap(), 1000);
        assert!(page_size(-1).is_err());
        assert!(page_size(i32::MIN).is_err());
    }
}
