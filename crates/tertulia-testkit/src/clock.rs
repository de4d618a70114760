//! Deterministic time and ids.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use jiff::Timestamp;
use tertulia_core::clock::Clock;
use uuid::Uuid;

/// Start time of every test: 2026-09-21T14:13:20Z.
const BEGINNING: i64 = 1_790_000_000;

/// Returns a clock that advances one second per call, with increasing ids: equal for equal seeds,
/// different for different seeds.
pub fn still_clock(seed: u64) -> Clock {
    let seconds = AtomicI64::new(0);
    Clock::new(
        move || moment(seconds.fetch_add(1, Ordering::Relaxed)),
        ids(seed),
    )
}

/// Returns a clock that always returns [`moment`]`(at)`, for entries with the same time.
pub fn frozen_clock(seed: u64, at: i64) -> Clock {
    Clock::new(move || moment(at), ids(seed))
}

/// Returns the time this many seconds after the start of every test.
pub fn moment(seconds: i64) -> Timestamp {
    Timestamp::from_second(BEGINNING + seconds).unwrap()
}

fn ids(seed: u64) -> impl Fn() -> Uuid + Send + Sync + 'static {
    let count = AtomicU64::new(0);
    move || numbered_uuid(seed, count.fetch_add(1, Ordering::Relaxed))
}

/// Returns the `n`th id of a seed, in the format of a UUIDv7: time first, then pseudo-random bits.
pub fn numbered_uuid(seed: u64, n: u64) -> Uuid {
    let milliseconds = u128::from(BEGINNING.unsigned_abs() * 1000 + n);
    let chance = u128::from(scattered(seed ^ scattered(n)));
    let (high, low) = (chance >> 52, chance & ((1 << 62) - 1));
    Uuid::from_u128((milliseconds << 80) | (0x7 << 76) | (high << 64) | (0b10 << 62) | low)
}

/// Maps adjacent numbers to distant ones (the finisher of `SplitMix64`), so that ids end
/// differently.
fn scattered(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_repeat_themselves_and_advance() {
        let (one, same, other) = (still_clock(1), still_clock(1), still_clock(2));
        let mut last = one.session_id();
        assert_eq!(last, same.session_id());
        assert_ne!(last, other.session_id());
        for _ in 0..1000 {
            let next = one.session_id();
            assert!(next > last);
            assert_ne!(next.short(), last.short());
            assert_eq!(next.uuid().get_version_num(), 7);
            assert_eq!(next.uuid().get_variant(), uuid::Variant::RFC4122);
            last = next;
        }
        assert_eq!(one.now(), moment(0));
        assert_eq!(one.now(), moment(1));
        assert_eq!(frozen_clock(1, 7).now(), moment(7));
    }
}
