//! The one place that writes: data to stdout, notes to stderr.

use super::{render, resource::Resource};
use anyhow::Context as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::Value;
use std::io::{self, Write};
use turnbuckle_domain::{Clock as _, Timestamp};
use turnbuckle_runtime::SystemClock;

/// How data is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// Proto3 JSON; lists are arrays.
    Json,
    /// The JSON form written as YAML.
    Yaml,
    /// Resource names, one a line.
    Name,
}

/// Writers and the present time; tests bring their own.
pub(crate) struct Output {
    format: Format,
    pool: DescriptorPool,
    data: Box<dyn Write + Send>,
    notes: Box<dyn Write + Send>,
    now: Timestamp,
}

impl Output {
    pub(crate) fn standard(format: Format) -> anyhow::Result<Self> {
        let (data, notes) = (Box::new(io::stdout()), Box::new(io::stderr()));
        Self::new(format, data, notes, SystemClock.now())
    }

    pub(crate) fn new(
        format: Format,
        data: Box<dyn Write + Send>,
        notes: Box<dyn Write + Send>,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let pool = DescriptorPool::decode(turnbuckle_proto::DESCRIPTORS)
            .context("the contract built into this binary")?;
        Ok(Self { format, pool, data, notes, now })
    }

    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    /// Shows one resource.
    pub(crate) fn one<R: Resource>(&mut self, resource: &R) -> anyhow::Result<()> {
        let message = self.dynamic(resource)?;
        let text = match self.format {
            Format::Table => render::details(&message, self.now),
            Format::Json => json(&serde_json::to_value(&message)?)?,
            Format::Yaml => yaml(&serde_json::to_value(&message)?)?,
            Format::Name => format!("{}\n", resource.name()),
        };
        self.raw(text.as_bytes())
    }

    /// Shows a list of resources.
    pub(crate) fn many<R: Resource>(&mut self, resources: &[R]) -> anyhow::Result<()> {
        let messages: Vec<DynamicMessage> =
            resources.iter().map(|resource| self.dynamic(resource)).collect::<Result<_, _>>()?;
        let text = match self.format {
            Format::Table => render::list(R::COLUMNS, &messages, self.now),
            Format::Json => json(&serde_json::to_value(&messages)?)?,
            Format::Yaml => yaml(&serde_json::to_value(&messages)?)?,
            Format::Name => {
                resources.iter().map(|resource| format!("{}\n", resource.name())).collect()
            }
        };
        self.raw(text.as_bytes())
    }

    /// One resource as JSON on a line of its own, whatever the format.
    pub(crate) fn line<R: Resource>(&mut self, resource: &R) -> anyhow::Result<()> {
        let mut text = serde_json::to_string(&serde_json::to_value(self.dynamic(resource)?)?)?;
        text.push('\n');
        self.raw(text.as_bytes())
    }

    /// Says that what was shown is not there.
    pub(crate) fn note_dry_run(&mut self, dry_run: bool) -> anyhow::Result<()> {
        match dry_run {
            true => self.note("note: this was a dry run: nothing was changed"),
            false => Ok(()),
        }
    }

    /// Shows what a removed resource was called, where names are asked for.
    pub(crate) fn removed(&mut self, name: &str) -> anyhow::Result<()> {
        if self.format == Format::Name {
            self.raw(format!("{name}\n").as_bytes())?;
        }
        self.note(&format!("{name} is deleted"))
    }

    /// Bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.data.write_all(bytes)?;
        self.data.flush()?;
        Ok(())
    }

    /// A line beside the data.
    pub(crate) fn note(&mut self, text: &str) -> anyhow::Result<()> {
        writeln!(self.notes, "{text}")?;
        Ok(())
    }

    /// Says that a secret was shown for the only time, or that it was not.
    pub(crate) fn note_secret(&mut self, secret: &str) -> anyhow::Result<()> {
        match (secret.is_empty(), self.format) {
            (true, _) => Ok(()),
            (false, Format::Name) => self.note(
                "note: -o name does not show the new secret, and it cannot be read again; \
                 `turnbuckle key rotate` makes another one",
            ),
            (false, _) => {
                self.note("note: keep the secret now; it is shown once and cannot be read again")
            }
        }
    }

    fn dynamic<R: Resource>(&self, resource: &R) -> anyhow::Result<DynamicMessage> {
        let descriptor = self
            .pool
            .get_message_by_name(R::MESSAGE)
            .with_context(|| format!("{} is not in the contract", R::MESSAGE))?;
        Ok(DynamicMessage::decode(descriptor, resource.encode_to_vec().as_slice())?)
    }
}

/// Values are sorted by key, so that equal resources print equally.
fn json(value: &Value) -> anyhow::Result<String> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}

fn yaml(value: &Value) -> anyhow::Result<String> {
    Ok(serde_norway::to_string(value)?)
}

#[cfg(test)]
pub(super) mod tests;
