//! Toasts: short notices that disappear by themselves, or when their cause ends.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use super::item::Tone;

/// Maximum number visible; the oldest is dropped.
const MOST: usize = 3;
/// Time before its end at which a toast fades.
const FADING: SignedDuration = SignedDuration::from_millis(800);

/// Current toasts.
#[derive(Clone, Debug, Default)]
pub struct Toasts {
    all: VecDeque<Toast>,
}

/// What ends a toast before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Nothing.
    Time,
    /// The next key: it announces what the same key does next.
    Key,
    /// The next prompt or command: it says what was wrong with the last one.
    Prompt,
    /// The end of the turn: it says what is not possible during one.
    Turn,
}

/// A toast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toast {
    /// Severity.
    pub tone: Tone,
    /// Text.
    pub text: String,
    since: Timestamp,
    until: Until,
}

impl Toast {
    /// Lifetime: longer for higher severity.
    fn life(&self) -> SignedDuration {
        SignedDuration::from_secs(match self.tone {
            Tone::Note if self.until == Until::Key => 2,
            Tone::Note => 4,
            Tone::Warning => 7,
            Tone::Error => 10,
        })
    }

    fn is_alive(&self, now: Timestamp) -> bool {
        let age = now.duration_since(self.since);
        // A clock that was set back must not prolong the life.
        age < self.life() && !age.is_negative()
    }

    /// Returns true if it is about to disappear.
    pub fn is_fading(&self, now: Timestamp) -> bool {
        now.duration_since(self.since) >= self.life() - FADING
    }
}

impl Toasts {
    /// Shows a message from now on.
    pub fn push(&mut self, tone: Tone, text: &str, now: Timestamp) {
        self.push_until(Until::Time, tone, text, now);
    }

    /// Shows a message from now on, until its cause ends.
    pub fn push_until(&mut self, until: Until, tone: Tone, text: &str, now: Timestamp) {
        // A repeated message replaces the earlier one, and a note is past when something else is to
        // be said.
        self.all.retain(|toast| {
            let is_repeated = toast.text == text && toast.tone == tone;
            !is_repeated && toast.tone != Tone::Note
        });
        self.all.push_back(Toast {
            tone,
            text: text.to_owned(),
            since: now,
            until,
        });
        while self.all.len() > MOST {
            self.all.pop_front();
        }
    }

    /// Removes the toasts that this ends.
    pub fn end(&mut self, until: Until) {
        self.all.retain(|toast| toast.until != until);
    }

    /// Removes expired toasts; returns true if there were any.
    pub fn sweep(&mut self, now: Timestamp) -> bool {
        let before = self.all.len();
        self.all.retain(|toast| toast.is_alive(now));
        self.all.len() < before
    }

    /// Time of the next visible change without an event.
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let changes = self.all.iter().filter_map(|toast| {
            let end = toast.life();
            let next = if toast.is_fading(now) {
                end
            } else {
                end - FADING
            };
            toast.since.checked_add(next).ok()
        });
        changes.min()
    }

    /// Visible toasts, oldest first.
    pub fn seen(&self, now: Timestamp) -> impl Iterator<Item = &Toast> {
        self.all.iter().filter(move |toast| toast.is_alive(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{later, look, noon, screen};
    use crate::view;

    fn texts(toasts: &Toasts, now: Timestamp) -> Vec<&str> {
        toasts.seen(now).map(|toast| toast.text.as_str()).collect()
    }

    #[test]
    fn at_most_three_are_kept_and_no_note_among_them() {
        let mut toasts = Toasts::default();
        for text in ["1", "2", "3", "4", "2"] {
            toasts.push(Tone::Warning, text, noon());
        }
        assert_eq!(texts(&toasts, noon()), ["3", "4", "2"]);
        toasts.push(Tone::Note, "renamed", noon());
        toasts.push(Tone::Note, "tagged", noon());
        assert_eq!(texts(&toasts, noon()), ["4", "2", "tagged"]);
    }

    #[test]
    fn they_fade_and_go() {
        let mut toasts = Toasts::default();
        toasts.push(Tone::Error, "lost", noon());
        toasts.push(Tone::Note, "saved", noon());
        assert_eq!(toasts.due(noon()), Some(later(3200)));
        let fading = |now| {
            toasts
                .seen(now)
                .map(|toast| toast.is_fading(now))
                .collect::<Vec<_>>()
        };
        assert_eq!(fading(later(3199)), [false, false]);
        assert_eq!(fading(later(3200)), [false, true]);
        assert_eq!(toasts.due(later(3200)), Some(later(4000)));
        assert!(!toasts.sweep(later(3999)) && toasts.sweep(later(4000)));
        assert_eq!(texts(&toasts, later(4000)), ["lost"]);
        assert!(toasts.sweep(later(10_000)) && toasts.due(later(10_000)).is_none());
        toasts.push(Tone::Note, "from the future", later(9_999_999));
        assert!(texts(&toasts, noon()).is_empty());
    }

    #[test]
    fn some_end_with_their_cause() {
        let mut toasts = Toasts::default();
        toasts.push(Tone::Warning, "not copied", noon());
        toasts.push_until(Until::Key, Tone::Warning, "Esc again", noon());
        toasts.push_until(Until::Turn, Tone::Warning, "not now", noon());
        toasts.end(Until::Key);
        assert_eq!(texts(&toasts, noon()), ["not copied", "not now"]);
        toasts.end(Until::Turn);
        assert_eq!(texts(&toasts, noon()), ["not copied"]);
    }

    #[test]
    fn the_newest_stands_alone() {
        let mut toasts = Toasts::default();
        let drawn = |toasts: &Toasts, columns: u16| {
            let seen = screen((columns, 1), |area, buffer| {
                view::toast::draw(toasts, look(), area, buffer);
                None
            });
            seen.trim_end().to_owned()
        };
        assert_eq!(drawn(&toasts, 40), "");
        toasts.push(Tone::Error, "lost", noon());
        toasts.push(Tone::Warning, "漢字 \u{1b}[31m", noon());
        assert_eq!(drawn(&toasts, 40), "  ! 漢字 \u{fffd}[31m");
        let text = "the editor (some-editor --wait) ended with exit status: 1: nothing was changed";
        toasts.push(Tone::Error, text, noon());
        assert_eq!(drawn(&toasts, 84), format!("  ✗ {text}"));
        let cut = drawn(&toasts, 40);
        assert!(
            cut.starts_with("  ✗ the editor") && cut.ends_with('…'),
            "{cut}"
        );
        for columns in 0..6 {
            drawn(&toasts, columns);
        }
    }
}
