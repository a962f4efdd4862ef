//! What is wrong with a scheme.

use std::fmt;

/// One thing wrong with a scheme: where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The field, such as `proof.signature.sources[1].header`.
    pub field: String,
    /// The limit or rule and the remedy; never holds a key.
    pub message: String,
}

/// Everything wrong with a scheme, at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// All of them, in the order of the scheme's fields.
    #[must_use]
    pub fn as_slice(&self) -> &[Violation] {
        &self.0
    }

    /// All of them, for another error type.
    #[must_use]
    pub fn into_vec(self) -> Vec<Violation> {
        self.0
    }

    pub(crate) fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(Violation { field: field.into(), message: message.into() });
    }

    /// Nothing wrong, or everything.
    pub(crate) fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{}: {}", violation.field, violation.message)?;
        }
        Ok(())
    }
}
