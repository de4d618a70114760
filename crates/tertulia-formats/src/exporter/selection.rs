//! The part of a session that is exported.

use jiff::Timestamp;
use tertulia_core::id::Seq;
use tertulia_core::session::Log;

/// First or last entry of a part, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// By sequence number.
    Seq(Seq),
    /// By time.
    At(Timestamp),
}

/// A part of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The first entry; `None` is the beginning.
    pub from: Option<Bound>,
    /// The last entry; `None` is the end.
    pub to: Option<Bound>,
}

impl Selection {
    /// Returns true if the whole session is selected.
    pub fn is_everything(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Keeps the selected entries of a log. Damage outside the part is dropped where sequence
    /// numbers tell; a damaged entry has no time.
    pub fn apply(&self, log: &mut Log) {
        log.entries
            .retain(|entry| self.has(entry.seq, Some(entry.at)));
        log.damage.retain(|damage| self.has(damage.seq, None));
    }

    fn has(&self, seq: Seq, at: Option<Timestamp>) -> bool {
        let begun = match self.from {
            Some(Bound::Seq(from)) => from <= seq,
            Some(Bound::At(from)) => at.is_none_or(|at| from <= at),
            None => true,
        };
        let ended = match self.to {
            Some(Bound::Seq(to)) => seq > to,
            Some(Bound::At(to)) => at.is_some_and(|at| at > to),
            None => false,
        };
        begun && !ended
    }
}
