//! Removes markers from a text while it is streamed.

use super::{OPENINGS, shown};

/// A held back section with a marker must be at least 1/4 of the whole text before the text is
/// parsed again, so that the total time stays linear.
const PART: usize = 4;

/// Passes on streamed text without markers: from a possible marker on, the line is held back.
#[derive(Clone, Debug, Default)]
pub struct Unmarked {
    all: String,
    /// Length of the part of `all` that was passed on or parsed.
    upto: usize,
    /// Length of the output so far.
    given: usize,
}

impl Unmarked {
    /// Appends streamed text and returns the part that can be shown now.
    pub fn push(&mut self, text: &str) -> String {
        self.all.push_str(text);
        let rest = &self.all[self.upto..];
        let Some(at) = suspicious(rest) else {
            // A line that is blank so far is removed if only markers follow on it.
            let line = self.all.rfind('\n').map_or(0, |end| end + 1);
            let blank = self.all[line..].trim().is_empty();
            return self.hand_on(if blank {
                line.max(self.upto)
            } else {
                self.all.len()
            });
        };
        let line = rest[..at].rfind('\n').map_or(0, |end| end + 1);
        if line > 0 {
            return self.hand_on(self.upto + line);
        }
        if rest.len() >= self.all.len() / PART && rest.ends_with('\n') && is_whole(&rest[at..]) {
            return self.read_again();
        }
        String::new()
    }

    /// Returns the text held back, at the end of the stream.
    pub fn finish(mut self) -> String {
        self.read_again()
    }

    fn hand_on(&mut self, upto: usize) -> String {
        let shown = self.all[self.upto..upto].to_owned();
        self.upto = upto;
        self.given += shown.len();
        shown
    }

    fn read_again(&mut self) -> String {
        let shown = shown(&self.all);
        self.upto = self.all.len();
        let given = shown.floor_char_boundary(self.given);
        self.given = shown.len();
        shown[given..].to_owned()
    }
}

/// Returns the position of a marker, or of a prefix that may become one.
fn suspicious(text: &str) -> Option<usize> {
    let brackets = text.match_indices('[').map(|(at, _)| at);
    brackets.into_iter().find(|&at| {
        OPENINGS.iter().any(|(opening, _)| {
            let rest = &text.as_bytes()[at..];
            let length = opening.len().min(rest.len());
            rest[..length].eq_ignore_ascii_case(&opening.as_bytes()[..length])
        })
    })
}

/// Returns true if the marker is closed.
fn is_whole(text: &str) -> bool {
    text.contains(']')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(parts: &[&str]) -> String {
        let mut words = Unmarked::default();
        let mut text: String = parts.iter().map(|part| words.push(part)).collect();
        text.push_str(&words.finish());
        text
    }

    #[test]
    fn what_cannot_be_a_marker_is_shown_at_once() {
        let mut words = Unmarked::default();
        assert_eq!(words.push("one [two] thr"), "one [two] thr");
        assert_eq!(words.push("ee\nfour [NE"), "ee\n");
        assert_eq!(words.push("W] five\n"), "four [NEW] five\n");
        assert_eq!(words.push("six [NEXT: a"), "");
        assert_eq!(words.push("]\n"), "six \n");
        assert_eq!(words.push("seven"), "seven");
        assert_eq!(words.finish(), "");
    }

    #[test]
    fn lines_of_markers_alone_are_gone() {
        assert_eq!(said(&["a\n", "[NEXT: b]", "\nc"]), "a\nc");
        assert_eq!(said(&["a [", "next", ": b]"]), "a ");
    }

    #[test]
    fn many_markers_do_not_take_long() {
        let mut words = Unmarked::default();
        let shown: usize = (0..50_000).map(|_| words.push("x [NEXT: a]\n").len()).sum();
        assert_eq!(shown + words.finish().len(), 50_000 * 3);
    }

    proptest! {
        /// The result does not depend on how the text is split.
        #[test]
        fn pieces_make_no_difference(
            parts in prop::collection::vec("(\\[next: a\\]|\\[drop: all\\]|[a\\[\\]\n ]){0,4}", 0..12)
        ) {
            let whole: String = parts.concat();
            let pieces: Vec<&str> = parts.iter().map(String::as_str).collect();
            prop_assert_eq!(said(&pieces), shown(&whole));
        }
    }
}
