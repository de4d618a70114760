//! Time during which a new dialog accepts no answer: keys typed when it appeared were not meant for
//! it.

use jiff::{SignedDuration, Timestamp};

/// Shorter than anyone needs to read a question.
const QUIET: SignedDuration = SignedDuration::from_millis(300);

/// Time when the dialog appeared, or of the last key typed as if it had not.
#[derive(Clone, Copy, Debug)]
pub struct Quiet {
    since: Timestamp,
}

impl Quiet {
    /// Starts now.
    pub fn new(now: Timestamp) -> Quiet {
        Quiet { since: now }
    }

    /// Returns true if a key pressed now is meant for the dialog. Otherwise prolongs the quiet
    /// time, since a sentence being typed may take longer than it.
    pub fn lets_through(&mut self, now: Timestamp) -> bool {
        if self.is_over(now) {
            return true;
        }
        self.since = now;
        false
    }

    /// Returns true if a key would be accepted now.
    pub fn is_over(&self, now: Timestamp) -> bool {
        let waited = now.duration_since(self.since);
        // A clock that was set back must not prolong the wait.
        waited >= QUIET || waited.is_negative()
    }

    /// Returns the end of the quiet time while it lasts.
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        Some(self.until()).filter(|due| *due > now)
    }

    /// End of the quiet time, if no more keys come before.
    pub fn until(&self) -> Timestamp {
        self.since.checked_add(QUIET).unwrap_or(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{later, noon};

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
