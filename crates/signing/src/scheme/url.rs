//! The spellings of a URL that senders sign.

use std::borrow::Cow;

use super::model::UrlVariant;

/// The URL in one spelling; `None` when it is no URL with a host.
pub(crate) fn spell(url: &str, variant: UrlVariant) -> Option<Cow<'_, str>> {
    match variant {
        UrlVariant::AsIs => Some(Cow::Borrowed(url)),
        UrlVariant::WithPort => with_port(url),
        UrlVariant::WithoutPort => {
            let parts = Parts::of(url)?;
            Some(Cow::Owned(format!("{}{}{}", parts.before, parts.host, parts.after)))
        }
        UrlVariant::Unescaped => Some(unescaped(url)),
        UrlVariant::QuoteEscaped => Some(Cow::Owned(url.replace('\'', "%27"))),
    }
}

/// A URL around its host and port.
struct Parts<'u> {
    /// Scheme, slashes and user.
    before: &'u str,
    host: &'u str,
    /// With its colon, or empty.
    port: &'u str,
    after: &'u str,
}

impl<'u> Parts<'u> {
    fn of(url: &'u str) -> Option<Self> {
        let authority = url.find("://")? + "://".len();
        let end = url[authority..].find(['/', '?', '#']).map_or(url.len(), |at| authority + at);
        let start = url[authority..end].rfind('@').map_or(authority, |at| authority + at + 1);
        let (host_port, after) = (&url[start..end], &url[end..]);
        // The colons inside an IPv6 address are before its bracket.
        let after_bracket = host_port.rfind(']').map_or(0, |at| at + 1);
        let colon = host_port[after_bracket..].find(':').map(|at| after_bracket + at);
        let (host, port) = host_port.split_at(colon.unwrap_or(host_port.len()));
        (!host.is_empty()).then_some(Self { before: &url[..start], host, port, after })
    }
}

fn with_port(url: &str) -> Option<Cow<'_, str>> {
    let parts = Parts::of(url)?;
    if !parts.port.is_empty() {
        return Some(Cow::Borrowed(url));
    }
    let port = if parts.before.starts_with("http:") { ":80" } else { ":443" };
    Some(Cow::Owned(format!("{}{}{port}{}", parts.before, parts.host, parts.after)))
}

/// Decodes the escapes that stand for one of `:/?@!$'()*,;`, each once.
fn unescaped(url: &str) -> Cow<'_, str> {
    const DECODED: [(&str, char); 12] = [
        ("%3A", ':'),
        ("%2F", '/'),
        ("%3F", '?'),
        ("%40", '@'),
        ("%21", '!'),
        ("%24", '$'),
        ("%27", '\''),
        ("%28", '('),
        ("%29", ')'),
        ("%2A", '*'),
        ("%2C", ','),
        ("%3B", ';'),
    ];
    if !url.contains('%') {
        return Cow::Borrowed(url);
    }
    let mut spelled = String::with_capacity(url.len());
    let mut rest = url;
    while let Some(at) = rest.find('%') {
        spelled.push_str(&rest[..at]);
        rest = &rest[at..];
        let escape = rest.get(..3).unwrap_or(rest);
        match DECODED.iter().find(|(code, _)| code.eq_ignore_ascii_case(escape)) {
            Some((code, decoded)) => {
                spelled.push(*decoded);
                rest = &rest[code.len()..];
            }
            None => {
                spelled.push('%');
                rest = &rest[1..];
            }
        }
    }
    spelled.push_str(rest);
    Cow::Owned(spelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variant(url: &str, variant: UrlVariant) -> String {
        spell(url, variant).unwrap().into_owned()
    }

    #[test]
    fn ports_come_and_go() {
        let with = |url| variant(url, UrlVariant::WithPort);
        assert_eq!(with("https://a.b/c?d"), "https://a.b:443/c?d");
        assert_eq!(with("http://a.b"), "http://a.b:80");
        assert_eq!(with("https://u:p@a.b:8443/c"), "https://u:p@a.b:8443/c");
        assert_eq!(with("https://[::1]/c:d"), "https://[::1]:443/c:d");
        let without = |url| variant(url, UrlVariant::WithoutPort);
        assert_eq!(without("https://a.b:443/c?d=:1"), "https://a.b/c?d=:1");
        assert_eq!(without("https://u:p@[::1]:1?x"), "https://u:p@[::1]?x");
        assert_eq!(without("https://a.b/c"), "https://a.b/c");
        assert_eq!(spell("/only/a/path", UrlVariant::WithPort), None);
        assert_eq!(spell("https://:1/", UrlVariant::WithoutPort), None);
    }

    #[test]
    fn escapes_are_decoded_once_and_only_the_listed_ones() {
        let decoded = |url| variant(url, UrlVariant::Unescaped);
        assert_eq!(decoded("https://a/%3a%2F%20%253A%"), "https://a/:/%20%253A%");
        assert_eq!(decoded("https://a/é%é"), "https://a/é%é");
        assert_eq!(variant("https://a/?b='c'", UrlVariant::QuoteEscaped), "https://a/?b=%27c%27");
    }
}
