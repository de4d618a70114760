//! Damage and time limits for tests of importers.

use std::time::{Duration, Instant};

/// Time limit for reading a small file.
const LIMIT: Duration = Duration::from_secs(20);

/// Returns the bytes with up to eight of them changed, as `seed` says.
pub(crate) fn flipped(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 16).unwrap_or_default()
    };
    let mut bytes = bytes.to_vec();
    for _ in 0..=random() % 8 {
        let place = random() % bytes.len();
        bytes[place] ^= (1 + random() % 255).to_le_bytes()[0];
    }
    bytes
}

/// Runs `read` and checks that it ends in time.
pub(crate) fn is_read_in_time<T>(read: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let outcome = read();
    assert!(started.elapsed() < LIMIT, "{:?}", started.elapsed());
    outcome
}
