//! Randomness of the operating system.

use turnbuckle_domain::SeededRandom;

/// The operating system gave no randomness. Nothing safe can be done without it.
#[derive(Debug, thiserror::Error)]
#[error("the operating system gave no randomness: {0}")]
pub struct RandomnessError(String);

/// A generator for ids and jitter, seeded by the operating system. Keys do not come from it.
///
/// # Errors
/// When the operating system gives no randomness.
pub fn os_random() -> Result<SeededRandom, RandomnessError> {
    os_bytes().map(SeededRandom::new)
}

/// Bytes for keys and nonces, straight from the operating system.
pub(crate) fn os_bytes<const N: usize>() -> Result<[u8; N], RandomnessError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| RandomnessError(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnbuckle_domain::Random as _;

    #[test]
    fn two_generators_differ() {
        let (mut one, mut other) = ([0; 16], [0; 16]);
        os_random().unwrap().fill(&mut one);
        os_random().unwrap().fill(&mut other);
        assert_ne!(one, other);
    }
}
