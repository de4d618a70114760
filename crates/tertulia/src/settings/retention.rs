//! `[retention]`: which sessions are kept.

/// Which sessions are too old or too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Sessions without a message for this long are trashed.
    pub max_age: Option<jiff::SignedDuration>,
    /// Sessions beyond this number, newest first, are trashed.
    pub max_count: Option<usize>,
    /// Sessions of one team beyond this number, newest first, are trashed.
    pub max_count_per_team: Option<usize>,
    /// Sessions with a message within this time are never trashed.
    pub min_age: jiff::SignedDuration,
    /// How long the trash keeps sessions.
    pub trash: jiff::SignedDuration,
    /// Sessions without a message for this long are stored compressed.
    pub compress_after: Option<jiff::SignedDuration>,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention {
            max_age: None,
            max_count: None,
            max_count_per_team: None,
            min_age: jiff::SignedDuration::from_hours(24),
            trash: jiff::SignedDuration::from_hours(30 * 24),
            compress_after: None,
        }
    }
}

impl Retention {
    /// Returns true if the number of sessions is limited.
    pub fn counts(&self) -> bool {
        self.max_count.is_some() || self.max_count_per_team.is_some()
    }

    /// Returns true if sessions are ever trashed automatically.
    pub fn is_on(&self) -> bool {
        self.max_age.is_some() || self.counts()
    }
}
