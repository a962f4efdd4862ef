//! Logs to standard error, in a form for people or for machines.

use std::{
    io::{self, IsTerminal as _},
    str::FromStr,
    sync::Mutex,
};
use tracing_subscriber::{EnvFilter, fmt, util::SubscriberInitExt as _};

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Pretty,
    /// One JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = TelemetryError;

    fn from_str(text: &str) -> Result<Self, TelemetryError> {
        match text {
            "pretty" => Ok(Self::Pretty),
            "json" => Ok(Self::Json),
            other => Err(TelemetryError::UnknownFormat(crate::text::clip(other, 32))),
        }
    }
}

/// Logging cannot be set up as asked.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// There is no such format.
    #[error("log format {0:?} is unknown: use pretty or json")]
    UnknownFormat(String),
    /// The filter has a fault.
    #[error("log filter is invalid: {0}; an example is info,turnbuckle_delivery=debug")]
    Filter(String),
    /// Something else has set up logging.
    #[error("logging was set up by something else: {0}")]
    Taken(String),
}

/// Whether this module has installed its subscriber.
static INSTALLED: Mutex<bool> = Mutex::new(false);

/// Starts logging. Later calls only check their filter, so that every test may call it.
///
/// # Errors
/// When the filter is invalid or a foreign subscriber is installed.
pub fn init(format: LogFormat, filter: &str) -> Result<(), TelemetryError> {
    let filter =
        EnvFilter::try_new(filter).map_err(|error| TelemetryError::Filter(error.to_string()))?;
    let mut installed = INSTALLED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    // Standard output belongs to the answers of commands.
    // When nobody reads it any more, lines are dropped; complaining about that would panic.
    let lines = fmt().with_env_filter(filter).with_writer(io::stderr).log_internal_errors(false);
    let outcome = match format {
        LogFormat::Pretty => lines.with_ansi(io::stderr().is_terminal()).finish().try_init(),
        LogFormat::Json => {
            lines.json().flatten_event(true).with_span_list(false).finish().try_init()
        }
    };
    outcome.map_err(|error| TelemetryError::Taken(error.to_string()))?;
    *installed = true;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logging_can_be_started_again_and_again() {
        init(LogFormat::Json, "info").unwrap();
        init(LogFormat::Pretty, "debug").unwrap();
        assert!(matches!(init(LogFormat::Json, "a=b=c"), Err(TelemetryError::Filter(_))));
    }

    #[test]
    fn formats_are_read_by_name() {
        assert_eq!("pretty".parse::<LogFormat>().unwrap(), LogFormat::Pretty);
        assert_eq!("json".parse::<LogFormat>().unwrap(), LogFormat::Json);
        assert!("xml".parse::<LogFormat>().unwrap_err().to_string().contains("use pretty or json"));
    }
}
