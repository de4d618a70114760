//! Slows down wrong logins: each recent failure makes the next attempt wait longer, and only a few may
//! wait at once.

use std::collections::VecDeque;
use std::time::Duration;

/// Failures of this time count.
const RECENT: Duration = Duration::from_secs(60);
/// Delay after the first failure; it doubles with each further one.
const FIRST: Duration = Duration::from_millis(50);
/// Longest delay.
const LONGEST: Duration = Duration::from_secs(3);
/// Number of attempts that may wait at once.
const PENDING: usize = 8;
/// Number of failures that are remembered.
const REMEMBERED: usize = 16;

/// State of the throttle. Times are durations since any fixed moment.
#[derive(Debug, Default)]
pub struct Throttle {
    failures: VecDeque<Duration>,
    pending: usize,
}

impl Throttle {
    /// Begins an attempt. Returns how long it waits before it is checked, or `None` if too many wait.
    pub fn begin(&mut self, now: Duration) -> Option<Duration> {
        if self.pending >= PENDING {
            return None;
        }
        self.pending += 1;
        let is_old = |at: &Duration| now.saturating_sub(*at) >= RECENT;
        while self.failures.front().is_some_and(is_old) {
            self.failures.pop_front();
        }
        Some(match self.failures.len() {
            0 => Duration::ZERO,
            count => {
                let doubled = u32::try_from(count - 1).unwrap_or(u32::MAX).min(16);
                (FIRST * 2u32.pow(doubled)).min(LONGEST)
            }
        })
    }

    /// Ends an attempt.
    pub fn end(&mut self, now: Duration, failed: bool) {
        self.pending = self.pending.saturating_sub(1);
        if failed {
            self.failures.push_back(now);
            let surplus = self.failures.len().saturating_sub(REMEMBERED);
            self.failures.drain(..surplus);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_attempts_wait_longer_and_longer_and_are_forgotten() {
        let mut throttle = Throttle::default();
        let mut waits = Vec::new();
        for _ in 0..20 {
            waits.push(throttle.begin(Duration::ZERO).unwrap());
            throttle.end(Duration::ZERO, true);
        }
        assert_eq!(waits[..3], [0, 50, 100].map(Duration::from_millis));
        assert!(waits.is_sorted() && waits.last() == Some(&LONGEST));
        assert_eq!(throttle.begin(RECENT), Some(Duration::ZERO));
    }

    #[test]
    fn few_attempts_wait_at_once() {
        let mut throttle = Throttle::default();
        for _ in 0..PENDING {
            assert!(throttle.begin(Duration::ZERO).is_some());
        }
        assert_eq!(throttle.begin(Duration::ZERO), None);
        throttle.end(Duration::ZERO, false);
        assert_eq!(throttle.begin(Duration::ZERO), Some(Duration::ZERO));
    }
}
