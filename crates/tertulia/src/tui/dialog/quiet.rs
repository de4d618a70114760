//! Time in which a question takes no answer: whoever was typing when it appeared did not answer it.

use jiff::{SignedDuration, Timestamp};

/// Nobody reads a question faster.
const QUIET: SignedDuration = SignedDuration::from_millis(300);

/// When a question appeared, or somebody last went on typing as if it had not.
#[derive(Clone, Copy, Debug)]
pub struct Quiet {
    since: Timestamp,
}

impl Quiet {
    /// From now on.
    pub fn new(now: Timestamp) -> Quiet {
        Quiet { since: now }
    }

    /// Whether a key that is pressed now is meant for the question. One that is not prolongs the
    /// quiet: a sentence that is being typed may be longer than it.
    pub fn lets_through(&mut self, now: Timestamp) -> bool {
        if self.is_over(now) {
            return true;
        }
        self.since = now;
        false
    }

    /// Whether a key would be taken now.
    pub fn is_over(&self, now: Timestamp) -> bool {
        let waited = now.duration_since(self.since);
        // A clock that was set back is no reason to wait longer.
        waited >= QUIET || waited.is_negative()
    }

    /// When keys are taken, if no more come before.
    pub fn until(&self) -> Timestamp {
        self.since.checked_add(QUIET).unwrap_or(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::stage::{later, noon};

    #[test]
    fn typing_on_is_no_answer_however_long_it_takes() {
        let mut quiet = Quiet::new(noon());
        for milliseconds in [0, 150, 299, 500, 799] {
            assert!(!quiet.lets_through(later(milliseconds)), "{milliseconds}");
        }
        assert_eq!(quiet.until(), later(1099));
        assert!(quiet.lets_through(later(1099)));
        assert!(quiet.lets_through(later(1100)));
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_lock_anybody_out() {
        let mut quiet = Quiet::new(later(3_600_000));
        assert!(quiet.lets_through(noon()));
    }
}
