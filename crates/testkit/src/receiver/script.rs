//! What a receiver answers, and when.

use std::{collections::HashMap, time::Duration};

/// One scripted answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub(super) kind: Kind,
    pub(super) delay: Duration,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Body,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Status(u16),
    Hang,
    Reset,
}

/// The answer's body: `total` bytes, `chunk` at a time with a pause after each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) total: u64,
    pub(super) chunk: usize,
    pub(super) pause: Duration,
}

/// Size of one write of a body that is not dripped.
const CHUNK_BYTES: usize = 16 * 1024;

impl Answer {
    /// A status with an empty body.
    #[must_use]
    pub const fn status(status: u16) -> Self {
        Self::of(Kind::Status(status))
    }

    /// Accepts the request and never answers.
    #[must_use]
    pub const fn hang() -> Self {
        Self::of(Kind::Hang)
    }

    /// Reads the request and resets the connection instead of an answer.
    #[must_use]
    pub const fn reset() -> Self {
        Self::of(Kind::Reset)
    }

    const fn of(kind: Kind) -> Self {
        let body = Body { total: 0, chunk: CHUNK_BYTES, pause: Duration::ZERO };
        Self { kind, delay: Duration::ZERO, headers: Vec::new(), body }
    }

    /// Answers (or resets) only after this time.
    #[must_use]
    pub const fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends a body of this many bytes as fast as it is read.
    #[must_use]
    pub const fn with_body(mut self, bytes: u64) -> Self {
        self.body.total = bytes;
        self
    }

    /// Sends a body of `bytes` one byte at a time with a pause after each.
    #[must_use]
    pub const fn dripping(mut self, bytes: u64, pause: Duration) -> Self {
        self.body = Body { total: bytes, chunk: 1, pause };
        self
    }
}

/// Answers by path. The last answer of a list repeats.
#[derive(Clone, Debug, Default)]
pub struct Script {
    paths: HashMap<String, Vec<Answer>>,
    others: Vec<Answer>,
    counted_by: Option<String>,
    pub(super) counting_only: bool,
}

impl Script {
    /// The same answer for everything.
    #[must_use]
    pub fn always(answer: Answer) -> Self {
        Self::sequence([answer])
    }

    /// One answer after the other for everything; the last one repeats.
    #[must_use]
    pub fn sequence(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { others: answers.into_iter().collect(), ..Self::default() }
    }

    /// A sequence for one path. Paths are counted apart.
    #[must_use]
    pub fn on(mut self, path: &str, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.paths.insert(path.to_owned(), answers.into_iter().collect());
        self
    }

    /// Counts the sequence apart for each value of a request header, such as `webhook-id`: every
    /// event then meets the same failures.
    #[must_use]
    pub fn counted_by(mut self, header: &str) -> Self {
        self.counted_by = Some(header.to_ascii_lowercase());
        self
    }

    /// Keeps counters but no requests, for load.
    #[must_use]
    pub const fn counting_only(mut self) -> Self {
        self.counting_only = true;
        self
    }
}

/// How far a script has come.
#[derive(Debug)]
pub(super) struct Position {
    script: Script,
    reached: HashMap<(String, Vec<u8>), usize>,
}

impl Position {
    pub(super) fn new(script: Script) -> Self {
        Self { script, reached: HashMap::new() }
    }

    pub(super) const fn counting_only(&self) -> bool {
        self.script.counting_only
    }

    /// The next answer for a path without its query. 200 where the script says nothing.
    pub(super) fn next(&mut self, path: &str, headers: &[(String, Vec<u8>)]) -> Answer {
        let known = self.script.paths.get(path);
        let answers = known.unwrap_or(&self.script.others);
        let Some(last) = answers.len().checked_sub(1) else {
            return Answer::status(200);
        };
        // Nothing to count: under load the map must not grow with every event id.
        if last == 0 {
            return answers[0].clone();
        }
        let value = self.script.counted_by.as_ref().and_then(|name| {
            headers.iter().find(|(candidate, _)| candidate == name).map(|(_, value)| value.clone())
        });
        let path = known.map_or("", |_| path).to_owned();
        let reached = self.reached.entry((path, value.unwrap_or_default())).or_default();
        let answer = answers[(*reached).min(last)].clone();
        *reached += 1;
        answer
    }
}
