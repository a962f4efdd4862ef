//! Pages of what happened.

use prost::Message;
use turnbuckle_runtime::page::{PageToken, fitting};

/// The messages of one page and the token of the next, empty at the end. The rows were read with
/// this limit. A page of large rows ends early.
pub(super) fn page<R, M: Message>(
    rows: Vec<R>,
    limit: u16,
    scope: &str,
    key: impl Fn(&R) -> String,
    message: impl Fn(R) -> M,
) -> (Vec<M>, String) {
    let full = rows.len() >= usize::from(limit);
    let keys: Vec<String> = rows.iter().map(key).collect();
    let mut messages: Vec<M> = rows.into_iter().map(message).collect();
    let fit = fitting(messages.iter().map(Message::encoded_len));
    let more = full || fit < messages.len();
    messages.truncate(fit);
    let last = keys.get(fit.saturating_sub(1)).filter(|_| more);
    (messages, last.map(|last| PageToken::encode(scope, last)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_proto::v1::Attempt;
    use turnbuckle_runtime::page::PAGE_BYTES_MAX;

    fn cut(rows: &[(i32, usize)], limit: u16) -> (Vec<i32>, Option<String>) {
        let message = |(number, bytes): (i32, usize)| Attempt {
            number,
            detail: "x".repeat(bytes),
            ..Attempt::default()
        };
        let key = |row: &(i32, usize)| row.0.to_string();
        let (messages, token) = page(rows.to_vec(), limit, "s", key, message);
        let numbers = messages.iter().map(|attempt| attempt.number).collect();
        (numbers, PageToken::decode("s", &token).unwrap())
    }

    #[test]
    fn a_full_page_leads_on_and_a_short_one_ends() {
        assert_eq!(cut(&[(1, 1), (2, 1)], 2), (vec![1, 2], Some("2".to_owned())));
        assert_eq!(cut(&[(1, 1), (2, 1)], 3), (vec![1, 2], None));
        assert_eq!(cut(&[], 3), (vec![], None));
    }

    #[test]
    fn large_rows_end_a_page_early() {
        let half = PAGE_BYTES_MAX / 2 + 1;
        assert_eq!(cut(&[(1, half), (2, half), (3, 1)], 9), (vec![1], Some("1".to_owned())));
        assert_eq!(cut(&[(1, 2 * half)], 9), (vec![1], None));
    }
}
