//! The randomness port: ids, jitter. Keys come from the operating system instead.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha12Rng;
use std::sync::{Mutex, PoisonError};

/// A source of random bytes that tests can seed.
pub trait Random: Send + Sync + 'static {
    /// Fills the buffer.
    fn fill(&self, buffer: &mut [u8]);

    /// A number in `0.0 .. 1.0`.
    fn unit(&self) -> f64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        // 53 bits fill a double's mantissa, so every value is equally likely and below one.
        (u64::from_le_bytes(bytes) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A reproducible generator: the same seed gives the same run.
pub struct SeededRandom(Mutex<ChaCha12Rng>);

impl SeededRandom {
    /// Starts from a seed.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        Self(Mutex::new(ChaCha12Rng::from_seed(seed)))
    }

    /// Starts from a small number, for tests.
    #[must_use]
    pub fn from_number(seed: u64) -> Self {
        Self(Mutex::new(ChaCha12Rng::seed_from_u64(seed)))
    }
}

impl Random for SeededRandom {
    fn fill(&self, buffer: &mut [u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fill_bytes(buffer);
    }
}
