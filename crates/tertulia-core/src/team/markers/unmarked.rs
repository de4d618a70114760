//! A text without its markers, while it is still being said.

use super::{OPENINGS, shown};

/// Of a text that holds a marker at least this part is waited for before all of it is read again, so
/// that reading stays in proportion to the text.
const PART: usize = 4;

/// Hands on what is said, but for markers: from where one may begin, the line is held back.
#[derive(Clone, Debug, Default)]
pub struct Unmarked {
    all: String,
    /// How far `all` is handed on.
    upto: usize,
    /// How much of it as it is shown.
    given: usize,
}

impl Unmarked {
    /// More is said. What can be shown now.
    pub fn push(&mut self, text: &str) -> String {
        self.all.push_str(text);
        let rest = &self.all[self.upto..];
        let Some(at) = suspicious(rest) else {
            // A line that is empty so far is gone with the markers that may follow.
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

    /// Everything is said. What was held back.
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

/// Where a marker begins, or might when more is said.
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

/// Whether the marker that begins here has an end.
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
        /// However a text is cut into pieces, it is shown as if it had come at once.
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
