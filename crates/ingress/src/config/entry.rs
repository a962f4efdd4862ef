//! One source, ready to judge requests.

use crate::{event::Mapping, keys::SourceKeys, limits::SourceLoad};
use std::{sync::Arc, time::Duration};
use turnbuckle_domain::{KeyRing, SchemeChoice, Source, TimestampWindow};
use turnbuckle_signing::scheme::{self, Proof, Scheme, Verifier};

/// What is made of a source once, and kept until the source changes.
pub(crate) struct Compiled {
    pub(crate) source: Source,
    pub(crate) verifier: Verifier,
    pub(crate) mapping: Mapping,
}

impl Compiled {
    /// Reads the settings and the scheme of a source, or says in one line what is wrong.
    pub(crate) fn of(source: Source) -> Result<Self, String> {
        let mut scheme = scheme_of(&source.scheme)?;
        if let Some(window) = source.settings.timestamp {
            apply_window(&mut scheme, window);
        }
        let verifier = Verifier::new(scheme).map_err(|violations| violations.to_string())?;
        let mapping = Mapping::of(&source.settings, verifier.scheme())?;
        Ok(Self { source, verifier, mapping })
    }
}

/// A source with its keys.
pub(crate) struct SourceEntry {
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) keys: SourceKeys,
    /// Rates go on when the source changes.
    pub(crate) load: Arc<SourceLoad>,
}

/// Whether a source can be built here: asked before it takes the place of its version before.
///
/// # Errors
/// Why not, in one line without values.
pub fn check_source(source: &Source) -> Result<(), String> {
    SourceEntry::build(source.clone(), KeyRing::default(), None).map(drop)
}

impl SourceEntry {
    /// Builds a source, or says in one line why it cannot be built here.
    pub(crate) fn build(
        source: Source,
        ring: KeyRing,
        present: Option<&Self>,
    ) -> Result<Self, String> {
        let load = present.map(|present| Arc::clone(&present.load)).unwrap_or_default();
        let compiled = Arc::new(Compiled::of(source)?);
        Ok(Self { compiled, keys: SourceKeys::new(ring), load })
    }

    /// The same with other keys.
    pub(crate) fn with_ring(&self, ring: KeyRing) -> Self {
        Self {
            compiled: Arc::clone(&self.compiled),
            keys: SourceKeys::new(ring),
            load: Arc::clone(&self.load),
        }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.compiled.source
    }
}

fn scheme_of(choice: &SchemeChoice) -> Result<Scheme, String> {
    match choice {
        SchemeChoice::Preset(name) => match scheme::preset(name) {
            Some(preset) => Ok(preset.scheme.clone()),
            None => Err("its preset is not known to this version".to_owned()),
        },
        SchemeChoice::Custom(document) => serde_json::from_str(document.as_str())
            .map_err(|_| "its scheme is not readable by this version".to_owned()),
    }
}

/// The source's word on time goes before its scheme's.
fn apply_window(scheme: &mut Scheme, window: TimestampWindow) {
    let seconds = |length: Duration| u32::try_from(length.as_secs()).unwrap_or(u32::MAX);
    let (past, future) = (seconds(window.past), seconds(window.future));
    if let Proof::Jwt(proof) = &mut scheme.proof {
        (proof.max_age_seconds, proof.max_future_seconds) = (past, future);
    }
    if let Some(rule) = &mut scheme.timestamp {
        (rule.max_age_seconds, rule.max_future_seconds) = (past, future);
    }
}
