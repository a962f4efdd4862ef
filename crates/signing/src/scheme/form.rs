//! Query strings and form bodies, as bytes.

use std::borrow::Cow;

use super::limits::MAX_FORM_FIELDS;

/// The value of a field; an error when it is there twice, since two readers might take different
/// ones.
pub(crate) fn field<'a>(raw: &'a [u8], name: &str) -> Result<Option<Cow<'a, [u8]>>, Repeated> {
    let mut found = None;
    for (candidate, value) in pairs(raw) {
        if decode(candidate) == name.as_bytes() && found.replace(value).is_some() {
            return Err(Repeated);
        }
    }
    Ok(found.map(decode))
}

/// A field that is there twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeated;

/// Name, value, name, value … of all fields, decoded and sorted, equal fields once; nothing when
/// there are more than [`MAX_FORM_FIELDS`].
pub(crate) fn sorted(raw: &[u8]) -> Option<Vec<Cow<'_, [u8]>>> {
    let mut fields: Vec<_> = Vec::new();
    for (name, value) in pairs(raw) {
        if fields.len() == MAX_FORM_FIELDS {
            return None;
        }
        fields.push((decode(name), decode(value)));
    }
    fields.sort_unstable();
    fields.dedup();
    Some(fields.into_iter().flat_map(|(name, value)| [name, value]).collect())
}

/// The query string of a URL, empty without one.
pub(crate) fn query(url: &str) -> &str {
    let url = url.split_once('#').map_or(url, |(before, _)| before);
    url.split_once('?').map_or("", |(_, query)| query)
}

fn pairs(raw: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    raw.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).map(|pair| {
        match pair.iter().position(|byte| *byte == b'=') {
            Some(at) => (&pair[..at], &pair[at + 1..]),
            None => (pair, &pair[pair.len()..]),
        }
    })
}

/// `+` is a blank and `%41` an `A`; what is no escape stays as it is.
fn decode(raw: &[u8]) -> Cow<'_, [u8]> {
    if !raw.iter().any(|byte| matches!(byte, b'%' | b'+')) {
        return Cow::Borrowed(raw);
    }
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'+', _) => decoded.push(b' '),
            (b'%', [high, low, ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => {
                    decoded.push(high << 4 | low);
                    rest = &after[2..];
                }
                _ => decoded.push(b'%'),
            },
            (other, _) => decoded.push(*other),
        }
    }
    Cow::Owned(decoded)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_as_bytes() {
        let raw = b"a=1&b+c=%C3%A9%ff+x&d&=e&f=%4&g=%zz%";
        assert_eq!(field(raw, "a").unwrap().unwrap().as_ref(), b"1");
        assert_eq!(field(raw, "b c").unwrap().unwrap().as_ref(), b"\xc3\xa9\xff x");
        assert_eq!(field(raw, "d").unwrap().unwrap().as_ref(), b"");
        assert_eq!(field(raw, "f").unwrap().unwrap().as_ref(), b"%4");
        assert_eq!(field(raw, "g").unwrap().unwrap().as_ref(), b"%zz%");
        assert_eq!(field(raw, "x"), Ok(None));
        assert_eq!(field(b"a=1&%61=2", "a"), Err(Repeated));
    }

    #[test]
    fn equal_fields_are_sorted_in_once() {
        let joined = sorted(b"b=2&a=3&b=1&b=2&").unwrap().concat();
        assert_eq!(joined, b"a3b1b2");
        assert!(sorted("a&".repeat(MAX_FORM_FIELDS + 1).as_bytes()).is_none());
        assert!(sorted("a&".repeat(MAX_FORM_FIELDS).as_bytes()).is_some());
    }

    #[test]
    fn the_query_stands_between_the_question_mark_and_the_fragment() {
        assert_eq!(query("https://a/b?c=1?d#e?f"), "c=1?d");
        assert_eq!(query("https://a/b#e?f"), "");
    }
}
