//! `turnbuckle source test`

use super::{
    common::read_input,
    error::{Usage, printable},
    global::Session,
    names::{self, Collection},
    output::Format,
};
use turnbuckle_proto::v1::{self, SourceTestOutcome};

/// Options of `source test`.
#[derive(Clone, Debug, clap::Args)]
pub struct TestArgs {
    /// Which source.
    pub source: String,
    /// The key that signs the sample: the active one when it is missing.
    #[arg(long, value_name = "KEY", conflicts_with = "request")]
    pub key: Option<String>,
    /// Store the request and send its events to subscribers, as if its sender had sent it.
    #[arg(long)]
    pub deliver: bool,
    /// A captured request instead of a sample: request line, headers, an empty line, then the body as it
    /// was; - for stdin. Without a request line it is a POST.
    #[arg(long, value_name = "FILE")]
    pub request: Option<String>,
}

pub(super) async fn run(args: TestArgs, session: &mut Session) -> anyhow::Result<()> {
    let name = Collection::Sources.name(&session.parent, &args.source)?;
    let key = args.key.map(|key| names::key(&name, &key)).transpose()?.unwrap_or_default();
    let request = match &args.request {
        Some(path) => Some(captured(path, &read_input(path)?)?),
        None => None,
    };
    let request = v1::TestSourceRequest { name, key, deliver: args.deliver, request };
    let answer = session.client.source_tests().test_source(request).await?.into_inner();
    match session.output.format() {
        Format::Table => session.output.raw(words(&answer).as_bytes())?,
        Format::Json | Format::Yaml | Format::Name => session.output.one(&answer)?,
    }
    anyhow::ensure!(answer.accepted, "the test was not accepted: {}", printable(&answer.summary));
    Ok(())
}

/// A line for each step. Parts of it come from requests: shown harmlessly.
fn words(answer: &v1::TestSourceResponse) -> String {
    let mut text = String::new();
    for step in &answer.steps {
        let mark = match step.outcome() {
            SourceTestOutcome::Passed => "ok",
            SourceTestOutcome::Failed => "NO",
            SourceTestOutcome::Skipped | SourceTestOutcome::Unspecified => "-",
        };
        let (name, detail) = (printable(&step.step), printable(&step.detail));
        text.push_str(&format!("{mark:<3}{name:<12} {detail}\n"));
    }
    if !answer.answer_body.is_empty() {
        text.push_str(&format!("   {:<12} {}\n", "body", printable(&answer.answer_body)));
    }
    if !answer.event.is_empty() {
        text.push_str(&format!("   {:<12} {}\n", "event", printable(&answer.event)));
    }
    text.push_str(&format!("\n{}\n", printable(&answer.summary)));
    text
}

/// Reads a request as tools show it. The body is taken byte by byte.
fn captured(shown: &str, bytes: &[u8]) -> Result<v1::CapturedRequest, Usage> {
    let wrong = |what: &str| Usage(format!("{shown} holds no request: {what}"));
    let (head, body) = split(bytes).ok_or_else(|| wrong("no empty line ends its headers"))?;
    let head = std::str::from_utf8(head).map_err(|_| wrong("its headers are no text"))?;
    let mut request = v1::CapturedRequest { body: body.to_vec(), ..v1::CapturedRequest::default() };
    for (index, line) in head.lines().enumerate() {
        let is_request_line = index == 0 && line.split(' ').count() == 3 && line.contains(" /");
        if is_request_line {
            let mut parts = line.split(' ');
            request.method = parts.next().unwrap_or_default().to_owned();
            let target = parts.next().unwrap_or_default();
            request.query = target.split_once('?').map_or("", |(_, query)| query).to_owned();
            continue;
        }
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| wrong(&format!("line {} is no header: use NAME: VALUE", index + 1)))?;
        request.headers.push(v1::CapturedHeader {
            name: name.trim().to_owned(),
            value: value.trim().to_owned(),
        });
    }
    Ok(request)
}

/// Head and body, with either kind of line ends.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let ends = [b"\r\n\r\n".as_slice(), b"\n\n".as_slice()];
    let found = ends.iter().filter_map(|end| {
        let at = bytes.windows(end.len()).position(|window| window == *end)?;
        Some((at, end.len()))
    });
    let (at, length) = found.min()?;
    Some((&bytes[..at], &bytes[at + length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_captured_request_is_read_with_either_line_ends_and_its_body_byte_by_byte() {
        let text =
            b"POST /in/x?a=1&b=2 HTTP/1.1\r\nX-Sig: v1=ab, v1=cd\r\nHost: h:1\r\n\r\n{\n\n}\r\n";
        let request = captured("f", text).unwrap();
        assert_eq!((request.method.as_str(), request.query.as_str()), ("POST", "a=1&b=2"));
        assert_eq!(request.headers[0].value, "v1=ab, v1=cd");
        assert_eq!(request.headers[1].value, "h:1");
        assert_eq!(request.body, b"{\n\n}\r\n");
        let bare = captured("f", b"X-Sig: 1\n\n\xff\x00").unwrap();
        assert_eq!((bare.method.as_str(), bare.headers.len()), ("", 1));
        assert_eq!(bare.body, b"\xff\x00");
    }

    #[test]
    fn what_is_no_request_is_wrong_usage() {
        for bad in [b"".as_slice(), b"X-Sig: 1", b"no header\n\n", b"\xff: 1\n\nx"] {
            assert!(captured("f", bad).is_err());
        }
    }
}
