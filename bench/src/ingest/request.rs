//! Requests of a sender that keeps our own contract, and the answers to them.

use crate::{clock, payload};
use bytes::Bytes;
use std::io::Write as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use turnbuckle_signing::{Message, Profile, SignScratch, SignerOptions, SigningKey, sign_each};

/// Longest answer read: a problem document has a few hundred bytes.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// What an event has besides its payload.
const ENVELOPE_BYTES: usize = 120;

/// Makes signed requests.
pub(crate) struct Requests {
    key: SigningKey,
    options: SignerOptions,
    /// Request line and host.
    head: String,
    run: String,
    payloads: Vec<Bytes>,
}

/// What is reused from request to request.
#[derive(Default)]
pub(crate) struct Scratch {
    body: Vec<u8>,
    request: Vec<u8>,
    signing: SignScratch,
}

impl Requests {
    /// Requests to `path` with bodies of about `size` bytes.
    pub(crate) fn new(key: SigningKey, authority: &str, path: &str, size: usize) -> Self {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {authority}\r\ncontent-type: application/json\r\n"
        );
        Self {
            key,
            options: SignerOptions::default(),
            head,
            run: uuid::Uuid::now_v7().simple().to_string(),
            payloads: payload::variants(size.saturating_sub(ENVELOPE_BYTES)),
        }
    }

    /// The same requests, signed with another key.
    pub(crate) fn with_key(&self, key: SigningKey) -> Self {
        Self {
            key,
            options: self.options.clone(),
            head: self.head.clone(),
            run: format!("{}x", self.run),
            payloads: self.payloads.clone(),
        }
    }

    /// The bytes of a request, signed now.
    pub(crate) fn write<'a>(
        &self,
        number: u32,
        scratch: &'a mut Scratch,
    ) -> anyhow::Result<&'a [u8]> {
        let Scratch { body, request, signing } = scratch;
        let variant = usize::try_from(number).unwrap_or(0) % self.payloads.len();
        body.clear();
        write!(
            body,
            r#"{{"event_id":"{}-{number:09}","event_type":"bench.ingest","data":"#,
            self.run
        )?;
        body.extend_from_slice(&self.payloads[variant]);
        body.push(b'}');
        request.clear();
        request.extend_from_slice(self.head.as_bytes());
        let timestamp = clock::now_us() / 1_000_000;
        let message = Message { id: "unused", timestamp, body };
        let keys = [&self.key];
        sign_each(
            Profile::TimestampedHex,
            &keys,
            &message,
            &self.options,
            signing,
            |name, value| {
                for part in [&**name, ": ", value, "\r\n"] {
                    request.extend_from_slice(part.as_bytes());
                }
            },
        )?;
        write!(request, "content-length: {}\r\n\r\n", body.len())?;
        request.extend_from_slice(body);
        Ok(request)
    }
}

/// Sends a request and reads its answer; gives the status.
pub(crate) async fn exchange(
    stream: &mut TcpStream,
    request: &[u8],
    answer: &mut Vec<u8>,
) -> anyhow::Result<u16> {
    stream.write_all(request).await?;
    answer.clear();
    loop {
        anyhow::ensure!(answer.len() < ANSWER_BYTES_MAX, "the answer is too long");
        anyhow::ensure!(stream.read_buf(answer).await? > 0, "no complete answer");
        if let Some(status) = complete(answer)? {
            return Ok(status);
        }
    }
}

/// The status, once all of the answer is there.
fn complete(answer: &[u8]) -> anyhow::Result<Option<u16>> {
    let text = std::str::from_utf8(answer)?;
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return Ok(None) };
    let mut length = 0;
    for line in head.split("\r\n").skip(1) {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        }
    }
    if body.len() < length {
        return Ok(None);
    }
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(Some(status.ok_or_else(|| anyhow::anyhow!("no status"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_with_its_last_byte() {
        let answer = b"HTTP/1.1 202 Accepted\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(complete(&answer[..answer.len() - 1]).unwrap(), None);
        assert_eq!(complete(answer).unwrap(), Some(202));
        assert_eq!(complete(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap(), Some(204));
        assert!(complete(b"nonsense\r\n\r\n").is_err());
    }

    #[test]
    fn a_request_has_about_the_asked_size_and_is_json() {
        let key = SigningKey::hmac(&[7; 32]).unwrap();
        let requests = Requests::new(key, "127.0.0.1:1", "/in/x", 1_000);
        let mut scratch = Scratch::default();
        let text = requests.write(7, &mut scratch).unwrap().to_vec();
        let text = String::from_utf8(text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("-signature: v1="), "{head}");
        assert!((900..=1_000).contains(&body.len()), "{}", body.len());
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
