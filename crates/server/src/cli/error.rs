//! What a failed command prints, and the exit code it ends with.

use super::values::humane;
use std::{io, process::ExitCode};
use tonic::{Code, Status};
use turnbuckle_client::{ApiError, ConnectError, FieldViolation};

/// For `--help`: exit codes are part of the interface.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  any other failure
  2  wrong usage, or the server found the request invalid
  3  not found
  4  already exists, changed by somebody else, or not possible in the present state
  5  not authenticated, or not allowed
  6  server not reachable, overloaded, or too slow: try again";

/// The command cannot mean anything; nothing was sent.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error as lines for stderr and an exit code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) text: String,
    pub(crate) exit: u8,
}

/// Writes a failure to stderr and gives the exit code that belongs to it.
pub fn report(error: &anyhow::Error) -> ExitCode {
    let report = Report::of(error);
    // Without stderr there is nobody to tell; the exit code still says it.
    drop(io::Write::write_all(&mut io::stderr().lock(), report.text.as_bytes()));
    ExitCode::from(report.exit)
}

/// True when the reader of stdout went away, as `head` does: no failure.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

impl Report {
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if let Some(status) = error.downcast_ref::<Status>() {
            return Self::of_status(&ApiError::new(status));
        }
        let exit = match error.downcast_ref::<ConnectError>() {
            Some(ConnectError::Unreachable { .. }) => 6,
            Some(ConnectError::InvalidUrl(_)) => 2,
            Some(ConnectError::Token(_)) => 5,
            None if error.is::<Usage>() => 2,
            None => 1,
        };
        let mut text = format!("error: {}\n", printable(&format!("{error:#}")));
        if exit == 6 {
            text.push_str("hint: is it running? start one with `turnbuckle serve`, or name another with --server\n");
        }
        Self { text, exit }
    }

    fn of_status(error: &ApiError) -> Self {
        let mut text = format!("error: {}\n", printable(&headline(error)));
        for violation in &error.violations {
            let line = format!("  {}: {}", violation.field, violation.description);
            text.push_str(&printable(&line));
            text.push('\n');
        }
        for precondition in error.preconditions.iter().filter(|found| **found != error.message) {
            text.push_str(&printable(&format!("  {precondition}")));
            text.push('\n');
        }
        if let Some(delay) = error.retry_delay {
            text.push_str(&format!("  try again in {}\n", humane(delay)));
        }
        if let Some(hint) = hint(error) {
            text.push_str(&format!("hint: {hint}\n"));
        }
        Self { text, exit: exit_code(error.code) }
    }
}

/// The message, without repeating the violation that the lines below it show.
fn headline(error: &ApiError) -> String {
    let told = |first: &FieldViolation| error.message.contains(&first.description);
    if !error.violations.first().is_some_and(told) {
        return error.to_string();
    }
    let message = "the request is invalid".to_owned();
    ApiError { message, ..error.clone() }.to_string()
}

const fn exit_code(code: Code) -> u8 {
    match code {
        Code::Ok => 0,
        Code::InvalidArgument | Code::OutOfRange => 2,
        Code::NotFound => 3,
        Code::AlreadyExists | Code::Aborted | Code::FailedPrecondition => 4,
        Code::Unauthenticated | Code::PermissionDenied => 5,
        Code::Unavailable | Code::DeadlineExceeded | Code::ResourceExhausted => 6,
        Code::Cancelled | Code::Unknown | Code::Unimplemented | Code::Internal | Code::DataLoss => {
            1
        }
    }
}

fn hint(error: &ApiError) -> Option<&'static str> {
    if let Some(hint) = error.reason.as_deref().and_then(hint_for_reason) {
        return Some(hint);
    }
    match error.code {
        Code::Unauthenticated => Some(
            "give a token with --token-file or TURNBUCKLE_TOKEN_FILE; a server with an embedded \
             store writes admin.token into its data directory",
        ),
        Code::PermissionDenied => Some("use a token whose role and tenant allow this"),
        Code::NotFound => Some("check --tenant, and what exists with the `list` verb"),
        Code::DeadlineExceeded => Some("the server may still do it; allow more with --timeout"),
        Code::Unimplemented => Some("the server is older than this command"),
        _ => None,
    }
}

fn hint_for_reason(reason: &str) -> Option<&'static str> {
    match reason {
        "ETAG_MISMATCH" => {
            Some("somebody changed it since; look again, then repeat, or leave --etag away")
        }
        "ROTATION_IN_PROGRESS" => {
            Some("see `turnbuckle key status`; end it with --force, or wait for the overlap to end")
        }
        "NO_STAGED_KEY" => {
            Some("stage one with `turnbuckle key stage`, or do both with `turnbuckle key rotate`")
        }
        "EVENT_ANOMALY" => Some("see the first one with `turnbuckle event list --event-id ID`"),
        _ => None,
    }
}

/// Text from elsewhere without what a terminal would act on.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(
            |c| {
                if c.is_control() && c != '\n' && c != '\t' {
                    char::REPLACEMENT_CHARACTER
                } else {
                    c
                }
            },
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tonic_types::{ErrorDetails, StatusExt as _};

    #[test]
    fn an_invalid_request_shows_every_field_on_its_line() {
        let mut details = ErrorDetails::new();
        details
            .set_error_info("INVALID_REQUEST", "turnbuckle", [])
            .add_bad_request_violation("endpoint.http.url", "is missing")
            .add_bad_request_violation("endpoint.max_in_flight", "is 0; use 1 to 64");
        let status = Status::with_error_details(Code::InvalidArgument, "invalid request", details);
        let report = Report::of(&anyhow::Error::new(status));
        assert_eq!(report.exit, 2);
        assert_eq!(
            report.text,
            "error: invalid request (INVALID_ARGUMENT, INVALID_REQUEST)\n\
             \x20 endpoint.http.url: is missing\n\
             \x20 endpoint.max_in_flight: is 0; use 1 to 64\n"
        );
    }

    #[test]
    fn a_message_that_repeats_a_violation_is_shortened() {
        let details = ErrorDetails::with_bad_request_violation("etag", "is no etag");
        let text = "invalid request: etag is no etag (and 1 more, see the details)";
        let status = Status::with_error_details(Code::InvalidArgument, text, details);
        let report = Report::of(&anyhow::Error::new(status));
        assert_eq!(
            report.text,
            "error: the request is invalid (INVALID_ARGUMENT)\n  etag: is no etag\n"
        );
    }

    #[test]
    fn an_overloaded_server_says_when_to_come_back() {
        let details = ErrorDetails::with_retry_info(Some(Duration::from_secs(2)));
        let status = Status::with_error_details(Code::ResourceExhausted, "busy", details);
        let report = Report::of(&anyhow::Error::new(status));
        assert_eq!(report.exit, 6);
        assert!(report.text.contains("try again in 2s"), "{}", report.text);
    }

    #[test]
    fn each_kind_of_failure_has_its_exit_code() {
        for (status, exit) in [
            (Status::not_found(""), 3),
            (Status::already_exists(""), 4),
            (Status::aborted(""), 4),
            (Status::failed_precondition(""), 4),
            (Status::unauthenticated(""), 5),
            (Status::permission_denied(""), 5),
            (Status::unavailable(""), 6),
            (Status::deadline_exceeded(""), 6),
            (Status::internal(""), 1),
        ] {
            assert_eq!(Report::of(&anyhow::Error::new(status)).exit, exit);
        }
        assert_eq!(Report::of(&Usage("no".into()).into()).exit, 2);
        assert_eq!(Report::of(&anyhow::anyhow!("other")).exit, 1);
    }

    #[test]
    fn text_from_a_server_cannot_steer_the_terminal() {
        let report = Report::of(&Status::internal("\u{1b}[2Jgone").into());
        assert!(!report.text.contains('\u{1b}'));
    }

    #[test]
    fn a_closed_pipe_is_recognised_anywhere_in_the_chain() {
        let error = anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe)).context("write");
        assert!(is_closed_pipe(&error));
        assert!(!is_closed_pipe(&anyhow::anyhow!("x")));
    }
}
