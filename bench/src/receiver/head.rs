//! As much of an HTTP/1.1 request head as a receiver needs.

/// Longest head taken: the server sends about 600 bytes.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Ends a head.
const END: &[u8] = b"\r\n\r\n";

/// A request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Bytes of head and body together.
    pub(super) total: usize,
    /// The number in the event's id.
    pub(super) event: u32,
}

/// The request does not look like one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// Reads a head from the start of `bytes`; `None` while it is not complete.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Head>, Broken> {
    let Some(end) = find_end(bytes) else {
        return if bytes.len() > HEAD_BYTES_MAX { Err(Broken) } else { Ok(None) };
    };
    let mut event = None;
    let mut length = None;
    for line in bytes[..end].split(|byte| *byte == b'\n').skip(1) {
        if let Some(value) = value_of(line, b"webhook-id:") {
            event = event_number(value);
        } else if let Some(value) = value_of(line, b"content-length:") {
            length = number(value).and_then(|bytes| usize::try_from(bytes).ok());
        }
    }
    // A body without a length, such as a chunked one, would be read as the next request.
    let (Some(event), Some(length)) = (event, length) else {
        return Err(Broken);
    };
    Ok(Some(Head { total: end + END.len() + length, event }))
}

fn find_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(END.len()).position(|window| window == END)
}

fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

/// Event ids end in their number: `<run>-<number>`.
fn event_number(id: &[u8]) -> Option<u32> {
    let digits = id.rsplit(|byte| *byte == b'-').next()?;
    number(digits).and_then(|number| u32::try_from(number).ok())
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] =
        b"POST / HTTP/1.1\r\nHost: a\r\nWebhook-Id: 0af3-000000042\r\ncontent-length: 5\r\n\r\nhello";

    #[test]
    fn a_head_gives_the_event_and_where_the_request_ends() {
        let head = Head { total: REQUEST.len(), event: 42 };
        assert_eq!(parse(REQUEST), Ok(Some(head)));
        assert_eq!(parse(&REQUEST[..40]), Ok(None));
    }

    #[test]
    fn a_request_without_length_or_event_is_broken() {
        assert_eq!(parse(b"POST / HTTP/1.1\r\nwebhook-id: a-1\r\n\r\n"), Err(Broken));
        assert_eq!(parse(b"POST / HTTP/1.1\r\ncontent-length: 1\r\n\r\n"), Err(Broken));
        assert_eq!(parse(&[b'x'; HEAD_BYTES_MAX + 1]), Err(Broken));
    }
}
