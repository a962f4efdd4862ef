//! Pages as they go out.

use crate::page::Page;
use prost::Message;
use turnbuckle_runtime::page::{PageToken, fitting};

/// The messages of a page and the token of the next one, empty at the end. A page of large rows
/// ends early.
pub(super) fn messages<T, M: Message>(
    page: &Page<T>,
    key: impl Fn(&T) -> &str,
    message: impl Fn(&T) -> M,
) -> (Vec<M>, String) {
    let mut messages: Vec<M> = page.rows.iter().map(message).collect();
    let fit = fitting(messages.iter().map(Message::encoded_len));
    let mut next = page.next.as_deref();
    if fit < messages.len() {
        messages.truncate(fit);
        next = page.rows.get(fit.saturating_sub(1)).map(key);
    }
    let token = next.map(|last| PageToken::encode(&page.scope, last));
    (messages, token.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_proto::v1;
    use turnbuckle_runtime::page::PAGE_BYTES_MAX;

    fn page(rows: &[&str], next: Option<&str>) -> Page<String> {
        let rows = rows.iter().map(|row| (*row).to_owned()).collect();
        Page { scope: "scope".to_owned(), rows, next: next.map(str::to_owned) }
    }

    fn tenant(uid: &str, bytes: usize) -> v1::Tenant {
        v1::Tenant { uid: uid.to_owned(), display_name: "x".repeat(bytes), ..Default::default() }
    }

    #[test]
    fn the_last_page_has_no_token() {
        let (rows, token) = messages(&page(&["a", "b"], None), String::as_str, |r| tenant(r, 1));
        assert_eq!((rows.len(), token.as_str()), (2, ""));
        let (rows, token) = messages(&page(&[], None), String::as_str, |r| tenant(r, 1));
        assert_eq!((rows.len(), token.as_str()), (0, ""));
    }

    #[test]
    fn a_token_follows_the_last_row_sent() {
        let (_, token) = messages(&page(&["a", "b"], Some("b")), String::as_str, |r| tenant(r, 1));
        assert_eq!(PageToken::decode("scope", &token).unwrap().as_deref(), Some("b"));
    }

    #[test]
    fn a_page_ends_before_it_is_too_large_to_send() {
        let size = PAGE_BYTES_MAX / 2 + 1;
        let (rows, token) =
            messages(&page(&["a", "b", "c"], None), String::as_str, |r| tenant(r, size));
        assert_eq!(rows.len(), 1);
        assert_eq!(PageToken::decode("scope", &token).unwrap().as_deref(), Some("a"));
    }
}
