//! Small text helpers.

use std::{error::Error, fmt::Write as _};

/// An error with everything beneath it, for the log.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        // Writing to a string does not fail.
        write!(text, ": {cause}").unwrap_or_default();
        next = cause.source();
    }
    text
}

/// At most `length` bytes of the text, cut between characters and marked.
pub(crate) fn clip(text: &str, length: usize) -> String {
    if text.len() <= length {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(length);
    format!("{}…", &text[..end])
}
