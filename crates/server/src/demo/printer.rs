//! The demo's own output: lines for people, or one JSON object per line.

use super::{
    checks::Check,
    ledger::{Published, Seen},
    setup::TENANT,
};
use serde::Serialize;
use std::{
    io::{self, IsTerminal as _, Write},
    path::Path,
    time::Duration,
};
use tokio::time::Instant;

/// One thing to show.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Line<'a> {
    Started {
        server: &'a str,
        healthy: &'a str,
        flaky: &'a str,
    },
    Published {
        event: &'a str,
        event_type: &'a str,
        bytes: usize,
        ack_ms: f64,
        deliveries: i32,
    },
    Repeated {
        event: &'a str,
        duplicate: bool,
        deliveries: i32,
    },
    Rotated {
        endpoint: &'a str,
        fingerprint: &'a str,
    },
    Attempt {
        event: &'a str,
        endpoint: &'a str,
        attempt: i32,
        status: i32,
        waited_ms: Option<f64>,
        verified_by: &'a [&'static str],
        signatures: &'a [String],
    },
    Check {
        name: &'a str,
        ok: bool,
        detail: String,
    },
    Endpoint {
        endpoint: &'a str,
        events: usize,
        attempts: usize,
        retries: usize,
    },
    Latency {
        what: &'a str,
        count: u64,
        p50_ms: f64,
        p99_ms: f64,
        max_ms: f64,
    },
    Verdict {
        checks: usize,
        failed: usize,
    },
    Next {
        server: &'a str,
        token_file: String,
        tenant: &'a str,
        folder: String,
    },
}

impl<'a> Line<'a> {
    pub(super) fn of_published(published: &'a Published) -> Self {
        Self::Published {
            event: &published.planned.event_id,
            event_type: published.planned.event_type,
            bytes: published.planned.data.len(),
            ack_ms: millis(published.ack),
            deliveries: published.answer.deliveries,
        }
    }

    pub(super) fn of_attempt(seen: &'a Seen, waited: Option<Duration>) -> Self {
        Self::Attempt {
            event: &seen.event_id,
            endpoint: seen.endpoint,
            attempt: seen.number,
            status: seen.status,
            waited_ms: waited.map(millis),
            verified_by: &seen.verified_by,
            signatures: &seen.signatures,
        }
    }

    pub(super) fn of_check(check: &'a Check) -> Self {
        Self::Check { name: check.name, ok: check.passed(), detail: check.detail() }
    }

    pub(super) fn next(server: &'a str, token_file: &Path, folder: &Path) -> Self {
        Self::Next {
            server,
            token_file: token_file.display().to_string(),
            tenant: TENANT,
            folder: folder.display().to_string(),
        }
    }
}

/// Milliseconds with microseconds behind the point.
pub(super) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// How a word looks on a terminal.
#[derive(Clone, Copy, Debug)]
enum Tone {
    Good,
    Waiting,
    Bad,
    Quiet,
}

/// Writes lines; a reader that went away does not stop the demo.
pub(super) struct Printer {
    out: Box<dyn Write + Send>,
    json: bool,
    colour: bool,
    progress: bool,
    began: Instant,
}

impl Printer {
    pub(super) fn standard(json: bool) -> Self {
        let terminal = io::stdout().is_terminal() && !json;
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            out: Box::new(io::stdout()),
            json,
            colour: terminal && !plain,
            progress: terminal && io::stderr().is_terminal(),
            began: Instant::now(),
        }
    }

    pub(super) fn line(&mut self, line: &Line<'_>) {
        let text = if self.json {
            self.json_line(line)
        } else {
            self.progress("");
            self.text(line)
        };
        // The exit code counts, not who reads along.
        drop(self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()));
    }

    /// Text that only people see: tables and headings.
    pub(super) fn plain(&mut self, text: &str) {
        if !self.json {
            drop(self.out.write_all(text.as_bytes()));
        }
    }

    /// A line on a terminal that the next one replaces.
    pub(super) fn progress(&mut self, text: &str) {
        if self.progress {
            drop(write!(io::stderr(), "\r\u{1b}[2K{text}"));
        }
    }

    fn json_line(&self, line: &Line<'_>) -> String {
        #[derive(Serialize)]
        struct Timed<'l, 'a> {
            at_ms: f64,
            #[serde(flatten)]
            line: &'l Line<'a>,
        }
        let timed = Timed { at_ms: millis(self.began.elapsed()), line };
        serde_json::to_string(&timed).map_or_else(|_| String::new(), |text| text + "\n")
    }

    fn text(&self, line: &Line<'_>) -> String {
        match line {
            Line::Started { server, healthy, flaky } => started(server, healthy, flaky),
            Line::Next { server, token_file, tenant, folder } => {
                next(server, token_file, tenant, folder)
            }
            Line::Check { .. } | Line::Verdict { .. } => self.judgement(line),
            // Shown as a table instead.
            Line::Endpoint { .. } | Line::Latency { .. } => String::new(),
            Line::Published { .. }
            | Line::Repeated { .. }
            | Line::Rotated { .. }
            | Line::Attempt { .. } => {
                let at = format!("{:>7.3}s", self.began.elapsed().as_secs_f64());
                format!("{}  {}\n", self.paint(Tone::Quiet, &at), self.happening(line))
            }
        }
    }

    fn happening(&self, line: &Line<'_>) -> String {
        match line {
            Line::Published { event, bytes, ack_ms, deliveries, .. } => {
                let plural = if *deliveries == 1 { "" } else { "s" };
                format!(
                    "published  {event:<22} {bytes:>6} B, durable after {ack_ms:.1} ms, \
                     for {deliveries} endpoint{plural}"
                )
            }
            Line::Repeated { event, duplicate, deliveries } => {
                let word = if *duplicate {
                    self.paint(Tone::Good, "flagged duplicate")
                } else {
                    self.paint(Tone::Bad, "NOT flagged")
                };
                format!("repeated   {event:<22} {word}, {deliveries} new deliveries")
            }
            Line::Rotated { endpoint, fingerprint } => {
                format!("rotated    {endpoint}: new key {fingerprint} signs, the old one beside it")
            }
            _ => self.attempt(line),
        }
    }

    fn judgement(&self, line: &Line<'_>) -> String {
        match line {
            Line::Check { name, ok: true, .. } => {
                format!("{}  {name}\n", self.paint(Tone::Good, "      ok"))
            }
            Line::Check { name, detail, .. } => {
                format!("{}  {name}: {detail}\n", self.paint(Tone::Bad, "  FAILED"))
            }
            Line::Verdict { checks, failed: 0 } => {
                let text = format!("All {checks} promises kept.");
                format!("\n{}\n", self.paint(Tone::Good, &text))
            }
            Line::Verdict { checks, failed } => {
                let text = format!("{failed} of {checks} promises broken.");
                format!("\n{}\n", self.paint(Tone::Bad, &text))
            }
            _ => String::new(),
        }
    }

    fn attempt(&self, line: &Line<'_>) -> String {
        let Line::Attempt { event, endpoint, attempt, status, waited_ms, verified_by, signatures } =
            line
        else {
            return String::new();
        };
        let tone = match status {
            200 => Tone::Good,
            401 => Tone::Bad,
            _ => Tone::Waiting,
        };
        let status = self.paint(tone, &status.to_string());
        let waited = waited_ms.map_or_else(String::new, |ms| format!("  after {ms:.0} ms"));
        let keys =
            if verified_by.is_empty() { "NO KEY".to_owned() } else { verified_by.join(" + ") };
        let shown = self.paint(Tone::Quiet, &signatures.join(" "));
        format!("attempt {attempt}  {event:<22} {endpoint:<8} {status}  {keys}  {shown}{waited}")
    }

    fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => 32,
            Tone::Waiting => 33,
            Tone::Bad => 31,
            Tone::Quiet => 2,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

fn started(server: &str, healthy: &str, flaky: &str) -> String {
    format!(
        "Turnbuckle demo: all roles in one process, embedded store in a temporary directory\n\
         \x20 server   {server}\n\
         \x20 healthy  {healthy}  answers 200\n\
         \x20 flaky    {flaky}  answers 503, 503, 429 with Retry-After, then 200\n\n"
    )
}

fn next(server: &str, token_file: &str, tenant: &str, folder: &str) -> String {
    format!(
        "\nStill serving; Ctrl-C ends it and removes {folder}. In another terminal:\n\n\
         \x20 export TURNBUCKLE_SERVER={server} TURNBUCKLE_TENANT={tenant}\n\
         \x20 export TURNBUCKLE_TOKEN_FILE={token_file}\n\
         \x20 turnbuckle endpoint list\n\
         \x20 turnbuckle event publish --type order.paid --data '{{\"order\": 2001}}'\n\
         \x20 turnbuckle delivery list --limit 5\n\
         \x20 turnbuckle key status healthy\n\
         \x20 turnbuckle retry-policy get quick -o yaml\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printer(json: bool, colour: bool) -> Printer {
        let (out, began) = (Box::new(io::sink()), Instant::now());
        Printer { out, json, colour, progress: false, began }
    }

    fn attempt<'a>(signatures: &'a [String]) -> Line<'a> {
        Line::Attempt {
            event: "order-1",
            endpoint: "flaky",
            attempt: 2,
            status: 503,
            waited_ms: Some(231.4),
            verified_by: &["old key", "new key"],
            signatures,
        }
    }

    #[test]
    fn an_attempt_shows_wait_keys_and_both_signatures() {
        let signatures = ["AAAAAAAA".to_owned(), "BBBBBBBB".to_owned()];
        let text = printer(false, false).text(&attempt(&signatures));
        assert!(text.contains("attempt 2  order-1"), "{text}");
        assert!(
            text.ends_with("503  old key + new key  AAAAAAAA BBBBBBBB  after 231 ms\n"),
            "{text}"
        );
    }

    #[test]
    fn colour_only_where_it_was_asked_for() {
        let line = Line::Verdict { checks: 9, failed: 0 };
        assert!(!printer(false, false).text(&line).contains('\u{1b}'));
        assert!(printer(false, true).text(&line).contains('\u{1b}'));
    }

    #[test]
    fn every_json_line_is_one_object_with_kind_and_time() {
        let text = printer(true, false).json_line(&attempt(&[]));
        let value: serde_json::Value = serde_json::from_str(text.trim_end()).unwrap();
        assert_eq!(value["kind"], "attempt");
        assert_eq!(value["waited_ms"], 231.4);
        assert!(value["at_ms"].is_number());
        assert_eq!(text.matches('\n').count(), 1);
    }
}
