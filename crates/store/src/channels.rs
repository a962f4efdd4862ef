//! Channels in a cell: a JSON list of names, and null for none.

use turnbuckle_domain::{Channel, Channels};

/// The cell's text.
pub(crate) fn text(channels: &Channels) -> Option<String> {
    if channels.is_empty() {
        return None;
    }
    let names = channels.iter().map(Channel::as_str);
    Some(serde_json::Value::from_iter(names).to_string())
}

/// Reads a cell; none when no code of ours wrote it.
pub(crate) fn parse(text: Option<&str>) -> Option<Channels> {
    let Some(text) = text else {
        return Some(Channels::default());
    };
    let names: Vec<String> = serde_json::from_str(text).ok()?;
    names.into_iter().map(|name| Channel::new(name).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_round_trip_and_none_is_null() {
        assert_eq!((text(&Channels::default()), parse(None)), (None, Some(Channels::default())));
        let some: Channels =
            ["b/2", "a:1"].into_iter().map(|name| Channel::new(name).unwrap()).collect();
        assert_eq!(text(&some).as_deref(), Some(r#"["a:1","b/2"]"#));
        assert_eq!(parse(text(&some).as_deref()), Some(some));
        for malformed in ["", "a", "{}", "[1]", r#"["a b"]"#] {
            assert_eq!(parse(Some(malformed)), None, "{malformed}");
        }
    }
}
